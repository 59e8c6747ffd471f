"""A run that is open, also while it is written."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import RLock
from typing import Protocol

from coag.errors import TraceError, UnknownNameError
from coag.inspector.views import CycleRow, CycleView, RunCard, RunState, RunView, Trouble
from coag.schema import Clock, ModelCall, SystemClock
from coag.tracing import RecordKind, RunFolder, RunInfo, TraceIndex, known_cycles

from .cycle import Around, situation_at, view_of
from .rows import Timeline, changes, row_of
from .runs import file_size, within_run

# ---- A trace scanned as far as it is needed, and what is wrong with it ----


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


# ---- One run, read a page at a time ----


_STRIP = 400
"""Cycles up to which all are shown in the overview."""
_ROWS = 2_000
"""Rows that are kept."""
_EARLIER = 3
"""Cycles before one in which requests are looked for that began as its own do."""


class Kin(Protocol):
    """Who knows the runs beside one."""

    def card(self, key: str) -> RunCard:
        """The card of a run."""
        ...

    def parent_of(self, key: str) -> RunCard | None:
        """The run that it was forked from."""
        ...

    def forks_of(self, key: str) -> tuple[RunCard, ...]:
        """The runs that were forked from it."""
        ...


class OpenRun:
    """A run whose trace is read as far as pages ask for it.

    It may be used from several threads; while one reads, the others wait.

    Args:
        key: Names it in addresses.
        folder: Where it is.
        kin: Knows its card, its parent and its forks.
        clock: Measures budgets.
        ahead: Bytes up to which the rest is scanned for a page at once, so that most runs are
            known whole.
    """

    def __init__(
        self,
        key: str,
        folder: RunFolder,
        kin: Kin,
        *,
        clock: Clock | None = None,
        ahead: int = 1 << 24,
    ) -> None:
        self.key = key
        self.folder = folder
        self._kin = kin
        self._clock = clock or SystemClock()
        self._ahead = ahead
        self._lock = RLock()
        self._rows: OrderedDict[int, CycleRow] = OrderedDict()
        """By position; never the last one's, which may change."""
        self._scan = TraceScan(folder, self._rows.clear)

    @property
    def index(self) -> TraceIndex:
        """Where the records of its trace stand, as far as it was scanned."""
        return self._scan.index

    @property
    def info(self) -> RunInfo:
        """What `run.json` says now.

        Raises:
            TraceError: It cannot be read any more.
        """
        card = self._kin.card(self.key)
        if card.info is None:
            raise TraceError(self.folder.path, card.trouble.text if card.trouble else "is no run.")
        return card.info

    @property
    def plain(self) -> bool:
        """True for a run without phases, whose rows are turns."""
        return self.info.kind == "plain"

    # ---- scanning ----

    def advance(self, budget_seconds: float) -> bool:
        """Scans on in the background; True if there is more to scan."""
        end = self._clock.monotonic() + budget_seconds
        while self._clock.monotonic() < end:
            with self._lock:
                if not self._scan.extend():
                    return False
        return True

    # ---- the whole ----

    def view(self, first: int = 0, page_size: int = 50) -> RunView:
        """The run with one page of its rows.

        Args:
            first: Position of the first row, from 0; one beyond the end means the last page.
            page_size: How many rows.

        Raises:
            TraceError: The trace cannot be read; what cannot be read of it is told in `troubles`.
        """
        with self._lock:
            size = min(max(page_size, 1), 1_000)
            self._scan.reach(max(first, 0) + size, self._ahead)
            of = len(self._scan.timeline)
            first = max(first if first < of else (of - 1) // size * size, 0)
            return RunView(
                card=self._kin.card(self.key),
                info=self.info,
                rows=self._page(first, size),
                first=first,
                of=of,
                page_size=size,
                scanned=self._scan.share,
                troubles=self.troubles(),
                parent=self._kin.parent_of(self.key),
                forks=self._kin.forks_of(self.key),
                strip=self._page(0, of) if self._scan.whole and of <= _STRIP else (),
            )

    def rows(self, first: int, count: int) -> tuple[CycleRow, ...]:
        """Some rows, by position from 0; fewer where the run has not as many.

        Raises:
            TraceError: The trace cannot be read.
        """
        with self._lock:
            self._scan.reach(max(first, 0) + count, 0)
            return self._page(max(first, 0), count)

    def _page(self, first: int, count: int) -> tuple[CycleRow, ...]:
        end = min(first + count, len(self._scan.timeline))
        plain = self.plain
        return tuple(self._row(position, plain) for position in range(first, end))

    def _row(self, position: int, plain: bool) -> CycleRow:
        known = self._rows.get(position)
        if known is not None:
            return known
        row = row_of(self.index, self._scan.timeline.span(position), plain=plain)
        if position + 1 < len(self._scan.timeline):
            self._rows[position] = row
            while len(self._rows) > _ROWS:
                self._rows.popitem(last=False)
        return row

    def troubles(self) -> tuple[Trouble, ...]:
        """What is wrong with the trace, as far as it was scanned."""
        with self._lock:
            goes_on = self._kin.card(self.key).state is RunState.OPEN
            return self._scan.troubles(goes_on=goes_on)

    # ---- one cycle ----

    def position_of(self, number: int) -> int:
        """The position of a cycle among the rows, from 0.

        Raises:
            UnknownNameError: There is no such cycle.
        """
        with self._lock:
            found = self._scan.find(number)
            if found is None:
                last = known_cycles(self.info, self.index.last_cycle)
                what = "turn" if self.plain else "cycle"
                raise UnknownNameError(what, str(number), [last])
            return found

    def rows_of(self, number: int) -> tuple[CycleRow, ...]:
        """The row of a cycle; none where it is not among those that were scanned."""
        with self._lock:
            at = self._scan.timeline.find(number)
            return () if at is None else self._page(at, 1)

    def beside(self, number: int) -> tuple[int | None, int | None]:
        """The numbers of the cycles before and after one; None where there is none.

        Raises:
            UnknownNameError: There is no such cycle.
        """
        with self._lock:
            at, timeline = self.position_of(number), self._scan.timeline
            after = timeline.cycle(at + 1) if at + 1 < len(timeline) else None
            return timeline.cycle(at - 1) if at else None, after

    def cycle(self, number: int) -> CycleView:
        """One cycle, of a plain run one turn, with all that happened in it.

        Raises:
            UnknownNameError: There is no such cycle.
            TraceError: The trace cannot be read.
        """
        with self._lock:
            position = self.position_of(number)
            span = self._scan.timeline.span(position)
            situation = situation_at(self.index, span)
            before = self._scan.timeline.span(position - 1) if position else None
            was = situation_at(self.index, before).state if before else situation.state
            more = position + 1 < len(self._scan.timeline)
            around = Around(
                run=self.key,
                plain=self.plain,
                situation=situation,
                changed=changes(was, situation.state),
                earlier=self._earlier(position),
                before=before.cycle if before else None,
                after=self._scan.timeline.cycle(position + 1) if more else None,
            )
            lines = self.index.read(range(span.first, span.end))
            return view_of(lines, number, around)

    def _earlier(self, position: int) -> list[ModelCall]:
        """The requests of a few cycles before one, in order."""
        first = self._scan.timeline.span(max(position - _EARLIER, 0)).first
        positions = [
            at
            for at in range(first, self._scan.timeline.span(position).first)
            if self.index.kind(at) is RecordKind.MODEL_CALL
        ]
        bodies = [line.entry.body for line in self.index.read(positions) if line.entry]
        return [body for body in bodies if isinstance(body, ModelCall)]
