"""The results of several cases as a table, for the terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from case_study.measures import CaseResult
from case_study.temperaments import SCRIPTED
from vacuum_world.scenarios import scenario_named

COLUMNS = ("agent", "model", "success", "what happened", "actions", "calls")
_WIDTHS = (16, 18, 7, 21, 7, 5)
"""Columns of the terminal's table: 79 characters with what is between them."""
REPORTED = ("scenario", *COLUMNS, "tokens", "rejected by", "logs")

_LETTERS = {"sudden-wall": "A", "energy-dilemma": "B", "phantom-object": "C", "evolution": "D"}


def demo_table(results: Sequence[CaseResult]) -> Group:
    """The table for the terminal, in one part per scenario."""
    parts: list[Text | Table] = []
    for scenario, cases in groupby(results, key=lambda result: result.scenario):
        title = f"{_LETTERS[scenario]} {scenario_named(scenario).title} ({scenario})"
        parts += [Text(f"\n{title}", style="bold"), _part(tuple(cases))]
    return Group(*parts)


def _part(results: Sequence[CaseResult]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bright_black")
    for name, width in zip(COLUMNS, _WIDTHS, strict=True):
        table.add_column(name, width=width)
    for result in results:
        cells = [Text(cell) for cell in _row(result)]
        cells[2].stylize("green" if result.success else "red")
        table.add_row(*cells)
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
