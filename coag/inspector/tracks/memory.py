"""Memory over cycles."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pydantic import ValidationError

from coag.inspector.views import (
    CycleRow,
    CycleView,
    Finding,
    Findings,
    MemoryPage,
    RecallRow,
    RecordRow,
    RunView,
)
from coag.schema import Record, RetrievalOutcome, TraceRecord, Written
from coag.tracing import RecordKind, TraceIndex

# ---- Findings, put into the views of what they are about ----


class Placed:
    """The findings of a run by cycle.

    Args:
        findings: What was found so far.
    """

    def __init__(self, findings: Findings) -> None:
        found: defaultdict[int | None, list[Finding]] = defaultdict(list)
        for finding in findings.found:
            found[finding.cycle].append(finding)
        self._found: Mapping[int | None, Sequence[Finding]] = found

    def found(self, cycle: int) -> Sequence[Finding]:
        """What was found in a cycle."""
        return self._found.get(cycle, ())

    def row(self, row: CycleRow) -> CycleRow:
        """The row with what was found in its cycle."""
        found = self._found.get(row.number)
        return replace(row, findings=tuple(found)) if found else row

    def run(self, view: RunView) -> RunView:
        """The run with what was found in each row, of the timeline and of the strip."""
        return replace(
            view,
            rows=tuple(self.row(row) for row in view.rows),
            strip=tuple(self.row(row) for row in view.strip),
        )

    def cycle(self, view: CycleView) -> CycleView:
        """The cycle with what was found in its phases, and the rest for the cycle itself."""
        found = self._found.get(view.row.number)
        if not found:
            return view
        there = {phase.phase for phase in view.phases}
        phases = tuple(
            replace(phase, findings=tuple(one for one in found if one.phase is phase.phase))
            for phase in view.phases
        )
        rest = tuple(one for one in found if one.phase is None or one.phase not in there)
        return replace(view, row=self.row(view.row), phases=phases, findings=rest)


# ---- What a run wrote to long-term memory, and what it recalled ----


PAGE = 25
"""Records and retrievals on a page."""
_CYCLES = 12
"""Cycles that are kept of those that recalled a record."""
_IDS = 50_000
"""Records whose recalling cycles are kept."""
_AT_ONCE = 64


class MemoryScan:
    """Finds what a trace tells of long-term memory, once; kept as long as its index is.

    Only where the lines stand is kept, and which cycles recalled which record.

    Args:
        index: The run's trace; when it has grown, `page` looks at what is new.
    """

    def __init__(self, index: TraceIndex) -> None:
        self._index = index
        self._seen = 0
        """Lines that were looked at."""
        self._stretch = -1
        """The last stretch of which an outcome was met."""
        self._written: list[int] = []
        self._recalls: list[int] = []
        self._recalled_by: dict[str, list[int]] = {}

    def page(self, page: int = 1, *, size: int = PAGE) -> MemoryPage:
        """A page of the records written and one of the retrievals, both newest first.

        Args:
            page: Its number, from 1; the nearest there is where it is out of range.
            size: How many of each are on it.

        Raises:
            TraceError: If the trace cannot be read.
        """
        self._scan()
        pages = max(1, math.ceil(max(len(self._written), len(self._recalls)) / size))
        page = min(max(1, page), pages)
        rows, unreadable = self._rows(_part(self._written, page, size))
        return MemoryPage(
            written=rows,
            written_total=len(self._written),
            recalls=self._recall_rows(_part(self._recalls, page, size)),
            recalls_total=len(self._recalls),
            page=page,
            pages=pages,
            unreadable=unreadable,
        )

    # ---- scanning ----

    def _scan(self) -> None:
        end = self._index.lines
        few: list[int] = []
        for position in range(self._seen, end):
            if self._is_of_memory(position):
                few.append(position)
            if len(few) == _AT_ONCE:
                self._take(few)
                few = []
        self._take(few)
        self._seen = end

    def _is_of_memory(self, position: int) -> bool:
        """Retrieval's outcome is the first one of its cycle."""
        kind = self._index.kind(position)
        if kind is not RecordKind.OUTCOME:
            return kind is RecordKind.WRITTEN
        stretch = self._index.stretch_of(position)
        first, self._stretch = stretch != self._stretch, stretch
        return first

    def _take(self, positions: Sequence[int]) -> None:
        for position, body in zip(positions, self._bodies(positions), strict=True):
            if isinstance(body, Written) and body.what == "record":
                self._written.append(position)
            elif isinstance(body, RetrievalOutcome) and body.records:
                self._recalls.append(position)
                self._recall((hit.record.id for hit in body.records), body.cycle)

    def _recall(self, ids: Iterable[str], cycle: int) -> None:
        for name in ids:
            if name in self._recalled_by or len(self._recalled_by) < _IDS:
                cycles = self._recalled_by.setdefault(name, [])
                if len(cycles) < _CYCLES:
                    cycles.append(cycle)

    # ---- rows ----

    def _rows(self, positions: Sequence[int]) -> tuple[tuple[RecordRow, ...], int]:
        """The records that were written there, and how many of them are none."""
        rows: list[RecordRow] = []
        for written in self._bodies(positions):
            if not isinstance(written, Written):
                continue
            try:
                record = Record.model_validate(written.content)
            except ValidationError:
                continue
            recalled = self._recalled_by.get(record.id, [])
            after = tuple(cycle for cycle in recalled if cycle > written.cycle)
            rows.append(
                RecordRow(record=record, cycle=written.cycle, at=written.at, recalled=after)
            )
        return tuple(rows), len(positions) - len(rows)

    def _recall_rows(self, positions: Sequence[int]) -> tuple[RecallRow, ...]:
        return tuple(
            RecallRow(cycle=body.cycle, query=body.query, hits=body.records, left_out=body.left_out)
            for body in self._bodies(positions)
            if isinstance(body, RetrievalOutcome)
        )

    def _bodies(self, positions: Sequence[int]) -> list[TraceRecord | None]:
        """The records at some positions; a run that has just begun may have no file yet."""
        lines = self._index.read(positions) if positions else []
        return [line.entry and line.entry.body for line in lines]


def memory_page(index: TraceIndex, page: int = 1) -> MemoryPage:
    """One page of what a run wrote and recalled; whoever shows several keeps a `MemoryScan`.

    Raises:
        TraceError: If the trace cannot be read.
    """
    return MemoryScan(index).page(page)


def _part(positions: Sequence[int], page: int, size: int) -> list[int]:
    """The positions of one page, the last one first."""
    newest = positions[::-1]
    return list(newest[(page - 1) * size : page * size])
