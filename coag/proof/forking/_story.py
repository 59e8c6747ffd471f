"""What became of each cycle, in a few words that two runs can be compared by."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from coag.schema import (
    Candidate,
    EvaluationOutcome,
    ExecutionOutcome,
    ModelCall,
    Outcome,
    Phase,
    ProposalOutcome,
    Rung,
    SelectionOutcome,
    TraceRecord,
    Value,
    well_formed,
)


class Choice(Value):
    """An action with its arguments: what two decisions are compared by."""

    action: str
    arguments: str
    """The arguments as JSON, in one form."""

    @classmethod
    def of(cls, candidate: Candidate) -> Choice:
        """What a candidate asks for."""
        return cls(action=candidate.action, arguments=_one_form(candidate.raw_arguments))

    def __str__(self) -> str:
        return f"{self.action} {self.arguments}"


class Death(Value):
    """A candidate that did not survive Evaluation."""

    choice: Choice
    constraint: str
    """The check or rule that it died of."""
    reason: str


class CycleStory(Value):
    """A cycle's decision and what came of it."""

    cycle: int
    chosen: tuple[Choice, ...] | None = None
    """Empty for an impasse; None if the cycle did not come so far."""
    decided_by: str | None = None
    reason: str = ""
    """Why it was chosen."""
    deaths: tuple[Death, ...] = ()
    status: str | None = None
    """How Execution ended; None if it was not reached."""
    result: str = ""


class Stories:
    """Makes the stories of a trace's cycles out of its outcomes, in order.

    Args:
        first: The first cycle to tell of.
    """

    def __init__(self, first: int = 1) -> None:
        self._first = first
        self._told: list[CycleStory] = []
        self._now: dict[Phase, Outcome] = {}

    def take(self, record: TraceRecord) -> None:
        """Takes in a record; only outcomes matter."""
        if record.record == "outcome" and record.cycle >= self._first:
            if self._now and next(iter(self._now.values())).cycle != record.cycle:
                self._told, self._now = [*self._told, story_of(self._now.values())], {}
            self._now[record.phase] = record

    def told(self) -> tuple[CycleStory, ...]:
        """The stories so far; the last one may have no end."""
        now = [story_of(self._now.values())] if self._now else []
        return (*self._told, *now)


def story_of(outcomes: Iterable[Outcome]) -> CycleStory:
    """The story of one cycle, by as many of its outcomes as there are."""
    known = {outcome.phase: outcome for outcome in outcomes}
    candidates: dict[str, Candidate] = {}
    proposal = known.get(Phase.PROPOSAL)
    if isinstance(proposal, ProposalOutcome):
        candidates = {candidate.id: candidate for candidate in proposal.candidates}
    told: dict[str, object] = {}
    evaluation, selection = known.get(Phase.EVALUATION), known.get(Phase.SELECTION)
    if isinstance(evaluation, EvaluationOutcome):
        told["deaths"] = deaths(evaluation, candidates)
    if isinstance(selection, SelectionOutcome):
        told["chosen"] = choices(selection.chosen, candidates)
        told["decided_by"], told["reason"] = selection.decided_by, selection.reason
    execution = known.get(Phase.EXECUTION)
    if isinstance(execution, ExecutionOutcome):
        result = execution.response if execution.response is not None else execution.result
        told["status"], told["result"] = execution.status.value, result
    return CycleStory.model_validate({"cycle": next(iter(known.values())).cycle, **told})


def choices(chosen: Sequence[str], candidates: dict[str, Candidate]) -> tuple[Choice, ...]:
    """What the chosen candidates ask for."""
    return tuple(Choice.of(candidates[name]) for name in chosen if name in candidates)


def deaths(evaluation: EvaluationOutcome, candidates: dict[str, Candidate]) -> tuple[Death, ...]:
    """What each rejected candidate died of."""
    return tuple(
        Death(
            choice=Choice.of(candidates[judged.candidate_id]),
            constraint=judged.died_of.constraint,
            reason=judged.died_of.reason,
        )
        for judged in evaluation.evaluations
        if judged.died_of is not None and judged.candidate_id in candidates
    )


def procedure_of(call: ModelCall) -> str:
    """The procedure by which a model was asked; empty if there was none."""
    if call.expected == "DeliberationAnswer":
        return "deliberation"
    if call.rung is Rung.NATIVE:
        return "native"
    return call.phase.value if call.phase else ""


def _one_form(raw: str) -> str:
    """JSON in one form, so that spaces make no difference; what is no JSON as it is."""
    try:
        return well_formed(json.dumps(json.loads(raw), ensure_ascii=False, sort_keys=True))
    except (ValueError, RecursionError):
        return raw
