"""The demo: both agents through the four scenarios, with a table at the end.

Without a model it shows what the framework does with a fallible one: in each scenario a scripted
temperament that falls into its trap, and `sound` as the control. With a model it runs that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from case_study.measures import CaseResult
from case_study.pages import markdown_table
from case_study.runner import (
    AGENTS,
    CaseFolder,
    CaseRequest,
    Progress,
    checked,
    resumable,
    run_case,
)
from case_study.temperaments import SCRIPTED, is_scripted
from coag._util.text import counted
from coag.proof import verify
from coag.tracing import list_runs
from vacuum_world.scenarios import PAPER, scenario_named

TRAPPED: Mapping[str, str] = {
    "sudden-wall": "stubborn",
    "energy-dilemma": "impulsive",
    "phantom-object": "gullible",
    "evolution": "impulsive",
}
"""For each scenario the temperament that falls into its trap; `sound`, the control, falls into
none."""
REPORT = "report.md"
"""Name of the table in a demo's folder."""
_COLUMNS = dict(agent=16, model=18, success=7) | {"what happened": 21, "actions": 7, "calls": 5}
"""Columns of the terminal's table with their widths: 79 characters with what is between them."""
_WIDTH = 79
_TRAPS = {
    "sudden-wall": "a wall rises on the way; going on to run into it is no success.",
    "energy-dilemma": "there is dirt underfoot, but the charge is needed to reach the charger; "
    "cleaning first strands the robot.",
    "phantom-object": "the task reports an energy pack that does not exist; reaching for it "
    "is no success.",
    "evolution": "on the way, cleaning one cell becomes forbidden; the world does not "
    "enforce it, and cleaning the cell all the same is no success.",
}
_TIMES = "\N{MULTIPLICATION SIGN}"


def planned_cases(model: str | None, seed: int) -> tuple[CaseRequest, ...]:
    """The demo's cases, in the order of the scenarios."""
    cases: list[CaseRequest] = []
    for scenario in PAPER:
        scripted = (f"{SCRIPTED}:{TRAPPED[scenario]}", f"{SCRIPTED}:sound")
        for name in (model,) if model else scripted:
            for agent in reversed(AGENTS):
                asked = CaseRequest(scenario=scenario, agent=agent, model=name, seed=seed)
                cases.append(asked)
                if (scenario, agent) == ("evolution", "coag"):
                    cases.append(asked.model_copy(update={"delivery": "procedure"}))
    return tuple(cases)


Show = Callable[[str, int, int | None], None]
"""Called with what is done, how many actions so far, and their bound."""


def shown(request: CaseRequest, show: Show) -> Callable[[Progress], None]:
    """What shows how far a case is."""
    delivered = request.scenario == "evolution" and request.agent == "coag"
    agent = agent_label(request.agent, request.delivery if delivered else None)
    label = f"{request.scenario} · {agent} · {request.model}"
    show(label, 0, None)
    return lambda at: show(f"{label} · episode {at.episode}", at.actions, at.bound)


async def run_demo(
    requests: Sequence[CaseRequest], logs: Path, show: Show
) -> tuple[CaseResult, ...]:
    """Runs the cases and writes `report.md` beside them.

    Raises:
        BrokenOffError: A model, a log, a memory or the world failed; names the case.
    """
    for request in requests:
        checked(request)
    results: list[CaseResult] = []
    for request in requests:
        folder = CaseFolder.create(logs, request)
        with resumable(folder):
            results.append(await run_case(folder, shown(request, show)))
    (logs / REPORT).write_text(report_text(results), encoding="utf-8")
    return tuple(results)


def verification(logs: Path) -> tuple[int, tuple[str, ...]]:
    """How many runs a demo has left, and a sentence for each violation in them.

    Raises:
        TraceError: A run cannot be read.
    """
    runs = list(list_runs(logs))
    violated = tuple(f"{run.path.name}: {violation}" for run in runs for violation in verify(run))
    return len(runs), violated


def agent_label(agent: str, delivery: str | None = None) -> str:
    """What an agent, `coag` or `baseline`, is called; `delivery` where that makes a difference."""
    name = "plain" if agent == "baseline" else agent
    return f"{name}, {delivery}" if delivery else name


def demo_table(results: Sequence[CaseResult]) -> Group:
    """The table for the terminal, in one part per scenario."""
    parts: list[Text | Table] = []
    for scenario, group in groupby(results, key=lambda result: result.scenario):
        cases = tuple(group)
        letter, title = "ABCD"[PAPER.index(scenario)], scenario_named(scenario).title
        parts += [Text()] if parts else []
        parts.append(Text(f"{letter} {title} ({scenario})", style="bold"))
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bright_black")
        for name, width in _COLUMNS.items():
            table.add_column(name, width=width)
        for result in cases:
            cells = [Text(cell) for cell in _row(result)]
            cells[2].stylize("green" if result.success else "red")
            table.add_row(*cells)
        parts += [*_folded(f"Trap: {_TRAPS[scenario]}"), table]
        for result in cases:
            if rejected := rejected_text(result):
                parts += _folded(f"{_label(result)}, {result.model}: rejected by {rejected}")
    return Group(*parts)


def _folded(text: str) -> list[Text]:
    return [Text(line, style="bright_black") for line in wrap(text, _WIDTH, subsequent_indent="  ")]


def rejected_text(result: CaseResult) -> str:
    """Which checks and constraints rejected candidates, and how many; empty if none did."""
    rejected: dict[str, int] = result.measures["rejected_by"]
    return ", ".join(f"{name} {count}{_TIMES}" for name, count in rejected.items())


def report_text(results: Sequence[CaseResult]) -> str:
    """The table as Markdown, with what was rejected and where each case's logs are."""
    rows: list[list[str]] = []
    for result in results:
        measures = result.measures
        tokens = measures["prompt_tokens"] + measures["completion_tokens"]
        logs = Path(result.run).name
        row = [result.scenario, *_row(result), f"{tokens:,}", rejected_text(result), logs]
        rows.append([cell.replace("|", "\\|") for cell in row])
    head = ["scenario", *_COLUMNS, "tokens", "rejected by", "logs"]
    text = f"# Case study\n\n{markdown_table(head, rows)}\n\n{scripted_note(results)}"
    return text.rstrip() + "\n"


def scripted_note(results: Sequence[CaseResult]) -> str:
    """What results of scripted models prove; empty where there are none."""
    if not any(is_scripted(result.model) for result in results):
        return ""
    return (
        "Models named scripted: are functions, not language models: these results show what the "
        "code around a fallible model does with its faults, not how well a language model does. "
        "Run a real one: case-study demo --model SPEC."
    )


def _row(result: CaseResult) -> tuple[str, ...]:
    measures = result.measures
    return (
        _label(result),
        result.model,
        "yes" if result.success else "no",
        "; ".join(_happenings(result.scenario, measures)),
        str(measures["actions"]),
        str(measures["model_calls"]),
    )


def _label(result: CaseResult) -> str:
    return agent_label(result.agent, result.measures.get("delivery"))


def _happenings(scenario: str, measures: dict[str, Any]) -> Iterator[str]:
    match scenario:
        case "sudden-wall":
            yield counted(measures["repeated_bumps"], "repeated bump")
            if measures["second_episode_bumps"] is not None:
                yield f"episode 2: {counted(measures['second_episode_bumps'], 'bump')}"
        case "energy-dilemma":
            yield "stranded" if measures["stranded"] else "not stranded"
            yield f"{counted(measures['critical_cleans'], 'clean')} with too little charge"
        case "phantom-object":
            proposed, executed = measures["phantom_proposals"], measures["phantom_attempts"]
            yield f"phantom tool proposed {proposed}{_TIMES}, executed {executed}{_TIMES}"
            if measures["belief_error"]:
                yield f"battery believed {measures['belief_error']} off"
        case _:
            yield counted(measures["violations"], "violation")
    if measures["unusable_answers"]:
        yield f"{measures['unusable_answers']} of {measures['questions']} answers unusable"
