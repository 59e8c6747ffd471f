"""Two runs beside each other."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Any, BinaryIO, Self, cast

from coag._util.json_diff import JsonDifference, first_difference
from coag.errors import TraceError
from coag.inspector.reading import OpenRun
from coag.inspector.views import ComparedCycle, Comparison, CycleRow, RunCard
from coag.schema import (
    PHASES,
    Intent,
    ModelCall,
    Percept,
    PerceptKind,
    Phase,
    ProposalOutcome,
    Receipt,
    TokenUsage,
    TraceRecord,
    TurnEnd,
)
from coag.tracing import Parent, RecordKind, TraceIndex

# ---- Lines of a trace as they are written: to see quickly that two cycles are the same ----


_NUMBERED = re.compile(rb'^\{"v":\d+,"seq":\d+,"hash":"\w*",')
_TIME = re.compile(rb'"(?:at|created_at)":"[^"\\]{10,40}"')


class RawLines:
    """Reads lines of a trace without parsing them.

    Args:
        index: The trace, as far as it was scanned.
    """

    def __init__(self, index: TraceIndex) -> None:
        self._index = index
        lengths = map(index.length, range(index.lines))
        self._begins = array("Q", accumulate(lengths, initial=0))

    def same(self, positions: Iterable[int]) -> list[bytes]:
        """Lines without their numbers, hashes and times: equal ones tell of the same.

        Raises:
            TraceError: If the file cannot be read.
        """
        path = self._index.path
        try:
            with path.open("rb") as file:
                return [self._line(file, position) for position in positions]
        except OSError as error:
            raise TraceError(path, f"cannot be read: {error.strerror}") from error

    def _line(self, file: BinaryIO, position: int) -> bytes:
        file.seek(self._begins[position])
        line = file.read(self._index.length(position))
        return _TIME.sub(b"", _NUMBERED.sub(b"", line))


# ---- What a cycle did, so that the same cycle of another run can be compared with it ----


PERCEPTS = "percepts"
"""The part of a cycle that tells what had arrived before its first phase."""
PARTS = (PERCEPTS, *(phase.value for phase in Phase))
"""The parts of a cycle, in order."""
PLAIN_PARTS = (PERCEPTS, "answers", "actions", "response")
"""The parts of a plain agent's turn, in order."""

_IGNORED = frozenset(
    {"record", "id", "at", "cycle", "created_at", "usage", "run", "caused_by", "intent_id"}
    | {"supersedes", "superseded_by", "scope", "queued", "phase"}
)
"""What two runs that do the same need not have alike."""


@dataclass(slots=True)
class Deeds:
    """What was done in one cycle, or in one turn of a plain agent."""

    parts: dict[str, Any] = field(default_factory=dict[str, Any])
    """What is compared, as JSON, by part."""
    usage: TokenUsage = field(default_factory=TokenUsage)


def deeds_of(records: Iterable[TraceRecord], *, plain: bool) -> Deeds:
    """What the records of one cycle tell, or those of one turn of a plain agent."""
    return _of_turn(records) if plain else _of_cycle(records)


# ---- what is compared ----


def _of_cycle(records: Iterable[TraceRecord]) -> Deeds:
    """Percepts after the execution are what it brought about, so they are its."""
    deeds = Deeds()
    names: dict[str, str] = {}
    brought: list[Any] = []
    for record in records:
        if isinstance(record, Percept):
            before = brought if names or Phase.RETRIEVAL in deeds.parts else None
            arrived = deeds.parts.setdefault(PERCEPTS, []) if before is None else before
            arrived.append(_perceived(record))
        elif record.record == "outcome":
            deeds.usage += record.usage
            if isinstance(record, ProposalOutcome):
                places = enumerate(record.candidates, 1)
                names |= {one.id: f"candidate {place}" for place, one in places}
            deeds.parts[record.phase.value] = _essence(record.model_dump(mode="json"), names)
    if Phase.EXECUTION in deeds.parts:
        deeds.parts[Phase.EXECUTION] |= {"brought": brought}
    return deeds


def _of_turn(records: Iterable[TraceRecord]) -> Deeds:
    deeds = Deeds()
    for record in records:
        match record:
            case Percept():
                told = (PERCEPTS, _perceived(record))
            case ModelCall():
                deeds.usage += record.usage
                calls = [_essence(call, {}) for call in record.tool_calls]
                told = ("answers", {"raw": record.raw, "calls": calls, "error": record.error})
            case Intent():
                told = ("actions", {"action": record.action, "arguments": record.arguments})
            case Receipt():
                told = ("actions", {"status": record.status.value, "content": record.content})
            case TurnEnd():
                told = ("response", {"reason": record.reason, "response": record.response})
            case _:
                continue
        deeds.parts.setdefault(told[0], []).append(told[1])
    return deeds


def _perceived(percept: Percept) -> dict[str, Any]:
    kind, source = percept.kind.value, percept.source
    return {"kind": kind, "source": source, "content": percept.content, "data": percept.data}


def _essence(value: Any, names: Mapping[str, str]) -> Any:
    """A JSON value without what need not be alike, its candidates named by their places."""
    if isinstance(value, dict):
        told = cast("dict[str, Any]", value).items()
        return {name: _essence(each, names) for name, each in told if name not in _IGNORED}
    if isinstance(value, list):
        return [_essence(each, names) for each in cast("list[Any]", value)]
    return names.get(value, value) if isinstance(value, str) else value


# ---- Two runs side by side, from their first divergence ----


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
                left, right = found.shown()
                return _Parting(cycle=cycle, field=found.path, left=left, right=right)
        return None

    def _difference(self, cycle: int) -> JsonDifference | None:
        ones, others = self._deeds(cycle)
        parts = self._parts(cycle)
        left, right = ({part: one.parts.get(part) for part in parts} for one in (ones, others))
        return first_difference(left, right)

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
