"""One run, read a page at a time."""

from __future__ import annotations

from collections import OrderedDict
from threading import RLock
from typing import Protocol

from coag.errors import TraceError, UnknownNameError
from coag.inspector.views import CycleRow, CycleView, RunCard, RunState, RunView, Trouble
from coag.schema import Clock, ModelCall, SystemClock
from coag.tracing import RecordKind, RunFolder, RunInfo, TraceIndex, known_cycles

from ._changes import changes
from ._cycle import Around, view_of
from ._rows import row_of
from ._scan import TraceScan
from ._situation import situation_at

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
