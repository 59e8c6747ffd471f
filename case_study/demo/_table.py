"""The results of several cases as a table, for the terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from case_study.measures import CaseResult
from case_study.temperaments import SCRIPTED
from vacuum_world.scenarios import scenario_named

COLUMNS = ("agent", "model", "success", "what happened", "actions", "calls")
REPORTED = ("scenario", *COLUMNS, "tokens", "rejected by", "logs")

_LETTERS = {"sudden-wall": "A", "energy-dilemma": "B", "phantom-object": "C", "evolution": "D"}


def demo_table(results: Sequence[CaseResult]) -> Table:
    """The table for the terminal, with a line of its own for each scenario."""
    table = Table(*COLUMNS, box=None, pad_edge=False)
    last = ""
    for result in results:
        if result.scenario != last:
            title = scenario_named(result.scenario).title
            table.add_row()
            table.add_row(f"[bold]{_LETTERS[result.scenario]} {title}[/]")
            last = result.scenario
        cells = _row(result)
        style = "green" if result.success else "red"
        table.add_row(*cells[:2], f"[{style}]{cells[2]}[/]", *cells[3:])
    return table


def report_text(results: Sequence[CaseResult]) -> str:
    """The table as Markdown, with what was rejected and where each case's logs are."""
    lines = ["# Case study", "", _markdown_row(REPORTED), _markdown_row(["---"] * len(REPORTED))]
    for result in results:
        measures = result.measures
        tokens = measures["prompt_tokens"] + measures["completion_tokens"]
        rejected: dict[str, int] = measures["rejected_by"]
        named = ", ".join(f"{name} {count}" for name, count in rejected.items())
        logs = Path(result.run).name
        row = (result.scenario, *_row(result), f"{tokens:,}", named, logs)
        lines.append(_markdown_row(row))
    note = scripted_note(results)
    return "\n".join([*lines, "", note]).rstrip() + "\n"


def scripted_note(results: Sequence[CaseResult]) -> str:
    """What results of scripted models prove; empty where there are none."""
    if not any(result.model.startswith(f"{SCRIPTED}:") for result in results):
        return ""
    return (
        "Models named scripted: are functions, not language models: these results show what the "
        "code around a fallible model does with its faults, not how well a language model does. "
        "Run a real one: case-study demo --model SPEC."
    )


def _row(result: CaseResult) -> tuple[str, ...]:
    measures = result.measures
    delivery = measures.get("delivery")
    return (
        f"{result.agent}, {delivery}" if delivery else result.agent,
        result.model,
        "yes" if result.success else "no",
        ", ".join(_happenings(result.scenario, measures)),
        str(measures["actions"]),
        str(measures["model_calls"]),
    )


def _happenings(scenario: str, measures: dict[str, Any]) -> Iterator[str]:
    """What the scenario is about, in words."""
    match scenario:
        case "sudden-wall":
            yield f"{measures['repeated_bumps']} repeated bumps"
            if measures["second_episode_bumps"] is not None:
                yield f"{measures['second_episode_bumps']} in episode 2"
        case "energy-dilemma":
            yield "stranded" if measures["stranded"] else "not stranded"
            yield f"{measures['critical_cleans']} critical cleans"
        case "phantom-object":
            yield f"{measures['phantom_proposals']} phantoms wanted"
            yield f"{measures['phantom_attempts']} executed"
            if measures["belief_error"]:
                yield f"belief off by {measures['belief_error']}"
        case _:
            yield f"{measures['violations']} violations"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
