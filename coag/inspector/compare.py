"""Two runs side by side, from their first divergence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from coag._util.json_diff import first_difference
from coag.schema import PHASES, Percept, PerceptKind, Phase
from coag.tracing import CycleSummary, Parent, RecordKind, summarize_cycle

from .open_run import OpenRun
from .trace_scan import bodies
from .views import CycleRow, RunCard


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCycle:
    """The same cycle in both; None where a run has no such cycle."""

    number: int
    left: CycleRow | None
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
    field: str
    left_value: str
    right_value: str
    rows: tuple[ComparedCycle, ...]
    first: int
    of: int
    page_size: int
    related: str = ""
    """How they are related: `fork of`, `same request`, or empty."""
    changes: tuple[str, ...] = ()


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


def _cycle_parts(summary: CycleSummary, *, plain: bool) -> dict[str, Any]:
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
    actions: list[Any] = []
    for intent, receipt in summary.effects:
        actions.append({"action": intent.action, "arguments": intent.arguments})
        if receipt is not None:
            actions.append({"status": receipt.status.value, "content": receipt.content})
    end = summary.turn_end
    parts = {
        "answers": [
            {"raw": one.raw, "calls": [_essence(c, {}) for c in one.tool_calls], "error": one.error}
            for one in summary.calls
        ],
        "actions": actions,
        "response": [{"reason": end.reason, "response": end.response}] if end else [],
    }
    return {name: part for name, part in parts.items() if part}


def _perceived(percept: Percept) -> dict[str, Any]:
    return percept.model_dump(mode="json", include={"kind", "source", "content", "data"})


def _essence(value: Any, names: Mapping[str, str]) -> Any:
    """A JSON value without what need not be alike, its candidates named by their places."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        return {name: _essence(each, names) for name, each in fields if name not in _IGNORED}
    if isinstance(value, list):
        return [_essence(each, names) for each in cast("list[Any]", value)]
    return names.get(value, value) if isinstance(value, str) else value


# ---- One run, as far as it is compared ----


_NUMBERED = re.compile(rb'^\{"v":\d+,"seq":\d+,"hash":"\w*",')
_TIME = re.compile(rb'"(?:at|created_at)":"[^"\\]{10,40}"')
_REQUESTS = 5
"""Percepts at the beginning among which the request is looked for."""
_KINDS = frozenset({RecordKind.OUTCOME, RecordKind.PERCEPT})
_PLAIN_KINDS = frozenset(
    {RecordKind.PERCEPT, RecordKind.MODEL_CALL, RecordKind.INTENT, RecordKind.RECEIPT}
    | {RecordKind.TURN_END}
)


class _ComparedRun:
    """One of two runs, which was scanned to its end."""

    def __init__(self, card: RunCard, run: OpenRun) -> None:
        self.card, self.index, self._run = card, run.index, run
        self.plain = card.info is not None and card.info.kind == "plain"
        self.cycles: dict[int, list[int]] = {}
        """The stretches of each."""
        for number in range(self.index.stretches):
            cycle = self.index.stretch(number).cycle
            if cycle:
                self.cycles.setdefault(cycle, []).append(number)

    def _positions(self, cycle: int) -> list[int]:
        """The records of a cycle that say what was done."""
        kinds = _PLAIN_KINDS if self.plain else _KINDS
        stretches = map(self.index.stretch, self.cycles[cycle])
        lines = (at for one in stretches for at in range(one.first, one.first + one.count))
        return [at for at in lines if self.index.kind(at) in kinds]

    def summary(self, cycle: int) -> CycleSummary:
        """What was done in a cycle."""
        return summarize_cycle(bodies(self.index, self._positions(cycle)))

    def essence(self, cycle: int) -> list[bytes]:
        """Its lines without their numbers, hashes and times: equal ones say the same."""
        lines = self.index.raw(self._positions(cycle))
        return [_TIME.sub(b"", _NUMBERED.sub(b"", line)) for line in lines]

    def rows(self, page: Iterable[int]) -> dict[int, CycleRow]:
        """The rows of those cycles that it has."""
        there = [cycle for cycle in page if cycle in self.cycles]
        first = self._run.position_of(there[0]) if there else 0
        return {row.number: row for row in self._run.rows(first, len(there))} if there else {}

    def request(self) -> str:
        """What it was first asked for; empty where it was asked nothing."""
        positions = islice(self.index.positions(RecordKind.PERCEPT), _REQUESTS)
        for body in bodies(self.index, positions):
            if isinstance(body, Percept) and body.kind is PerceptKind.MESSAGE:
                return body.content
        return ""

    def forked_from(self, other: _ComparedRun) -> Parent | None:
        """Where it was forked from another; None if it was not."""
        parent = self.card.info.parent if self.card.info else None
        of = other.card.info
        return parent if parent and of and parent.run == of.id else None


# ---- Two runs ----


def compare(
    left: tuple[RunCard, OpenRun],
    right: tuple[RunCard, OpenRun],
    first: int = -1,
    *,
    page_size: int = 50,
) -> RunComparison:
    """Two runs, cycle beside cycle; plain ones turn beside turn.

    Times, ids and what models cost do not make them differ. A fork is compared with its parent
    from the cycle in which it begins, and there from the phase that was run again. The first row is
    at `first`; where that is negative, the page of the first divergence is shown.
    """
    pair = _Pair(_ComparedRun(*left), _ComparedRun(*right))
    divergence, field, (left_value, right_value) = pair.divergence()
    if first < 0:
        first = 0 if divergence is None else pair.cycles.index(divergence)
    first = min(first, max(0, len(pair.cycles) - 1)) // page_size * page_size
    page = pair.cycles[first : first + page_size]
    lefts, rights = pair.left.rows(page), pair.right.rows(page)
    same = not pair.fork and "" != pair.left.request() == pair.right.request()
    return RunComparison(
        left=pair.left.card,
        right=pair.right.card,
        divergence=divergence,
        field=field,
        left_value=left_value,
        right_value=right_value,
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
        related="fork of" if pair.fork else "same request" if same else "",
        changes=pair.fork.changes if pair.fork else (),
    )


class _Pair:
    """Two runs, and which of their cycles are the same."""

    def __init__(self, left: _ComparedRun, right: _ComparedRun) -> None:
        self.left, self.right = left, right
        self.fork = left.forked_from(right) or right.forked_from(left)
        since = self.fork.cycle if self.fork else 1
        self.cycles = sorted(cycle for cycle in {*left.cycles, *right.cycles} if cycle >= since)

    def divergence(self) -> tuple[int | None, str, Sequence[str]]:
        """The first cycle in which they differ, the field, and its value in each."""
        sides = (self.left, self.right)
        if self.left.plain != self.right.plain and self.cycles:
            kinds = ["a plain run" if side.plain else "phases" for side in sides]
            return self.cycles[0], "kind", kinds
        for cycle in self.cycles:
            if not all(cycle in side.cycles for side in sides):
                there = [str(cycle) if cycle in side.cycles else "" for side in sides]
                return cycle, "cycle", there
            if self.left.essence(cycle) == self.right.essence(cycle):  # so nothing is parsed
                continue
            parts = self._parts(self.left.summary(cycle), self.right.summary(cycle), cycle)
            difference = first_difference(*parts)
            if difference is not None:
                return cycle, difference.path, difference.shown()
        return None, "", ("", "")

    def differs(self, cycle: int) -> tuple[str, ...]:
        """In which parts the two differ in a cycle; empty where one has no such cycle."""
        there = cycle in self.left.cycles and cycle in self.right.cycles
        if not there or self.left.plain != self.right.plain:
            return ()
        left, right = self.left.summary(cycle), self.right.summary(cycle)
        ones, others = self._parts(left, right, cycle)
        parts = [part for part in ones if ones[part] != others[part]]
        return (*parts, *(["usage"] if left.usage != right.usage else []))

    def _parts(
        self, left: CycleSummary, right: CycleSummary, cycle: int
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What can be compared of a cycle: what a fork took over is not in its trace."""
        plain = self.left.plain
        names = _PLAIN_PARTS if plain else _PARTS
        if not plain and self.fork is not None and cycle <= self.fork.cycle:
            before = [phase.value for phase in PHASES[: PHASES.index(self.fork.phase)]]
            names = [name for name in _PARTS if name not in (_PERCEPTS, *before)]
        ones, others = (_cycle_parts(one, plain=plain) for one in (left, right))
        return {name: ones.get(name) for name in names}, {name: others.get(name) for name in names}
