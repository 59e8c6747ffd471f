"""The trace of a run, scanned as far as it is needed: its cycles, and what is wrong with it."""

from __future__ import annotations

import stat
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from coag.errors import TraceError
from coag.schema import Snapshot
from coag.tracing import RecordKind, RunFolder, TraceIndex

from .views import Trouble


class FileStamp(NamedTuple):
    """What changes when a file grows or is replaced."""

    device: int
    number: int
    modified: int
    size: int


def file_stamp(path: Path) -> FileStamp | None:
    """The stamp of a file; None where it is not there, or is no file but a link."""
    try:
        found = path.lstat()
    except OSError:
        return None
    regular = stat.S_ISREG(found.st_mode)
    return (
        FileStamp(found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size) if regular else None
    )


def _size(path: Path) -> int:
    stamp = file_stamp(path)
    return stamp.size if stamp else 0


def within_run(error: TraceError) -> str:
    """What is wrong with a file of a run, without the folders that it lies in."""
    problem = str(error).removeprefix(f"{error.path}: ")
    return f"{error.path.name} {problem}".rstrip(".") + "."


_LONGEST = 1 << 24
"""Bytes of a snapshot's line above which it is passed over."""


def snapshot_at(index: TraceIndex, position: int) -> Snapshot | None:
    """The snapshot at a position; None for what is none, or is too long to be read.

    Raises:
        TraceError: The trace cannot be read.
    """
    if index.length(position) > _LONGEST:
        return None
    (line,) = index.read([position])
    body = line.entry.body if line.entry else None
    return body if isinstance(body, Snapshot) else None


# ---- The cycles of a trace in order, as its index knows them ----


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleSpan:
    """The lines of one cycle, of a plain run of one turn."""

    cycle: int
    first: int
    """Position of its first line."""
    end: int
    """Position behind its last one."""


class Timeline:
    """Which lines of a trace make up each cycle, of a plain run each turn.

    Neighbouring stretches of one cycle are one: an interrupted turn, and the one that resumed it.
    What is before a cycle and names none belongs to it, and at the end of a trace to the last.

    Args:
        index: Scanned as far as it was; more may come.
    """

    def __init__(self, index: TraceIndex) -> None:
        self._index = index
        self._cycles = array("Q")
        self._firsts = array("Q")
        """The first line of each; it ends where the next one begins."""
        self._taken = 0
        """Stretches that were read and can no longer change."""
        self._free = -1
        """The first line of what is of no cycle yet; -1 for none."""

    def refresh(self) -> None:
        """Reads what the index has scanned since.

        The last stretch may still become another cycle's, so it counts once it names its own.
        """
        while self._taken < self._index.stretches:
            stretch = self._index.stretch(self._taken)
            if stretch.cycle:
                self._begin(stretch.cycle, stretch.first)
            elif self._taken == self._index.stretches - 1:
                return
            elif self._free < 0:
                self._free = stretch.first
            self._taken += 1

    def _begin(self, cycle: int, first: int) -> None:
        if not self._cycles or self._cycles[-1] != cycle:
            self._cycles.append(cycle)
            self._firsts.append(first if self._free < 0 else self._free)
        self._free = -1

    def __len__(self) -> int:
        return len(self._cycles)

    def span(self, position: int) -> CycleSpan:
        """The lines of a cycle.

        Args:
            position: Of the cycle among all, from 0.
        """
        last = position + 1 == len(self._firsts)
        return CycleSpan(
            cycle=self._cycles[position],
            first=self._firsts[position],
            end=self._index.lines if last else self._firsts[position + 1],
        )

    def cycle(self, position: int) -> int:
        """The number of the cycle at a position."""
        return self._cycles[position]

    def find(self, cycle: int) -> int | None:
        """The position of a cycle; None where it is not among those that were scanned.

        Where a damaged trace has it twice, it is the first.
        """
        try:
            return self._cycles.index(cycle)
        except ValueError:
            return None


# ---- A trace scanned as far as it is needed, and what is wrong with it ----


_PIECE = 1 << 20
"""Bytes that are scanned at a time while a page waits."""


class TraceScan:
    """The index of a trace and the cycles in it, which grow by `extend`.

    Args:
        folder: The run's.
        on_replaced: Called when the file turns out to be another one, so that everything known
            of it is void.
    """

    def __init__(self, folder: RunFolder, on_replaced: Callable[[], None]) -> None:
        self._path = folder.trace_path
        self._on_replaced = on_replaced
        self._notices: list[str] = []
        """What happened to the trace while it was read."""
        self._failed = ""
        """Why the trace cannot be read further; empty where it can."""
        self.whole = False
        """True if the last scan came to the end, or cannot continue."""
        self.index = TraceIndex(self._path)
        """Where its records are, as far as it was scanned."""
        self.timeline = Timeline(self.index)
        """The cycles in it."""

    @property
    def share(self) -> float:
        """How much of the trace was scanned; all where it cannot be read further."""
        size = self.index.size
        return 1.0 if self.whole or not size else self.index.scanned / size

    def extend(self) -> bool:
        """Scans a piece more; False at the end, or where it cannot be read further."""
        self._failed, more = "", False
        try:
            if self._path.is_symlink():
                problem = "is a link; only a file within the run's folder is read"
                raise TraceError(self._path, problem)
            if _size(self._path) < self.index.scanned:
                self._restart("was cut while it was read")
            more = self._extended()
        except TraceError as error:
            self._failed = within_run(error)
        self.timeline.refresh()
        self.whole = not more
        return more

    def _extended(self) -> bool:
        """Scans a piece more; of a file that replaced the trace the first piece.

        Raises:
            TraceError: It cannot be read further.
        """
        try:
            return self.index.extend(_PIECE)
        except TraceError:
            if not self.index.void:
                raise
        self._restart(self.index.void)
        return self.index.extend(_PIECE)

    def _restart(self, why: str) -> None:
        self.index = TraceIndex(self._path)
        self.timeline = Timeline(self.index)
        self._on_replaced()
        text = f"The trace {why}, so it was read from its start."
        if text not in self._notices:
            self._notices.append(text)

    def reach(self, count: int, ahead: int) -> None:
        """Scans until so many cycles are known to be whole, or the end is reached.

        Args:
            count: How many cycles.
            ahead: Bytes up to which the rest is scanned as well.
        """
        while self.extend() and len(self.timeline) <= count:
            pass
        while not self.whole and self.index.size - self.index.scanned < ahead:
            self.extend()

    def find(self, cycle: int) -> int | None:
        """The position of a cycle, which is scanned for; None where there is none."""
        self.extend()  # notices whether another file replaced the trace
        possible = 0 < cycle < 1 << 60
        found = self.timeline.find(cycle) if possible else None
        if found is None or found + 1 >= len(self.timeline):
            self._reach_cycle(cycle)
            found = self.timeline.find(cycle) if possible else None
        return found

    def _reach_cycle(self, cycle: int) -> None:
        """Scans until a cycle and the one after it are known, or the end is reached."""
        while self.extend():
            known = len(self.timeline)
            if known > 1 and self.timeline.cycle(known - 1) > cycle:
                return

    def troubles(self, *, is_open: bool) -> tuple[Trouble, ...]:
        """What is wrong with the trace, as far as it was scanned.

        Args:
            is_open: True if the run has not ended.
        """
        if not self.index.scanned:
            self.extend()
        damaged = self.index.count(RecordKind.UNREADABLE)
        grave = damaged == self.index.lines
        found = [Trouble(text=self._failed, grave=grave)] if self._failed else []
        found += [Trouble(text=text) for text in self._notices]
        if not self._failed and not self.index.lines and not self.index.torn:
            found.append(Trouble(text="No record has been written to its trace.", grave=True))
        if self.index.torn:
            found.append(Trouble(text=_torn(is_open)))
        if damaged:
            found.append(Trouble(text=self._damaged(damaged)))
        return tuple(found)

    def _damaged(self, count: int) -> str:
        first = next(self.index.positions(RecordKind.UNREADABLE))
        problems = self.index.read([first])[0].problems
        why = problems[0].text if problems else f"line {first + 1} is no record"
        lines = "1 line" if count == 1 else f"{count:,} lines"
        return f"{lines} cannot be read and left out. The first: {why}"


def _torn(is_open: bool) -> str:
    if is_open:
        return "The last line is half written: the run continues, or it was killed."
    return "The last line is half written, though the run has ended: its end was lost."
