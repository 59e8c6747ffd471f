"""`coag log`: shows the runs, or one run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from coag.errors import TraceError, UnknownNameError
from coag.schema import (
    PHASES,
    Entry,
    Intent,
    ModelCall,
    Phase,
    Receipt,
    TraceRecord,
    Written,
)
from coag.tracing import (
    RunFolder,
    RunInfo,
    TraceProblem,
    cycle_of,
    find_run,
    list_runs,
    read_run,
    read_trace,
)

from ._lines import RunLines
from ._text import cleaned, escaped_json, one_line
from ._totals import Totals

_COLUMNS = ("kind", "agent", "model", "started", "ended")


@dataclass(frozen=True, slots=True)
class _Shown:
    """A record of the trace on its way to the terminal."""

    entry: Entry
    cycle: int
    """The cycle it belongs to; a percept's is that of the record before it."""
    selected: bool
    """True if the options ask for it."""


def show_run(name: str, logs: Path, *, cycle: int | None, phase: str | None, as_json: bool) -> None:
    """Prints one run.

    Args:
        name: What the user typed for the run; see `coag.tracing.find_run`.
        logs: The folder of all runs.
        cycle: Only this cycle.
        phase: Only this phase.
        as_json: Print the records themselves, one a line.

    Raises:
        UnknownNameError: If there is no such run or phase.
        TraceError: If the run cannot be read.
    """
    wanted = None if phase is None else _phase(phase)
    folder = find_run(name, logs)
    problems: list[TraceProblem] = []
    entries = _select(read_trace(folder.trace_path, problems.append), cycle, wanted)
    if as_json:
        for shown in entries:
            if shown.selected:
                sys.stdout.write(escaped_json(shown.entry.model_dump_json()) + "\n")
    else:
        _print_run(folder, entries, partly=cycle is not None or wanted is not None)
    for problem in problems:
        warning = f"{problem.text}: the run was killed, or still goes on."
        Console(stderr=True).print(Text(warning, style="yellow"), soft_wrap=True)


def show_runs(logs: Path, *, as_json: bool) -> None:
    """Prints which runs there are, oldest first.

    Args:
        logs: The folder of all runs.
        as_json: Print each run's `run.json` on a line, instead of a table.

    Raises:
        ConfigurationError: If there is no such folder.
        TraceError: With `as_json`, if a run's `run.json` cannot be read.
    """
    if as_json:
        for folder in list_runs(logs):
            sys.stdout.write(escaped_json(read_run(folder.path).model_dump_json()) + "\n")
        return
    rows = [_row(folder) for folder in list_runs(logs)]
    console = _console()
    if not rows:
        console.print(Text(f"There are no runs in {cleaned(str(logs))} yet."))
        return
    # Ids are for copying: they are never cut, whatever the width of the terminal.
    widest = max(len(row[0]) for row in rows)
    table = Table(Column("run", min_width=widest, no_wrap=True), *_COLUMNS, box=None)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _phase(text: str) -> Phase:
    if text not in PHASES:
        raise UnknownNameError("phase", text, PHASES)
    return Phase(text)


def _select(entries: Iterator[Entry], cycle: int | None, phase: Phase | None) -> Iterator[_Shown]:
    current = 0
    for entry in entries:
        named = cycle_of(entry.body)
        current = current if named is None else named
        selected = (cycle is None or current == cycle) and (
            phase is None or _phase_of(entry.body) is phase
        )
        yield _Shown(entry, current, selected)


def _phase_of(record: TraceRecord) -> Phase | None:
    """The phase in which a record was made, where it says."""
    if isinstance(record, Intent | Receipt | Written):
        return Phase.EXECUTION
    if isinstance(record, ModelCall):
        return record.phase
    return record.phase if record.record == "outcome" else None


def _print_run(folder: RunFolder, entries: Iterator[_Shown], *, partly: bool) -> None:
    console = _console()
    for line in _head(read_run(folder.path)):
        console.print(line, soft_wrap=True)
    lines = RunLines()
    totals = Totals()
    cycle: int | None = None
    for shown in entries:
        texts = lines.of(shown.entry.body)
        if not shown.selected:
            continue
        totals = totals.with_record(shown.entry.body)
        if shown.cycle != cycle and texts and shown.cycle > 0:
            cycle = shown.cycle
            console.print(Text(f"\ncycle {cycle}", style="bold"))
        for text in texts:
            console.print(text, soft_wrap=True)
    end = f"\n{'shown' if partly else 'total'}: {totals.sentence()}"
    console.print(Text(end, style="bold"), soft_wrap=True)


def _head(info: RunInfo) -> Iterator[Text]:
    ended = "not finished" if info.ended_at is None else f"ended {info.ended_at:%Y-%m-%d %H:%M:%S}"
    seed = "" if info.seed is None else f", seed {info.seed}"
    yield Text(one_line(f"{info.id}: {info.kind} agent {info.agent}"), style="bold")
    yield Text(one_line(f"model {info.model}{seed}"))
    yield Text(f"started {info.started_at:%Y-%m-%d %H:%M:%S}, {ended}")


def _row(folder: RunFolder) -> tuple[Text, ...]:
    name = Text(cleaned(folder.path.name), style="bold", no_wrap=True)
    try:
        info = read_run(folder.path)
    except TraceError as error:
        return name, Text(one_line(str(error)), style="red")
    ended = "" if info.ended_at is None else f"{info.ended_at:%Y-%m-%d %H:%M:%S}"
    return (
        name,
        Text(info.kind),
        Text(one_line(info.agent, 40)),
        Text(one_line(info.model, 60)),
        Text(f"{info.started_at:%Y-%m-%d %H:%M:%S}"),
        Text(ended or "not finished", style="" if ended else "yellow"),
    )


def _console() -> Console:
    return Console(highlight=False, markup=False, emoji=False)
