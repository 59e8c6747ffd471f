"""`coag fork`: continues from a phase of a run with something changed; shows both side by side."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from coag._util.text import one_line
from coag.agent import load_factory
from coag.errors import ConfigurationError
from coag.proof import Changes, CycleResult, ForkReport
from coag.proof import fork as forked
from coag.schema import Depth
from coag.tracing import RunFolder, read_run

from .options import AsJson, Logs, Run, Trust
from .output import DIM, screen, write_json
from .runs import found_run, result_beside, warn_if_changed

_SHORT = 80
"""Characters of a reason that a column shows."""
_WIDTH = 120
"""Columns where there is no terminal that has some."""

At = Annotated[
    str,
    typer.Option(
        metavar="CYCLE.PHASE",
        help="The first phase to run again, e.g. `3.evaluation`; `3` means its retrieval.",
    ),
]
OtherModel = Annotated[str | None, typer.Option(metavar="SPEC", help="Continue with this model.")]
OtherDepth = Annotated[
    Depth | None,
    typer.Option(metavar="DEPTH", help="Deliberate like this from there on: full, compact, auto."),
]
WithoutRecord = Annotated[
    list[str] | None,
    typer.Option(metavar="ID", help="As if this record had never been written."),
]
WithoutConstraint = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="This constraint is not in force.")
]
ProcedureText = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=FILE", help="Another text of a procedure, if the gate agrees."),
]
SetValue = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="A value (JSON) in the perceptual state or in working memory, e.g. `battery=30`.",
    ),
]
MoreTurns = Annotated[
    int | None,
    typer.Option(min=0, metavar="N", help="Turns after this one; as many as the parent had."),
]
Live = Annotated[
    bool,
    typer.Option(
        "--live",
        help="Act for real on what the factory built, if that is no copy; asks first.",
    ),
]
YesToLive = Annotated[bool, typer.Option("--yes", help="With --live, do not ask.")]
Into = Annotated[
    Path | None, typer.Option(help="Folder for the fork's run; else beside its parent.")
]


def fork(  # noqa: PLR0913, PLR0917 - a command has as many arguments as options
    run: Run,
    at: At,
    model: OtherModel = None,
    depth: OtherDepth = None,
    without_record: WithoutRecord = None,
    without_constraint: WithoutConstraint = None,
    procedure: ProcedureText = None,
    settings: SetValue = None,
    turns: MoreTurns = None,
    live: Live = False,
    yes: YesToLive = False,
    trust: Trust = None,
    as_json: AsJson = False,
    logs: Logs = Path("logs"),
    into: Into = None,
) -> None:
    """Continues from a phase of a run with something changed; shows both side by side.

    The run itself, its memory and what it did outside are not touched. The options that change
    something may be given together, and all but --model several times.
    """
    changes = Changes.of(
        model=model,
        depth=depth,
        without_records=without_record or (),
        without_constraints=without_constraint or (),
        procedures=procedure or (),
        settings=settings or (),
    )
    folder, trusted = found_run(run, logs), trust or ()
    if live and not yes:
        _confirm(folder)
    warn_if_changed(folder)
    if read_run(folder.path).kind == "coag":
        load_factory(folder, trusted)
    report = asyncio.run(
        forked(folder, at, changes, turns=turns, live=live, logs=into, trust=trusted)
    )
    if as_json:
        write_json(report.model_dump_json())
        return
    console = screen()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WIDTH
    for part in _described(report):
        console.print(part, soft_wrap=isinstance(part, Text))


def _confirm(folder: RunFolder) -> None:
    """Asks at the terminal whether a fork may act for real."""
    if not sys.stdin.isatty():
        raise ConfigurationError(
            "--live lets the fork act for real, and there is no terminal to ask at: add --yes."
        )
    question = (
        f"The fork of {one_line(folder.path.name)} may act for real on what its recipe builds: "
        "what the run did may be done a second time. Continue?"
    )
    if not typer.confirm(question, err=True):
        raise ConfigurationError("Nothing was forked.")


def _described(report: ForkReport) -> Iterator[Text | Table]:
    yield Text(f"{one_line(report.parent.name)} forked at {report.at}", style="bold")
    for change in report.changes:
        yield Text(f"  {one_line(change)}", style="cyan")
    for notice in report.notices:
        yield Text(f"  {one_line(notice)}", style=DIM)
    yield _table(report)
    if report.stopped is not None:
        yield Text(one_line(report.stopped), style="yellow")
    if report.parent_end is not None:
        yield Text(f"parent, before its last cycle: {one_line(report.parent_end)}")
    if report.fork_end is not None:
        yield Text(f"fork, at its end: {one_line(report.fork_end)}")
    yield Text(f"fork: {one_line(str(report.run), 1_000)}", style="bold")


def _table(report: ForkReport) -> Table:
    table = Table(box=None, expand=True, pad_edge=False, padding=(0, 2, 1, 0))
    table.add_column("cycle", no_wrap=True)
    for side in ("parent", "fork"):
        table.add_column(side, ratio=1, overflow="fold")
    parent, own = report.parent_cycles, report.fork_cycles
    columns = zip(_column(parent, own), _column(own, parent, "as in the parent"), strict=True)
    for number, (left, right) in enumerate(columns, report.at.cycle):
        table.add_row(Text(str(number)), left, right)
    return table


def _column(
    own: Sequence[CycleResult], others: Sequence[CycleResult], alike: str = ""
) -> Iterator[Text]:
    """One run's stories beside the other's; one that only repeats the last is not shown again.

    One that is equal to the other's is shown as `alike`, if that is given.
    """
    last: CycleResult | None = None
    for story, other in zip_longest(own, others):
        if story is None:
            yield Text("-", style=DIM)
            continue
        if last is not None and last.model_copy(update={"cycle": story.cycle}) == story:
            cell = Text(f"as in cycle {last.cycle}", style=DIM)
        else:
            cell = _cell(story, [one.result for one in (other, last) if one is not None])
            last = story
        yield Text(alike, style=DIM) if alike and story == other else cell


def _cell(story: CycleResult, others: Sequence[str]) -> Text:
    cell = Text()
    if story.chosen is None:
        cell.append("nothing chosen yet", DIM)
    elif not story.chosen:
        cell.append("impasse", "red")
    else:
        cell.append("; ".join(one_line(str(choice)) for choice in story.chosen), "bold")
        cell.append(f" (by {story.decided_by})", DIM)
    for death in story.deaths:
        reason = one_line(death.reason, _SHORT)
        cell.append(f"\nrejected {one_line(str(death.choice))}: ", "red")
        cell.append(f"{one_line(death.constraint)}: {reason}", "red")
    if story.status not in (None, "none"):
        style = "green" if story.status == "done" else "red"
        result = result_beside(story.result, *others)
        cell.append(f"\n{story.status}: {result}", style)
    return cell
