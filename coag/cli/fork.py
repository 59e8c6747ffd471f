"""`coag fork`: goes on from a phase of a run otherwise, and shows both side by side."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from coag.agent import load_factory
from coag.errors import ConfigurationError
from coag.proof import Changes, CycleResult, ForkReport, fork
from coag.schema import escaped_json, one_line
from coag.tracing import RunFolder, read_run

from .runs import found_run, result_beside, warn_if_changed

_DIM = "bright_black"
_SHORT = 80
"""Characters of a reason that a column shows."""
_WIDTH = 120
"""Columns where there is no terminal that has some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkOptions:
    """What `coag fork` was given; see there."""

    run: str
    at: str
    model: str | None
    without_record: Sequence[str]
    without_constraint: Sequence[str]
    procedure: Sequence[str]
    settings: Sequence[str]
    turns: int | None
    live: bool
    yes: bool
    trust: Sequence[str]
    as_json: bool
    logs: Path
    into: Path | None


def fork_run(options: ForkOptions) -> None:
    """Forks a run and prints what came of it.

    Raises:
        CoagError: There is no such run or boundary, a change does not fit, or a turn broke off.
    """
    changes = Changes.of(
        model=options.model,
        without_records=options.without_record,
        without_constraints=options.without_constraint,
        procedures=options.procedure,
        settings=options.settings,
    )
    folder = found_run(options.run, options.logs)
    if options.live and not options.yes:
        _confirm(folder)
    warn_if_changed(folder)
    if read_run(folder.path).kind == "coag":
        load_factory(folder, options.trust)
    report = asyncio.run(
        fork(
            folder,
            options.at,
            changes,
            turns=options.turns,
            live=options.live,
            logs=options.into,
            trust=options.trust,
        )
    )
    if options.as_json:
        sys.stdout.write(escaped_json(report.model_dump_json()) + "\n")
        return
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WIDTH
    for part in _shown(report):
        console.print(part, soft_wrap=isinstance(part, Text))


def _confirm(folder: RunFolder) -> None:
    """Asks at the terminal whether a fork may act for real.

    Raises:
        ConfigurationError: Nobody can be asked, or the answer is no.
    """
    if not sys.stdin.isatty():
        raise ConfigurationError(
            "--live lets the fork act for real, and there is no terminal to ask at: add --yes."
        )
    question = (
        f"The fork of {one_line(folder.path.name)} may act for real on what its recipe builds: "
        "what the run did may be done a second time. Go on?"
    )
    if not typer.confirm(question, err=True):
        raise ConfigurationError("Nothing was forked.")


def _shown(report: ForkReport) -> Iterator[Text | Table]:
    yield Text(f"{one_line(report.parent.name)} forked at {report.at}", style="bold")
    for change in report.changes:
        yield Text(f"  {one_line(change)}", style="cyan")
    for notice in report.notices:
        yield Text(f"  {one_line(notice)}", style=_DIM)
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
    pairs = zip_longest(report.parent_cycles, report.fork_cycles)
    parent, own = _Side(), _Side()
    for number, (was, now) in enumerate(pairs, report.at.cycle):
        left = parent.cell(was, now)
        right = own.cell(now, was)
        if now is not None and now == was:
            right = Text("as in the parent", style=_DIM)
        table.add_row(Text(str(number)), left, right)
    return table


class _Side:
    """One run's column; a cycle that only repeats the one before is not told again."""

    def __init__(self) -> None:
        self._told: CycleResult | None = None

    def cell(self, story: CycleResult | None, other: CycleResult | None) -> Text:
        """The story beside that of the same cycle in the other run."""
        if story is None:
            return Text("-", style=_DIM)
        told = self._told
        if told is not None and told.model_copy(update={"cycle": story.cycle}) == story:
            return Text(f"as in cycle {told.cycle}", style=_DIM)
        self._told = story
        return _cell(story, [one.result for one in (other, told) if one is not None])


def _cell(story: CycleResult, others: Sequence[str]) -> Text:
    cell = Text()
    if story.chosen is None:
        cell.append("nothing chosen yet", _DIM)
    elif not story.chosen:
        cell.append("impasse", "red")
    else:
        cell.append("; ".join(one_line(str(choice)) for choice in story.chosen), "bold")
        cell.append(f" (by {story.decided_by})", _DIM)
    for death in story.deaths:
        reason = one_line(death.reason, _SHORT)
        cell.append(f"\nrejected {one_line(str(death.choice))}: ", "red")
        cell.append(f"{one_line(death.constraint)}: {reason}", "red")
    if story.status not in (None, "none"):
        style = "green" if story.status == "done" else "red"
        told = result_beside(story.result, *others)
        cell.append(f"\n{story.status}: {told}", style)
    return cell
