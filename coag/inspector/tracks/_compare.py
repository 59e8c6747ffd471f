"""Two runs side by side, from their first divergence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Self

from coag.inspector.reading import OpenRun
from coag.inspector.views import ComparedCycle, Comparison, CycleRow, RunCard
from coag.schema import PHASES, Percept, PerceptKind
from coag.tracing import Parent, RecordKind, TraceIndex

from ._alike import (
    PARTS,
    PERCEPTS,
    PLAIN_PARTS,
    Deeds,
    Difference,
    deeds_of,
    first_difference,
)
from ._raw import RawLines

PAGE = 50
FORK = "fork of"
SAME_REQUEST = "same request"
_REQUESTS = 5
"""Percepts at the beginning among which the request is looked for."""
_KINDS = frozenset({RecordKind.OUTCOME, RecordKind.PERCEPT})
_PLAIN_KINDS = frozenset(
    {
        RecordKind.PERCEPT,
        RecordKind.MODEL_CALL,
        RecordKind.INTENT,
        RecordKind.RECEIPT,
        RecordKind.TURN_END,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of two runs that are compared."""

    card: RunCard
    index: TraceIndex
    """Its trace, scanned to the end."""
    rows: Callable[[int, int], Sequence[CycleRow]]
    """Gives the rows from a cycle of the run on, by its number, and how many are wanted."""

    @classmethod
    def of(cls, card: RunCard, run: OpenRun) -> Self:
        """A run that was scanned to its end.

        Args:
            card: Its card.
            run: The run, open.
        """

        def rows(cycle: int, count: int) -> tuple[CycleRow, ...]:
            return run.rows(run.position_of(cycle), count)

        return cls(card=card, index=run.index, rows=rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parting:
    """Where two runs part."""

    cycle: int
    field: str
    left: str
    right: str


def compare(left: Side, right: Side, first: int = -1, *, page_size: int = PAGE) -> Comparison:
    """Two runs, cycle beside cycle; plain ones turn beside turn.

    Times, ids and what models cost do not make them differ. A fork is compared with its parent
    from the cycle in which it begins, and there from the phase that was run anew.

    Args:
        left: One run.
        right: The other.
        first: Position of the first row; negative for the page of the first divergence.
        page_size: How many cycles are shown.

    Raises:
        TraceError: If a trace cannot be read.
    """
    pair = _Pair(left, right)
    parting = pair.parting()
    if first < 0:
        first = 0 if parting is None else pair.cycles.index(parting.cycle)
    first = min(first, max(0, len(pair.cycles) - 1)) // page_size * page_size
    page = pair.cycles[first : first + page_size]
    lefts, rights = _rows(left, page, pair.left), _rows(right, page, pair.right)
    return Comparison(
        left=left.card,
        right=right.card,
        divergence=None if parting is None else parting.cycle,
        field="" if parting is None else parting.field,
        left_value="" if parting is None else parting.left,
        right_value="" if parting is None else parting.right,
        rows=tuple(
            ComparedCycle(
                number=cycle,
                left=lefts.get(cycle),
                right=rights.get(cycle),
                differs=pair.differs(cycle),
            )
            for cycle in page
        ),
        first=first,
        of=len(pair.cycles),
        page_size=page_size,
        related=pair.related(),
        changes=pair.fork.changes if pair.fork else (),
    )


class _Pair:
    """Two runs, and which of their cycles are the same."""

    def __init__(self, left: Side, right: Side) -> None:
        self._left, self._right = left, right
        self.left, self.right = _stretches(left.index), _stretches(right.index)
        self._left_lines, self._right_lines = RawLines(left.index), RawLines(right.index)
        self.fork = _fork(left.card, right.card) or _fork(right.card, left.card)
        since = self.fork.cycle if self.fork else 1
        self.cycles = sorted(cycle for cycle in {*self.left, *self.right} if cycle >= since)

    @property
    def _kinds_differ(self) -> bool:
        return _is_plain(self._left) != _is_plain(self._right)

    def related(self) -> str:
        """How the two have to do with each other."""
        if self.fork:
            return FORK
        asked = _request(self._left.index)
        return SAME_REQUEST if asked and asked == _request(self._right.index) else ""

    def parting(self) -> _Parting | None:
        """Where they part; None if they never do."""
        if self._kinds_differ and self.cycles:
            plain = ["a plain run" if _is_plain(s) else "phases" for s in (self._left, self._right)]
            return _Parting(cycle=self.cycles[0], field="kind", left=plain[0], right=plain[1])
        for cycle in self.cycles:
            if cycle not in self.left or cycle not in self.right:
                there = [str(cycle) if cycle in side else "" for side in (self.left, self.right)]
                return _Parting(cycle=cycle, field="cycle", left=there[0], right=there[1])
            found = None if self._looks_same(cycle) else self._difference(cycle)
            if found is not None:
                return _Parting(cycle=cycle, field=found.path, left=found.left, right=found.right)
        return None

    def _difference(self, cycle: int) -> Difference | None:
        ones, others = self._deeds(cycle)
        parts = self._parts(cycle)
        found = (first_difference(ones.parts.get(p), others.parts.get(p), p) for p in parts)
        return next((each for each in found if each is not None), None)

    def _looks_same(self, cycle: int) -> bool:
        """Whether it is plain without parsing anything that a cycle is the same in both."""
        ones = self._left_lines.same(_positions(self._left, self.left[cycle]))
        return ones == self._right_lines.same(_positions(self._right, self.right[cycle]))

    def differs(self, cycle: int) -> tuple[str, ...]:
        """In which parts the two differ in a cycle; empty where one has no such cycle."""
        if self._kinds_differ or cycle not in self.left or cycle not in self.right:
            return ()
        ones, others = self._deeds(cycle)
        parts = [p for p in self._parts(cycle) if ones.parts.get(p) != others.parts.get(p)]
        return (*parts, *(["usage"] if ones.usage != others.usage else []))

    def _deeds(self, cycle: int) -> tuple[Deeds, Deeds]:
        return (
            _deeds(self._left, self.left[cycle]),
            _deeds(self._right, self.right[cycle]),
        )

    def _parts(self, cycle: int) -> Sequence[str]:
        """Those that can be compared: what a fork took over is in no record of its trace."""
        if _is_plain(self._left):
            return PLAIN_PARTS
        if self.fork is None or cycle > self.fork.cycle:
            return PARTS
        before = [phase.value for phase in PHASES[: PHASES.index(self.fork.phase)]]
        return [part for part in PARTS if part != PERCEPTS and part not in before]


def _stretches(index: TraceIndex) -> Mapping[int, Sequence[int]]:
    """The stretches of each cycle."""
    found: dict[int, list[int]] = {}
    for number in range(index.stretches):
        cycle = index.stretch(number).cycle
        if cycle:
            found.setdefault(cycle, []).append(number)
    return found


def _positions(side: Side, stretches: Iterable[int]) -> list[int]:
    """Where the records stand that tell what was done."""
    kinds = _PLAIN_KINDS if _is_plain(side) else _KINDS
    found = map(side.index.stretch, stretches)
    lines = (at for one in found for at in range(one.first, one.first + one.count))
    return [at for at in lines if side.index.kind(at) in kinds]


def _deeds(side: Side, stretches: Iterable[int]) -> Deeds:
    lines = side.index.read(_positions(side, stretches))
    records = [line.entry.body for line in lines if line.entry is not None]
    return deeds_of(records, plain=_is_plain(side))


def _rows(
    side: Side, page: Sequence[int], known: Mapping[int, Sequence[int]]
) -> Mapping[int, CycleRow]:
    there = [cycle for cycle in page if cycle in known]
    if not there:
        return {}
    return {row.number: row for row in side.rows(there[0], len(there))}


def _is_plain(side: Side) -> bool:
    return side.card.info is not None and side.card.info.kind == "plain"


def _fork(card: RunCard, of: RunCard) -> Parent | None:
    """Where a run was forked from another; None if it was not."""
    if card.info is None or of.info is None or card.info.parent is None:
        return None
    return card.info.parent if card.info.parent.run == of.info.id else None


def _request(index: TraceIndex) -> str:
    """What a run was first asked for; empty where it was asked nothing."""
    positions = list(islice(index.positions(RecordKind.PERCEPT), _REQUESTS))
    for line in index.read(positions) if positions else ():
        body = line.entry and line.entry.body
        if isinstance(body, Percept) and body.kind is PerceptKind.MESSAGE:
            return body.content
    return ""
