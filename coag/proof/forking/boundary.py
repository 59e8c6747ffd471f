"""Where a run can be forked, and what its cycles decided."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Self

from pydantic import Field

from coag.errors import ConfigurationError, UnknownNameError
from coag.schema import (
    PHASES,
    Candidate,
    Entry,
    EvaluationOutcome,
    ExecutionOutcome,
    ModelCall,
    Outcome,
    Phase,
    ProposalOutcome,
    RetrievalOutcome,
    Rung,
    SelectionOutcome,
    Snapshot,
    SnapshotReason,
    TraceRecord,
    Value,
    well_formed,
)
from coag.tracing import RunInfo, known_cycles

# ---- A place between two phases of a run, from which it can go on otherwise ----


_FORM = re.compile(r"\s*(\d{1,9})(?:\.(\w+))?\s*")


class Boundary(Value):
    """Right before a phase of a cycle: what came before is the past, the phase is run anew."""

    cycle: int = Field(ge=1)
    phase: Phase = Phase.RETRIEVAL

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads `CYCLE.PHASE`, e.g. `3.evaluation`; `CYCLE` alone means its retrieval.

        Raises:
            ConfigurationError: It is neither.
            UnknownNameError: There is no such phase; lists those there are.
        """
        found = _FORM.fullmatch(text)
        if found is None or int(found[1]) < 1:
            raise ConfigurationError(
                f"{text!r} is no boundary. Write CYCLE.PHASE, e.g. 3.evaluation, or CYCLE alone "
                "for its retrieval; cycles count from 1."
            )
        phase = (found[2] or Phase.RETRIEVAL).casefold()
        if phase not in PHASES:
            raise UnknownNameError("phase", phase, PHASES)
        return cls(cycle=int(found[1]), phase=Phase(phase))

    def __str__(self) -> str:
        return f"{self.cycle}.{self.phase.value}"

    @property
    def before(self) -> Phase | None:
        """The phase whose outcome ends the past; None before Retrieval."""
        number = PHASES.index(self.phase)
        return PHASES[number - 1] if number else None

    def seq_in(self, entries: Iterable[Entry], run: RunInfo) -> int:
        """The number of the first record of a trace that is not part of the past.

        Args:
            entries: The trace.
            run: The run, for errors.

        Raises:
            ConfigurationError: The trace has no such cycle, or did not come so far in it.
        """
        seen = _Seen(self)
        for entry in entries:
            if seen.take(entry):
                break
        if seen.seq is None:
            raise ConfigurationError(seen.problem(run))
        return seen.seq


class _Seen:
    """What was read of a trace while a boundary is looked for in it."""

    def __init__(self, boundary: Boundary) -> None:
        self.seq: int | None = None
        self._boundary = boundary
        self._last: tuple[int, Phase] | None = None

    def take(self, entry: Entry) -> bool:
        """Takes in a line; True once nothing further can matter."""
        boundary, body = self._boundary, entry.body
        if isinstance(body, Snapshot) and _is_at(body, boundary):
            self.seq = entry.seq + 1
        if body.record != "outcome":
            return False
        self._last = (body.cycle, body.phase)
        if boundary.before is None:
            return isinstance(body, RetrievalOutcome) and body.cycle == boundary.cycle
        if self._last == (boundary.cycle, boundary.before):
            self.seq = entry.seq + 1
        return self.seq is not None

    def problem(self, run: RunInfo) -> str:
        """Why the boundary is not there."""
        boundary = self._boundary
        if self._last is None:
            return f"Run {run.id!r} has no cycle yet."
        cycle, phase = self._last
        if cycle == boundary.cycle and boundary.before is not None:
            return (
                f"Cycle {cycle} of run {run.id!r} came as far as {phase.value}: "
                f"{boundary.phase.value} cannot be run anew there."
            )
        return f"Run {run.id!r} has {known_cycles(run, cycle)}: {boundary} is not in its trace."


def _is_at(snapshot: Snapshot, boundary: Boundary) -> bool:
    """Whether a snapshot shows the state at the boundary."""
    phase = snapshot.working_memory.get("phase")
    if boundary.before is None:
        starts = (SnapshotReason.CYCLE, SnapshotReason.FORKED)
        between = phase in (None, Phase.EXECUTION.value)
        return snapshot.cycle == boundary.cycle - 1 and snapshot.reason in starts and between
    here = (snapshot.cycle, phase)
    return snapshot.reason is SnapshotReason.FORKED and here == (boundary.cycle, boundary.before)


# ---- What became of each cycle, in a few words that two runs can be compared by ----


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
