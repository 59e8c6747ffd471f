"""One cycle with all that happened in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

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
    TraceRecord,
    TurnEnd,
    Written,
    phase_after,
)
from coag.tracing import TraceLine

from ._calls import call_views
from ._changes import changes
from ._rows import outcomes_in, row_from
from ._situation import Situation

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
