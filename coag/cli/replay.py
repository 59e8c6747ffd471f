"""`coag replay`: runs recorded runs again, with no model and no world."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from coag.agent import load_factory
from coag.errors import CoagError
from coag.proof import ReplayReport, replay
from coag.schema import escaped_json, one_line
from coag.tracing import RunFolder, list_runs

from .runs import found_run, runs_below

_DIVERGED = 1
"""Exit code where a replay differs, or a run of several cannot be replayed."""
_VALUE = 320
"""Characters of a value that are printed."""


def replay_runs(names: Sequence[str], logs: Path, *, as_json: bool, trust: Sequence[str]) -> int:
    """Replays runs and prints how far each is the same.

    Args:
        names: What the user typed for runs, or for folders of runs.
        logs: The folder of all runs.
        as_json: Print one JSON object per run.
        trust: Modules whose code the runs may name.

    Returns:
        The exit code: 0 if every replay is the same, 1 if not.

    Raises:
        UnknownNameError: If there is no such run.
        ConfigurationError: If several runs may be meant.
        ResumeError: If the only run cannot be built again.
        TraceError: If the trace of the only run cannot be read.
    """
    runs = [run for name in names for run in _named(name, logs)]
    console = Console(highlight=False, markup=False, emoji=False)
    differing = 0
    for run in runs:
        try:
            load_factory(run, trust)
            report = asyncio.run(replay(run, trust=trust))
        except CoagError as error:
            if len(runs) == 1:
                raise
            differing += 1
            _show_error(run, error, console, as_json=as_json)
            continue
        differing += not report.same
        if as_json:
            _write({**asdict(report), "same": report.same})
            continue
        for line in _lines(report, short=len(runs) > 1):
            console.print(line, soft_wrap=True)
    if len(runs) > 1 and not as_json:
        console.print(_sum(len(runs), differing), soft_wrap=True)
    return _DIVERGED if differing else 0


def _named(name: str, logs: Path) -> list[RunFolder]:
    holder = runs_below(name, logs)
    return [found_run(name, logs)] if holder is None else list(list_runs(holder))


def _show_error(run: RunFolder, error: CoagError, console: Console, *, as_json: bool) -> None:
    if as_json:
        _write({"run": run.path.name, "same": False, "error": str(error)})
        return
    text = f"{one_line(run.path.name)}: not replayed: {one_line(str(error), 1_000)}"
    console.print(Text(text, style="red"), soft_wrap=True)


def _write(told: dict[str, Any]) -> None:
    sys.stdout.write(escaped_json(json.dumps(told, ensure_ascii=False)) + "\n")


def _lines(report: ReplayReport, *, short: bool) -> Iterator[Text]:
    """What came of one replay, foreign text made harmless."""
    name = one_line(report.run)
    records = f"{report.records} record{'' if report.records == 1 else 's'}"
    found = report.divergence
    if found is None:
        taken = len(report.remarks)
        rest = f", {taken} remark{'' if taken == 1 else 's'}" if short and taken else ""
        yield Text(f"{name}: no divergence, {records} alike{rest}", style="green")
    else:
        where = f"cycle {found.cycle}, {found.phase or 'between phases'}, {found.record}"
        yield Text(
            f"{name}: diverges at record {found.seq + 1} ({where}) in {one_line(found.field)}; "
            f"{records} before it alike",
            style="bold red",
        )
    if short:
        return
    if found is not None:
        yield Text(f"  recorded: {one_line(found.recorded, _VALUE)}")
        yield Text(f"  replayed: {one_line(found.replayed, _VALUE)}")
        yield Text(f"  {found.meaning}")
    if report.remarks:
        yield Text("  Taken from the trace:", style="bright_black")
    for remark in report.remarks:
        yield Text(f"  - {one_line(remark)}", style="bright_black")


def _sum(runs: int, differing: int) -> Text:
    if differing:
        return Text(f"{runs} runs, {differing} of them not the same", style="bold red")
    return Text(f"{runs} runs, no divergence", style="green")
