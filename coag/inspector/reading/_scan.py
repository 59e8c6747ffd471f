"""A trace scanned as far as it is needed, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable

from coag.errors import TraceError
from coag.inspector.views import Trouble
from coag.tracing import RecordKind, RunFolder, TraceIndex

from ._folders import within_run
from ._tally import file_size
from ._timeline import Timeline

_PIECE = 1 << 20
"""Bytes that are scanned at a time while a page waits."""


class TraceScan:
    """The index of a trace and the cycles in it, which grow by `extend`.

    Args:
        folder: The run's.
        on_anew: Is called when the trace turned out to be another one, so that all that is known
            of it is void.
    """

    def __init__(self, folder: RunFolder, on_anew: Callable[[], None]) -> None:
        self._path = folder.trace_path
        self._on_anew = on_anew
        self._notices: list[str] = []
        """What happened to the trace while it was read."""
        self._failed = ""
        """Why the trace cannot be read on; empty where it can."""
        self.whole = False
        """True if the last scan came to the end, or cannot go on."""
        self.index = TraceIndex(self._path)
        """Where its records stand, as far as it was scanned."""
        self.timeline = Timeline(self.index)
        """The cycles in it."""

    @property
    def share(self) -> float:
        """How much of the trace was scanned; all where it cannot be read on."""
        size = self.index.size
        return 1.0 if self.whole or not size else self.index.scanned / size

    def extend(self) -> bool:
        """Scans a piece more; False at the end, or where it cannot be read on."""
        self._failed, more = "", False
        try:
            if self._path.is_symlink():
                problem = "is a link; only a file within the run's folder is read"
                raise TraceError(self._path, problem)
            if file_size(self._path) < self.index.scanned:
                self._anew("was cut while it was read")
            more = self._extended()
        except TraceError as error:
            self._failed = within_run(error)
        self.timeline.refresh()
        self.whole = not more
        return more

    def _extended(self) -> bool:
        """Scans a piece more, of a file that took the trace's place the first.

        Raises:
            TraceError: It cannot be read on.
        """
        try:
            return self.index.extend(_PIECE)
        except TraceError:
            if not self.index.void:
                raise
        self._anew(self.index.void)
        return self.index.extend(_PIECE)

    def _anew(self, why: str) -> None:
        self.index = TraceIndex(self._path)
        self.timeline = Timeline(self.index)
        self._on_anew()
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
        self.extend()  # sees whether another file took the trace's place
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

    def troubles(self, *, goes_on: bool) -> tuple[Trouble, ...]:
        """What is wrong with the trace, as far as it was scanned.

        Args:
            goes_on: True if the run has not ended.
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
            found.append(Trouble(text=_torn(goes_on)))
        if damaged:
            found.append(Trouble(text=self._damaged(damaged)))
        return tuple(found)

    def _damaged(self, count: int) -> str:
        first = next(self.index.positions(RecordKind.UNREADABLE))
        problems = self.index.read([first])[0].problems
        why = problems[0].text if problems else f"line {first + 1} is no record"
        lines = "1 line" if count == 1 else f"{count:,} lines"
        return f"{lines} cannot be read and left out. The first: {why}"


def _torn(goes_on: bool) -> str:
    if goes_on:
        return "The last line is half written: the run goes on, or it was killed."
    return "The last line is half written, though the run has ended: its end was lost."
