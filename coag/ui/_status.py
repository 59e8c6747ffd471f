"""How a run stands, told by its records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from coag.schema import (
    Candidate,
    Evaluation,
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    Intent,
    ModelCall,
    Note,
    Outcome,
    Percept,
    PerceptKind,
    ProposalOutcome,
    ReasoningOutcome,
    Receipt,
    RetrievalOutcome,
    SelectionOutcome,
    TokenUsage,
    TraceRecord,
    TurnEnd,
    TurnStart,
    one_line,
    phase_after,
)

_TEXT = 600
"""Characters kept of a text; a status is small however large its run is."""
_READ = 8 * _TEXT
"""Characters looked at of a text: where that much is no letter, no more are looked for."""
_NAME = 60
_CANDIDATES = 12
_NOTES = 5
_CONSTRAINTS = 20
"""Constraints that vetoes are counted by; those of further ones are counted together."""
_OTHERS = "others"


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateStatus:
    """A candidate and what became of it."""

    id: str
    action: str
    arguments: str
    """As the model wrote them, shortened."""
    survived: bool | None = None
    """None before its evaluation."""
    score: float | None = None
    died_of: str = ""
    """The constraint that forbids it; empty for a survivor."""
    reason: str = ""
    """Why it was forbidden, or how it was judged."""
    chosen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was selected last."""

    action: str
    decided_by: str
    """`model`, `rank` or `only_survivor`; `nobody` for an impasse."""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """How a run stands after some of its records; all texts are cleaned and short."""

    records: int = 0
    turn: int = 0
    cycle: int = 0
    phase: str = ""
    """The phase that goes on now; `model` or `action` for a plain agent; empty between turns."""
    since: datetime | None = None
    """When that began."""
    acting: str = ""
    """The external action that has begun and not ended."""
    usage: TokenUsage = field(default_factory=TokenUsage)
    """Of all model calls."""
    calls: int = 0
    """Requests to models, failed ones included."""
    decision: Decision | None = None
    vetoes: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many candidates each constraint or check has ended."""
    impasses: int = 0
    goal: str = ""
    situation: str = ""
    risks: tuple[str, ...] = ()
    candidates: tuple[CandidateStatus, ...] = ()
    proposed_in: int = 0
    """The cycle of the candidates: the one before, until others are proposed."""
    left_out: int = 0
    """Candidates of that cycle that are not among `candidates`."""
    result: str = ""
    notes: tuple[str, ...] = ()
    """The last few, oldest first."""
    ended_by: str = ""
    """Why the last turn ended; empty while one goes on."""
    response: str = ""

    @property
    def vetoed(self) -> int:
        """Candidates that something ended."""
        return sum(self.vetoes.values())

    def with_record(self, record: TraceRecord) -> RunStatus:
        """The status with one more record."""
        new = replace(self, records=self.records + 1)
        match record:
            case TurnStart():
                return replace(
                    new, turn=record.turn, phase="retrieval", since=record.at, ended_by=""
                )
            case TurnEnd():
                return _ended(new, record)
            case ModelCall():
                return _called(new, record)
            case Intent():
                return _acting(new, record)
            case Receipt():
                acted = replace(new, acting="", since=record.at)
                return replace(acted, result=short(f"{record.status}: {record.content}"))
            case Note():
                told = short(f"{record.about}: {record.text}", 200)
                return replace(new, notes=(*self.notes, told)[-_NOTES:])
            case Percept():
                return _perceived(new, record)
            case _:
                return _with_outcome(new, record) if record.record == "outcome" else new


def short(text: str, limit: int = _TEXT) -> str:
    """A foreign text on one line, cleaned, cut before it is looked at as a whole."""
    cut = len(text) - _READ
    return one_line(text[:_READ] if cut > 0 else text, limit)


def _ended(status: RunStatus, end: TurnEnd) -> RunStatus:
    return replace(
        status,
        phase="",
        since=end.at,
        acting="",
        ended_by=short(end.reason, _NAME),
        response=short(end.response),
    )


def _called(status: RunStatus, call: ModelCall) -> RunStatus:
    new = replace(status, calls=status.calls + 1, usage=status.usage + call.usage)
    if call.phase is not None:
        return new
    wanted = ", ".join(short(str(one.get("name", "")), _NAME) for one in call.tool_calls[:5])
    decision = Decision(action=wanted, decided_by="model") if wanted else status.decision
    return replace(
        new,
        cycle=call.cycle,
        phase="action" if wanted else "model",
        since=call.at,
        decision=decision,
        situation=short(call.raw) or status.situation,
    )


def _acting(status: RunStatus, intent: Intent) -> RunStatus:
    phase = status.phase if intent.candidate_id is not None else "action"
    arguments = _json(intent.arguments)
    action = short(f"{intent.action} {arguments}", 200)
    return replace(status, acting=action, phase=phase, since=intent.at)


def _perceived(status: RunStatus, percept: Percept) -> RunStatus:
    if percept.sets_goal:
        return replace(status, goal=short(percept.content))
    if percept.kind is PerceptKind.UNKNOWN_OUTCOME:
        told = short(f"unknown outcome: {percept.content}", 200)
        return replace(status, notes=(*status.notes, told)[-_NOTES:])
    return status


def _with_outcome(status: RunStatus, outcome: Outcome) -> RunStatus:
    following = phase_after(outcome.phase)
    new = replace(status, cycle=outcome.cycle, phase=following.value, since=outcome.at)
    match outcome:
        case RetrievalOutcome():
            return new
        case ReasoningOutcome():
            risks = tuple(short(risk, 200) for risk in outcome.risks[:5])
            return replace(new, situation=short(outcome.situation), risks=risks)
        case ProposalOutcome():
            shown = tuple(_proposed(one) for one in outcome.candidates[:_CANDIDATES])
            left_out = len(outcome.candidates) - len(shown)
            new = replace(new, candidates=shown, left_out=left_out)
            return replace(new, proposed_in=outcome.cycle)
        case EvaluationOutcome():
            return _evaluated(new, outcome)
        case SelectionOutcome():
            return _selected(new, outcome)
        case ExecutionOutcome():
            return _executed(new, outcome)


def _proposed(candidate: Candidate) -> CandidateStatus:
    return CandidateStatus(
        id=short(candidate.id, _NAME),
        action=short(candidate.action, _NAME),
        arguments=short(candidate.raw_arguments, 200),
        reason=short(candidate.reason, 200),
    )


def _evaluated(status: RunStatus, outcome: EvaluationOutcome) -> RunStatus:
    by_id = {short(one.candidate_id, _NAME): one for one in outcome.evaluations}
    judged = tuple(_judged(one, by_id.get(one.id)) for one in status.candidates)
    vetoes = dict(status.vetoes)
    for evaluation in outcome.evaluations:
        if evaluation.died_of is not None:
            name = short(evaluation.died_of.constraint, _NAME) or "unnamed"
            name = name if name in vetoes or len(vetoes) < _CONSTRAINTS else _OTHERS
            vetoes[name] = vetoes.get(name, 0) + 1
    return replace(status, candidates=judged, vetoes=vetoes)


def _judged(candidate: CandidateStatus, evaluation: Evaluation | None) -> CandidateStatus:
    if evaluation is None:
        return candidate
    fatal = evaluation.died_of
    return replace(
        candidate,
        survived=fatal is None,
        score=evaluation.score,
        died_of="" if fatal is None else short(fatal.constraint, _NAME) or "unnamed",
        reason=short(evaluation.reason if fatal is None else fatal.reason, 200),
    )


def _selected(status: RunStatus, outcome: SelectionOutcome) -> RunStatus:
    reason = short(outcome.reason, 200)
    if outcome.impasse:
        decision = Decision(action="impasse", decided_by="nobody", reason=reason)
        return replace(status, decision=decision, impasses=status.impasses + 1)
    wanted = [short(one, _NAME) for one in outcome.chosen]
    candidates = tuple(replace(one, chosen=one.id in wanted) for one in status.candidates)
    actions = [one.action for one in candidates if one.chosen] or wanted
    decided_by = "nobody" if outcome.decided_by is None else outcome.decided_by.value
    decision = Decision(action=", ".join(actions), decided_by=decided_by, reason=reason)
    return replace(status, decision=decision, candidates=candidates)


def _executed(status: RunStatus, outcome: ExecutionOutcome) -> RunStatus:
    new = replace(status, acting="")
    if outcome.status is ExecutionStatus.NONE:
        return replace(new, result="none: nothing was run")
    said = outcome.result if outcome.response is None else outcome.response
    return replace(new, result=short(f"{outcome.status}: {said}"))


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
