"""`coag log`: shows the runs, or one run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from coag.errors import ConfigurationError, UnknownNameError
from coag.schema import (
    PHASES,
    Entry,
    Intent,
    ModelCall,
    Phase,
    Receipt,
    TraceRecord,
    Written,
    escaped_json,
    one_line,
)
from coag.tracing import (
    Parent,
    ProblemKind,
    RunFolder,
    RunInfo,
    TraceProblem,
    cycle_of,
    entry_of,
    known_cycles,
    read_run,
    read_trace,
)

from ._follow import followed
from ._lines import RunLines
from ._runs import found_run, runs_below, show_runs
from ._totals import Totals

_TOLD = 5
"""How many problems are told one by one."""
_MEANS = {ProblemKind.TRUNCATED: ": the run was killed, or still goes on"}
"""What a problem means for the run, where its sentence does not say."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """A record of the trace on its way to the terminal."""

    entry: Entry
    cycle: int
    """The cycle it belongs to; a percept's is that of the record before it."""
    selected: bool
    """True if the options ask for it."""


class _Problems:
    """What is wrong with the trace that is shown, told below it."""

    def __init__(self) -> None:
        self._first: list[TraceProblem] = []
        self._count = 0

    def take(self, problem: TraceProblem) -> None:
        self._count += 1
        if len(self._first) < _TOLD:
            self._first.append(problem)

    def show(self) -> None:
        console = Console(stderr=True)
        for problem in self._first:
            means = _MEANS.get(problem.kind, "")
            console.print(Text(f"{problem.text}{means}.", style="yellow"), soft_wrap=True)
        if self._count > len(self._first):
            more = f"… and {self._count - len(self._first)} more lines like that."
            console.print(Text(more, style="yellow"), soft_wrap=True)


def show_run(
    name: str,
    logs: Path,
    *,
    cycle: int | None,
    phase: str | None,
    as_json: bool,
    follow: bool = False,
) -> None:
    """Prints one run, or which runs a folder holds.

    Args:
        name: What the user typed for the run; see `coag.tracing.find_run`. Or a folder of runs.
        logs: The folder of all runs.
        cycle: Only this cycle.
        phase: Only this phase.
        as_json: Print the records themselves, one a line.
        follow: Show what comes as well, until the run ends or Ctrl-C.

    Raises:
        UnknownNameError: If there is no such run or phase.
        ConfigurationError: If the run has no such cycle, or several runs may be meant.
        TraceError: If the run cannot be read.
    """
    wanted = None if phase is None else _phase(phase)
    holder = runs_below(name, logs)
    if holder is not None:
        if cycle is not None or wanted is not None or follow:
            raise ConfigurationError(
                f"{str(holder)!r} holds runs and is none itself: name one of them with --cycle, "
                f"--phase and --follow. `coag log {holder}` lists them."
            )
        show_runs(holder, as_json=as_json)
        return
    folder = found_run(name, logs)
    if cycle is not None and not follow:
        _check_cycle(folder, cycle)
    problems = _Problems()
    entries = _select(_entries(folder, problems, follow=follow), cycle, wanted)
    try:
        if as_json:
            _print_json(entries)
        else:
            _print_run(folder, entries, partly=cycle is not None or wanted is not None)
    except KeyboardInterrupt:
        if not follow:
            raise
    problems.show()


def _entries(folder: RunFolder, problems: _Problems, *, follow: bool) -> Iterator[Entry]:
    if follow:
        return followed(folder, lambda line: entry_of(line, problems.take))
    return read_trace(folder.trace_path, problems.take)


def _print_json(entries: Iterator[_Shown]) -> None:
    for shown in entries:
        if shown.selected:
            sys.stdout.write(escaped_json(shown.entry.model_dump_json()) + "\n")
            sys.stdout.flush()


def _phase(text: str) -> Phase:
    if text.casefold() not in PHASES:
        raise UnknownNameError("phase", text, PHASES)
    return Phase(text.casefold())


def _check_cycle(folder: RunFolder, cycle: int) -> None:
    info = read_run(folder.path)
    entries = read_trace(folder.trace_path, lambda problem: None)
    last = max((cycle_of(entry.body) or 0 for entry in entries), default=0)
    first = 0 if info.parent is None else info.parent.cycle
    if not first <= cycle <= last:
        known = known_cycles(info, last)
        raise ConfigurationError(f"Run {info.id!r} has {known}: no cycle {cycle}.")


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
    info = read_run(folder.path)
    for line in _head(info):
        console.print(line, soft_wrap=True)
    plain = info.kind == "plain"
    lines = RunLines(plain=plain)
    totals = Totals()
    cycle: int | None = None
    cycles: set[int] = set()
    for shown in entries:
        texts = lines.of(shown.entry.body)
        if not shown.selected:
            continue
        totals = totals.with_record(shown.entry.body)
        if texts and shown.cycle > 0:
            cycles.add(shown.cycle)
        if shown.cycle != cycle and texts and shown.cycle > 0:
            cycle = shown.cycle
            console.print(Text(f"\ncycle {cycle}", style="bold"))
        for text in texts:
            console.print(text, soft_wrap=True)
    if partly or plain:
        totals = replace(totals, cycles=len(cycles))
    summed = f"shown: {totals.shown()}" if partly else f"total: {totals.sentence()}"
    end = f"\n{summed}"
    console.print(Text(end, style="bold"), soft_wrap=True)


def _head(info: RunInfo) -> Iterator[Text]:
    ended = "not finished" if info.ended_at is None else f"ended {info.ended_at:%Y-%m-%d %H:%M:%S}"
    about = [f"model {info.model}"] if info.model else []
    about += [] if info.seed is None else [f"seed {info.seed}"]
    yield Text(one_line(f"{info.id}: {info.kind} agent {info.agent}"), style="bold")
    if about:
        yield Text(one_line(", ".join(about)))
    if info.parent is not None:
        yield Text(one_line(_origin(info.parent)))
    yield Text(f"started {info.started_at:%Y-%m-%d %H:%M:%S}, {ended}")


def _origin(parent: Parent) -> str:
    changes = "".join(f", {change}" for change in parent.changes)
    return f"forked from {parent.run} at {parent.cycle}.{parent.phase}{changes}"


def _console() -> Console:
    return Console(highlight=False, markup=False, emoji=False)
