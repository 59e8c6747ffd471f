"""`coag replay`: runs recorded runs again, with no model and no world."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from coag._util.text import counted, one_line
from coag.agent import load_factory
from coag.errors import CoagError
from coag.proof import ReplayReport
from coag.proof import replay as replayed
from coag.tracing import RunFolder

from .options import Logs, SeveralRuns, Trust
from .output import DIM, show, write_json
from .runs import failing, runs_named

_DIVERGED = 1
"""Exit code where a replay differs, or a run of several cannot be replayed."""
_VALUE = 320
"""Characters of a value that are printed."""


def replay(
    runs: SeveralRuns,
    trust: Trust = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object per run, for programs.")
    ] = False,
    logs: Logs = Path("logs"),
) -> None:
    """Runs a run again with no model and no world; says where it first differs.

    The trace answers for models, tools, approvals and recall. Exit code 0: no divergence; 1: it
    differs; 2: it cannot be replayed.
    """
    folders = [one for name in runs for one in runs_named(name, logs)]

    def same(one: RunFolder) -> bool:
        load_factory(one, trust or ())
        report = asyncio.run(replayed(one, trust=trust or ()))
        if as_json:
            write_json({**asdict(report), "same": report.same})
        else:
            show(_lines(report, short=len(folders) > 1))
        return report.same

    differing = failing(folders, same, partial(_show_error, as_json=as_json))
    if len(folders) > 1 and not as_json:
        if differing:
            text = f"{len(folders)} runs, {differing} of them not the same"
            show([Text(text, style="bold red")])
        else:
            show([Text(f"{len(folders)} runs, no divergence", style="green")])
    raise typer.Exit(_DIVERGED if differing else 0)


def _show_error(run: RunFolder, error: CoagError, *, as_json: bool) -> None:
    if as_json:
        write_json({"run": run.path.name, "same": False, "error": str(error)})
    else:
        text = f"{one_line(run.path.name)}: not replayed: {one_line(str(error), 1_000)}"
        show([Text(text, style="red")])


def _lines(report: ReplayReport, *, short: bool) -> Iterator[Text]:
    """The result of one replay, foreign text made harmless."""
    name, records, diff = one_line(report.run), counted(report.records, "record"), report.divergence
    if diff is None:
        taken = len(report.remarks)
        rest = f", {counted(taken, 'remark')}" if short and taken else ""
        yield Text(f"{name}: no divergence, {records} alike{rest}", style="green")
    else:
        where = f"cycle {diff.cycle}, {diff.phase or 'between phases'}, {diff.record}"
        yield Text(
            f"{name}: diverges at record {diff.seq + 1} ({where}) in {one_line(diff.field)}; "
            f"{records} before it alike",
            style="bold red",
        )
    if short:
        return
    if diff is not None:
        yield Text(f"  recorded: {one_line(diff.recorded, _VALUE)}")
        yield Text(f"  replayed: {one_line(diff.replayed, _VALUE)}")
        yield Text(f"  {diff.meaning}")
    if report.remarks:
        yield Text("  Taken from the trace:", style=DIM)
    for remark in report.remarks:
        yield Text(f"  - {one_line(remark)}", style=DIM)
