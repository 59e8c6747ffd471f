"""The trace of a run, scanned as far as it is needed: its cycles, and what is wrong with it."""

from __future__ import annotations

import stat
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from coag.errors import TraceError
from coag.schema import Snapshot, TraceRecord
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
        status = path.lstat()
    except OSError:
        return None
    stamp = FileStamp(status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
    return stamp if stat.S_ISREG(status.st_mode) else None


def within_run(error: TraceError) -> str:
    """What is wrong with a file of a run, without its folders."""
    problem = str(error).removeprefix(f"{error.path}: ")
    return f"{error.path.name} {problem}".rstrip(".") + "."


# ---- What is in a trace; each raises a TraceError where it cannot be read ----


_LONGEST = 1 << 24
"""Bytes of a snapshot's line above which it is passed over."""
LOOKED_BACK = 32
"""Snapshots in which the state of the environment is looked for."""


def bodies(index: TraceIndex, positions: Iterable[int]) -> list[TraceRecord]:
    """The records at some positions, without lines that cannot be read."""
    wanted = list(positions)
    lines = index.read(wanted) if wanted else []
    return [line.entry.body for line in lines if line.entry is not None]


def snapshot_at(index: TraceIndex, position: int) -> Snapshot | None:
    """The snapshot at a position; None for what is none, or is too long to be read."""
    if index.length(position) > _LONGEST:
        return None
    (body,) = bodies(index, [position]) or (None,)
    return body if isinstance(body, Snapshot) else None


def environment_at(index: TraceIndex, position: int) -> Any:
    """The last state of the environment before a position; None where the trace has none."""
    for at in islice(index.environments(position), LOOKED_BACK):
        snapshot = snapshot_at(index, at)
        if snapshot is not None and snapshot.environment is not None:
            return snapshot.environment
    return None


# ---- A trace scanned as far as it is needed ----


_PIECE = 1 << 20
"""Bytes that are scanned at a time while a page waits."""


@dataclass(frozen=True, slots=True)
class CycleSpan:
    """The positions of the lines of one cycle, of a plain run of one turn."""

    cycle: int
    lines: range


class TraceScan:
    """The index of a trace and the cycles in it, in order, which grow by `extend`.

    Neighbouring stretches of one cycle are one: an interrupted turn, and the one that resumed it.
    What is before a cycle and names none belongs to it, and at the end of a trace to the last.
    Where the file turns out to be another one, everything known of it is void: `on_replaced`.
    """

    def __init__(self, folder: RunFolder, on_replaced: Callable[[], None]) -> None:
        self._path = folder.trace_path
        self._on_replaced = on_replaced
        self._notices: list[str] = []
        """What happened to the trace while it was read."""
        self._failed = ""
        """Why the trace cannot be read further; empty where it can."""
        self.whole = False
        """True if the last scan reached the end, or cannot continue."""
        self._begin()

    def _begin(self) -> None:
        self.index = TraceIndex(self._path)
        self._cycles, self._firsts = array("Q"), array("Q")
        """Each cycle, and its first line; it ends where the next one begins."""
        self._taken = 0
        """Stretches that were read and can no longer change."""
        self._free = -1
        """The first line of what is of no cycle yet; -1 for none."""

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
            stamp = file_stamp(self._path)
            if (stamp.size if stamp else 0) < self.index.scanned:
                self._restart("was cut while it was read")
            try:
                more = self.index.extend(_PIECE)
            except TraceError:
                if not self.index.void:
                    raise
                self._restart(self.index.void)
                more = self.index.extend(_PIECE)
        except TraceError as error:
            self._failed = within_run(error)
        self._take()
        self.whole = not more
        return more

    def _restart(self, why: str) -> None:
        self._begin()
        self._on_replaced()
        text = f"The trace {why}, so it was read from its start."
        if text not in self._notices:
            self._notices.append(text)

    def _take(self) -> None:
        """The last stretch may still become another cycle's, so it counts once it names its own."""
        for number in range(self._taken, self.index.stretches):
            stretch = self.index.stretch(number)
            if not stretch.cycle and number == self.index.stretches - 1:
                return
            if not stretch.cycle:
                self._free = stretch.first if self._free < 0 else self._free
            else:
                if not self._cycles or self._cycles[-1] != stretch.cycle:
                    self._cycles.append(stretch.cycle)
                    self._firsts.append(stretch.first if self._free < 0 else self._free)
                self._free = -1
            self._taken += 1

    # ---- its cycles ----

    def __len__(self) -> int:
        return len(self._cycles)

    def span(self, position: int) -> CycleSpan:
        """The lines of a cycle, by its position among all, from 0."""
        last = position + 1 == len(self._firsts)
        end = self.index.lines if last else self._firsts[position + 1]
        return CycleSpan(self._cycles[position], range(self._firsts[position], end))

    def number_at(self, position: int) -> int | None:
        """The number of the cycle at a position; None where there is none."""
        return self._cycles[position] if 0 <= position < len(self._cycles) else None

    def known(self, cycle: int) -> int | None:
        """The position of a cycle among those that were scanned; the first where it is twice."""
        try:
            return self._cycles.index(cycle)
        except (ValueError, OverflowError):
            return None

    def find(self, cycle: int) -> int | None:
        """The position of a cycle, which is scanned for; None where there is none."""
        self.extend()  # notices whether another file replaced the trace
        first = self.known(cycle)
        if first is None or first + 1 >= len(self):
            while self.extend() and not (len(self) > 1 and self._cycles[-1] > cycle):
                pass
            first = self.known(cycle)
        return first

    def reach(self, count: int, ahead: int) -> None:
        """Scans until so many cycles are known to be whole, and on where few bytes are left."""
        while self.extend() and len(self) <= count:
            pass
        while not self.whole and self.index.size - self.index.scanned < ahead:
            self.extend()

    # ---- what is wrong with it ----

    def troubles(self, *, is_open: bool) -> tuple[Trouble, ...]:
        """What is wrong with the trace of a run that has ended or not, as far as it was scanned."""
        damaged = self.index.count(RecordKind.UNREADABLE)
        troubles = [Trouble(text=text) for text in self._notices]
        if self._failed:
            troubles.insert(0, Trouble(text=self._failed, grave=damaged == self.index.lines))
        elif not self.index.lines and not self.index.torn:
            troubles.append(Trouble(text="No record has been written to its trace.", grave=True))
        if self.index.torn:
            why = "the run continues, or it was killed" if is_open else ""
            lost = "The last line is half written, though the run has ended: its end was lost."
            troubles.append(Trouble(text=f"The last line is half written: {why}." if why else lost))
        if damaged:
            first = next(self.index.positions(RecordKind.UNREADABLE))
            problems = self.index.read([first])[0].problems
            why = problems[0].text if problems else f"line {first + 1} is no record"
            lines = "1 line" if damaged == 1 else f"{damaged:,} lines"
            text = f"{lines} cannot be read and left out. The first: {why}"
            troubles.append(Trouble(text=text))
        return tuple(troubles)
