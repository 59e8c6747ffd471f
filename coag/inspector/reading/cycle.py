"""One cycle: how things stood, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from coag.inspector.views import CallView, CandidateView, Change, CycleView, PhaseView
from coag.schema import (
    PHASES,
    EvaluationOutcome,
    Intent,
    ModelCall,
    Note,
    Outcome,
    Percept,
    Phase,
    ProposalOutcome,
    Receipt,
    SelectionOutcome,
    Snapshot,
    SnapshotReason,
    TraceRecord,
    TurnEnd,
    Written,
    merge_patch,
    phase_after,
)
from coag.tracing import RecordKind, TraceIndex, TraceLine

from .rows import Span, call_views, changes, outcomes_in, row_from

# ---- What was so when a cycle began, from the snapshots around it ----


_HeldT = TypeVar("_HeldT")
_OUTCOME: TypeAdapter[Outcome] = TypeAdapter(Outcome)
_PERCEPT = TypeAdapter(Percept)
_BACK = 2_000
"""Lines before a cycle in which its snapshot is looked for."""
_LOOKS = 32
"""Snapshots in which the state of the environment is looked for."""
_BEGINS = frozenset({RecordKind.OUTCOME, RecordKind.MODEL_CALL, RecordKind.INTENT})
"""Kinds of which the first one comes after the cycle's beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What was so when a cycle began."""

    state: dict[str, Any] = field(default_factory=dict[str, Any])
    """The perceptual state."""
    goal: str = ""
    percepts: tuple[Percept, ...] = ()
    """What had arrived since the last action, where a snapshot of this cycle tells."""
    environment: Any = None
    """What the environment was in truth, where it tells."""
    inherited: tuple[Outcome, ...] = ()
    """Of the cycle that a fork begins in: what its parent had committed in it."""


def situation_at(index: TraceIndex, span: Span) -> Situation:
    """What was so when a cycle began: its snapshot, or the one before and what came since.

    Raises:
        TraceError: The trace cannot be read.
    """
    begun = _begun(index, span)
    found = _snapshot_before(index, begun)
    if found is None:
        return Situation(state=_patched({}, index, range(max(begun - _BACK, 0), begun)))
    position, snapshot = found
    memory = snapshot.working_memory
    own = position >= span.first
    return Situation(
        state=_patched(_mapping(memory.get("perceptual_state")), index, range(position, begun)),
        goal=_text(memory.get("goal")),
        percepts=_percepts(memory.get("percepts")) if own else (),
        inherited=_inherited(snapshot, span.cycle) if own else (),
        environment=_environment(index, begun),
    )


def _begun(index: TraceIndex, span: Span) -> int:
    """Position of the first line that shows the cycle at work."""
    positions = range(span.first, span.end)
    return next((at for at in positions if index.kind(at) in _BEGINS), span.end)


def _snapshot_before(index: TraceIndex, position: int) -> tuple[int, Snapshot] | None:
    for at in range(position - 1, max(position - _BACK, 0) - 1, -1):
        if index.kind(at) is RecordKind.SNAPSHOT:
            snapshot = _snapshot(index, at)
            if snapshot is not None:
                return at, snapshot
    return None


def _snapshot(index: TraceIndex, position: int) -> Snapshot | None:
    entry = index.read([position])[0].entry
    return entry.body if entry is not None and isinstance(entry.body, Snapshot) else None


def _patched(
    state: Mapping[str, Any], index: TraceIndex, positions: Sequence[int]
) -> dict[str, Any]:
    """The state after the percepts among some lines."""
    percepts = [at for at in positions if index.kind(at) is RecordKind.PERCEPT]
    changed = dict(state)
    for line in index.read(percepts):
        body = line.entry.body if line.entry else None
        if isinstance(body, Percept) and body.state_patch:
            changed = merge_patch(changed, body.state_patch)
    return changed


def _environment(index: TraceIndex, before: int) -> Any:
    for position in islice(index.environments(before), _LOOKS):
        snapshot = _snapshot(index, position)
        if snapshot is not None and snapshot.environment is not None:
            return snapshot.environment
    return None


def _inherited(snapshot: Snapshot, cycle: int) -> tuple[Outcome, ...]:
    if snapshot.reason is not SnapshotReason.FORKED:
        return ()
    held = _mapping(snapshot.working_memory.get("cognitive_state")).values()
    found = [_valid(_OUTCOME, item) for item in held if item is not None]
    return tuple(outcome for outcome in found if outcome is not None and outcome.cycle == cycle)


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _percepts(value: Any) -> tuple[Percept, ...]:
    """What working memory held as just perceived; what is no percept is passed over."""
    held = cast("list[Any]", value) if isinstance(value, list) else []
    found = [_valid(_PERCEPT, item) for item in held]
    return tuple(percept for percept in found if percept is not None)


def _valid(kind: TypeAdapter[_HeldT], value: Any) -> _HeldT | None:
    """What working memory held, as a snapshot has it; None for what is none."""
    try:
        return kind.validate_json(to_json(value))
    except ValidationError:
        return None


# ---- One cycle with all that happened in it ----


_UNREADABLE = 50
"""Lines that cannot be read and are told one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What a cycle's view needs from outside its own lines."""

    run: str
    """Key of the run."""
    plain: bool
    """True for a plain run."""
    situation: Situation
    """As it was when the cycle began."""
    changed: tuple[Change, ...] = ()
    """What is different in the perceptual state since the cycle before."""
    earlier: Sequence[ModelCall] = ()
    """Requests of cycles before it, in order."""
    before: int | None = None
    """Number of the cycle before."""
    after: int | None = None
    """Number of the cycle after."""


@dataclass(slots=True)
class _Sorted:
    """The records of a cycle by what they are."""

    calls: list[ModelCall] = field(default_factory=list[ModelCall])
    arrived: list[Percept] = field(default_factory=list[Percept])
    brought: list[Percept] = field(default_factory=list[Percept])
    intents: list[Intent] = field(default_factory=list[Intent])
    receipts: dict[str, Receipt] = field(default_factory=dict[str, Receipt])
    written: list[Written] = field(default_factory=list[Written])
    notes: dict[Phase | None, list[Note]] = field(default_factory=dict[Phase | None, list[Note]])
    turn_end: TurnEnd | None = None
    began: datetime | None = None
    """When its snapshot was written, else its first record."""
    phase: Phase | None = None
    """The phase that is at work; None before the first and after the last."""
    acted: bool = False
    """True once something was recorded that only stands within a cycle."""


def view_of(lines: Sequence[TraceLine], cycle: int, around: Around) -> CycleView:
    """The view of a cycle, or of a plain run's turn.

    Args:
        lines: All its lines, in order.
        cycle: Its number.
        around: What stands outside them.
    """
    records = [line.entry.body for line in lines if line.entry is not None]
    sorted_ = _sorted(records, plain=around.plain)
    inherited = outcomes_in(around.situation.inherited)
    outcomes = inherited | outcomes_in(records)
    asked = [line for line in lines if line.entry and isinstance(line.entry.body, ModelCall)]
    calls = [
        replace(call, seq=line.number - 1)
        for call, line in zip(call_views(sorted_.calls, around.earlier), asked, strict=True)
    ]
    row = row_from(
        records,
        cycle=cycle,
        began=records[0].at if records else None,
        ended=records[-1].at if records else None,
        notes=sum(len(notes) for notes in sorted_.notes.values()),
        plain=around.plain,
    )
    return CycleView(
        run=around.run,
        row=row,
        phases=() if around.plain else _phases(records, inherited, calls, sorted_),
        calls=tuple(call for call in calls if around.plain or call.call.phase is None),
        candidates=_candidates(outcomes, around.situation.state),
        goal=around.situation.goal,
        percepts=around.situation.percepts or tuple(sorted_.arrived),
        brought=tuple(sorted_.brought),
        effects=tuple((each, sorted_.receipts.get(each.id)) for each in sorted_.intents),
        written=tuple(sorted_.written),
        notes=tuple(sorted_.notes.get(None, ())),
        turn_end=sorted_.turn_end,
        state=around.situation.state,
        changed=around.changed,
        environment=around.situation.environment,
        before=around.before,
        after=around.after,
        unreadable=_unreadable(lines),
    )


def _unreadable(lines: Sequence[TraceLine]) -> tuple[str, ...]:
    bad = [line.problems[0].text for line in lines if line.entry is None]
    more = [f"and {len(bad) - _UNREADABLE} more lines"] if len(bad) > _UNREADABLE else []
    return (*bad[:_UNREADABLE], *more)


def _sorted(records: Sequence[TraceRecord], *, plain: bool) -> _Sorted:
    found = _Sorted()
    for record in records:
        found.began = found.began or record.at
        match record:
            case Percept():
                (found.brought if found.acted else found.arrived).append(record)
            case Snapshot():
                found.began = record.at
                found.phase = None if plain else PHASES[0]
            case Note():
                found.notes.setdefault(found.phase, []).append(record)
            case TurnEnd():
                found.turn_end = record
            case _:
                _act(found, record)
    return found


def _act(found: _Sorted, record: TraceRecord) -> None:
    """Takes a record that only stands within a cycle."""
    match record:
        case ModelCall():
            found.calls.append(record)
        case Intent():
            found.intents.append(record)
        case Receipt():
            found.receipts[record.intent_id] = record
        case Written():
            found.written.append(record)
        case _ if record.record == "outcome":
            last = record.phase is PHASES[-1]
            found.phase = None if last else phase_after(record.phase)
        case _:
            return
    found.acted = True


def _phases(
    records: Sequence[TraceRecord],
    inherited: Mapping[Phase, Outcome],
    calls: Sequence[CallView],
    found: _Sorted,
) -> tuple[PhaseView, ...]:
    own = outcomes_in(records)
    views: list[PhaseView] = []
    before = found.began
    for phase in PHASES:
        outcome = own.get(phase)
        at = outcome.at if outcome else None
        views.append(
            PhaseView(
                phase=phase,
                outcome=outcome or inherited.get(phase),
                inherited=outcome is None and phase in inherited,
                at=at,
                seconds=(at - before).total_seconds() if at and before else None,
                calls=tuple(call for call in calls if call.call.phase is phase),
                notes=tuple(found.notes.get(phase, ())),
            )
        )
        before = at or before
    return tuple(views)


def _candidates(
    outcomes: Mapping[Phase, Outcome], state: Mapping[str, Any]
) -> tuple[CandidateView, ...]:
    proposal, evaluation = outcomes.get(Phase.PROPOSAL), outcomes.get(Phase.EVALUATION)
    if not isinstance(proposal, ProposalOutcome):
        return ()
    judged = {
        each.candidate_id: each
        for each in (evaluation.evaluations if isinstance(evaluation, EvaluationOutcome) else ())
    }
    selection = outcomes.get(Phase.SELECTION)
    chosen = selection.chosen if isinstance(selection, SelectionOutcome) else ()
    views: list[CandidateView] = []
    for candidate in proposal.candidates:
        found = judged.get(candidate.id)
        projection = found.projection if found else None
        views.append(
            CandidateView(
                candidate=candidate,
                evaluation=found,
                chosen=candidate.id in chosen,
                projected=() if projection is None else changes(state, projection),
            )
        )
    return tuple(views)
