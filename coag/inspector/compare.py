"""Two runs side by side, from their first divergence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self, cast

from coag._util.json_diff import JsonDifference, first_difference
from coag.schema import PHASES, Percept, PerceptKind, Phase
from coag.tracing import CycleSummary, Parent, RecordKind, TraceIndex, summarize_cycle

from .open_run import OpenRun
from .views import CycleRow, RunCard


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCycle:
    """The same cycle in both."""

    number: int
    left: CycleRow | None
    """None where that run has no such cycle."""
    right: CycleRow | None
    differs: tuple[str, ...] = ()
    """What is different, as phases or `usage`; empty where both did the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """Two runs from their first divergence on."""

    left: RunCard
    right: RunCard
    divergence: int | None
    """The first cycle in which they differ; None where they never do."""
    field: str = ""
    """Where in it: phase and field."""
    left_value: str = ""
    right_value: str = ""
    rows: tuple[ComparedCycle, ...] = ()
    """The page of cycles that is shown."""
    first: int = 0
    """Position of the first row."""
    of: int = 0
    """How many cycles the longer one has."""
    page_size: int = 50
    related: str = ""
    """How they are related: `fork of`, `same request`, or empty."""
    changes: tuple[str, ...] = ()
    """Of a fork: what was changed."""


# ---- What a cycle did, as JSON ----


_PERCEPTS = "percepts"
"""The part with what had arrived before the first phase."""
_PARTS = (_PERCEPTS, *(phase.value for phase in Phase))
"""The parts of a cycle, in order."""
_PLAIN_PARTS = (_PERCEPTS, "answers", "actions", "response")
"""The parts of a plain agent's turn, in order."""
_IGNORED = frozenset(
    {"record", "id", "at", "cycle", "created_at", "usage", "run", "caused_by", "intent_id"}
    | {"supersedes", "superseded_by", "scope", "queued", "phase"}
)
"""What two runs that do the same need not have alike."""


def cycle_parts(summary: CycleSummary, *, plain: bool) -> dict[str, Any]:
    """What is compared of a cycle, or of a plain agent's turn, by part."""
    percepts = [_perceived(one) for one in summary.percepts]
    parts: dict[str, Any] = {_PERCEPTS: percepts} if percepts else {}
    if plain:
        return parts | _turn_parts(summary)
    places = enumerate(summary.candidates, 1)
    names = {one.candidate.id: f"candidate {place}" for place, one in places}
    for phase, outcome in summary.outcomes.items():
        parts[phase.value] = _essence(outcome.model_dump(mode="json"), names)
    if Phase.EXECUTION in summary.outcomes:
        parts[Phase.EXECUTION] |= {"brought": [_perceived(one) for one in summary.returned]}
    return parts


def _turn_parts(summary: CycleSummary) -> dict[str, Any]:
    answers = [
        {"raw": one.raw, "calls": [_essence(c, {}) for c in one.tool_calls], "error": one.error}
        for one in summary.calls
    ]
    actions: list[Any] = []
    for intent, receipt in summary.effects:
        actions.append({"action": intent.action, "arguments": intent.arguments})
        if receipt is not None:
            actions.append({"status": receipt.status.value, "content": receipt.content})
    end = summary.turn_end
    response = [{"reason": end.reason, "response": end.response}] if end else []
    parts = {"answers": answers, "actions": actions, "response": response}
    return {name: part for name, part in parts.items() if part}


def _perceived(percept: Percept) -> dict[str, Any]:
    kind, source = percept.kind.value, percept.source
    return {"kind": kind, "source": source, "content": percept.content, "data": percept.data}


def _essence(value: Any, names: Mapping[str, str]) -> Any:
    """A JSON value without what need not be alike, its candidates named by their places."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        return {name: _essence(each, names) for name, each in fields if name not in _IGNORED}
    if isinstance(value, list):
        return [_essence(each, names) for each in cast("list[Any]", value)]
    return names.get(value, value) if isinstance(value, str) else value


# ---- Lines as they are written: to see quickly that two cycles are the same ----


_NUMBERED = re.compile(rb'^\{"v":\d+,"seq":\d+,"hash":"\w*",')
_TIME = re.compile(rb'"(?:at|created_at)":"[^"\\]{10,40}"')


def _same_lines(index: TraceIndex, positions: Iterable[int]) -> list[bytes]:
    """Lines without their numbers, hashes and times: equal ones say the same.

    Raises:
        TraceError: If the file cannot be read.
    """
    lines = index.raw(list(positions))
    return [_TIME.sub(b"", _NUMBERED.sub(b"", line)) for line in lines]


# ---- Two runs ----


PAGE = 50
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
class _Divergence:
    """Where two runs first differ."""

    cycle: int
    field: str
    left: str
    right: str


def compare(left: Side, right: Side, first: int = -1, *, page_size: int = PAGE) -> RunComparison:
    """Two runs, cycle beside cycle; plain ones turn beside turn.

    Times, ids and what models cost do not make them differ. A fork is compared with its parent
    from the cycle in which it begins, and there from the phase that was run again.

    Args:
        left: One run.
        right: The other.
        first: Position of the first row; negative for the page of the first divergence.
        page_size: How many cycles are shown.

    Raises:
        TraceError: If a trace cannot be read.
    """
    pair = _Pair(left, right)
    divergence = pair.divergence()
    if first < 0:
        first = 0 if divergence is None else pair.cycles.index(divergence.cycle)
    first = min(first, max(0, len(pair.cycles) - 1)) // page_size * page_size
    page = pair.cycles[first : first + page_size]
    lefts, rights = _rows(left, page, pair.left), _rows(right, page, pair.right)
    return RunComparison(
        left=left.card,
        right=right.card,
        divergence=None if divergence is None else divergence.cycle,
        field="" if divergence is None else divergence.field,
        left_value="" if divergence is None else divergence.left,
        right_value="" if divergence is None else divergence.right,
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
        self.fork = _fork(left.card, right.card) or _fork(right.card, left.card)
        since = self.fork.cycle if self.fork else 1
        self.cycles = sorted(cycle for cycle in {*self.left, *self.right} if cycle >= since)

    @property
    def _kinds_differ(self) -> bool:
        return _is_plain(self._left) != _is_plain(self._right)

    def related(self) -> str:
        """How the two have to do with each other."""
        if self.fork:
            return "fork of"
        asked = _request(self._left.index)
        return "same request" if asked and asked == _request(self._right.index) else ""

    def divergence(self) -> _Divergence | None:
        """Where they first differ; None if they never do."""
        if self._kinds_differ and self.cycles:
            plain = ["a plain run" if _is_plain(s) else "phases" for s in (self._left, self._right)]
            return _Divergence(cycle=self.cycles[0], field="kind", left=plain[0], right=plain[1])
        for cycle in self.cycles:
            if cycle not in self.left or cycle not in self.right:
                there = [str(cycle) if cycle in side else "" for side in (self.left, self.right)]
                return _Divergence(cycle=cycle, field="cycle", left=there[0], right=there[1])
            found = None if self._looks_same(cycle) else self._difference(cycle)
            if found is not None:
                left, right = found.shown()
                return _Divergence(cycle=cycle, field=found.path, left=left, right=right)
        return None

    def _difference(self, cycle: int) -> JsonDifference | None:
        ones, others = self._both(*self._summaries(cycle))
        parts = self._parts(cycle)
        left, right = ({part: one.get(part) for part in parts} for one in (ones, others))
        return first_difference(left, right)

    def _looks_same(self, cycle: int) -> bool:
        """Whether it is plain without parsing anything that a cycle is the same in both."""
        ones, others = (
            _same_lines(side.index, _positions(side, stretches[cycle]))
            for side, stretches in ((self._left, self.left), (self._right, self.right))
        )
        return ones == others

    def differs(self, cycle: int) -> tuple[str, ...]:
        """In which parts the two differ in a cycle; empty where one has no such cycle."""
        if self._kinds_differ or cycle not in self.left or cycle not in self.right:
            return ()
        left, right = self._summaries(cycle)
        ones, others = self._both(left, right)
        parts = [part for part in self._parts(cycle) if ones.get(part) != others.get(part)]
        return (*parts, *(["usage"] if left.usage != right.usage else []))

    def _summaries(self, cycle: int) -> tuple[CycleSummary, CycleSummary]:
        left = _summary(self._left, self.left[cycle])
        return left, _summary(self._right, self.right[cycle])

    def _both(
        self, left: CycleSummary, right: CycleSummary
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        plain = _is_plain(self._left)
        return cycle_parts(left, plain=plain), cycle_parts(right, plain=plain)

    def _parts(self, cycle: int) -> Sequence[str]:
        """Those that can be compared: what a fork took over is not in its trace."""
        if _is_plain(self._left):
            return _PLAIN_PARTS
        if self.fork is None or cycle > self.fork.cycle:
            return _PARTS
        before = [phase.value for phase in PHASES[: PHASES.index(self.fork.phase)]]
        return [part for part in _PARTS if part != _PERCEPTS and part not in before]


def _stretches(index: TraceIndex) -> Mapping[int, Sequence[int]]:
    """The stretches of each cycle."""
    found: dict[int, list[int]] = {}
    for number in range(index.stretches):
        cycle = index.stretch(number).cycle
        if cycle:
            found.setdefault(cycle, []).append(number)
    return found


def _positions(side: Side, stretches: Iterable[int]) -> list[int]:
    """The positions of the records that say what was done."""
    kinds = _PLAIN_KINDS if _is_plain(side) else _KINDS
    found = map(side.index.stretch, stretches)
    lines = (at for one in found for at in range(one.first, one.first + one.count))
    return [at for at in lines if side.index.kind(at) in kinds]


def _summary(side: Side, stretches: Iterable[int]) -> CycleSummary:
    lines = side.index.read(_positions(side, stretches))
    return summarize_cycle([line.entry.body for line in lines if line.entry is not None])


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
