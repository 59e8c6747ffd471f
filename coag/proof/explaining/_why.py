"""What the decision of a cycle rested on, read from the trace alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from coag.errors import ConfigurationError
from coag.memory import ProcedureVersion
from coag.proof.forking import Choice, memory_of, outcomes_of, procedure_of
from coag.schema import (
    Candidate,
    EvaluationOutcome,
    ExecutionOutcome,
    ModelCall,
    Note,
    Outcome,
    Percept,
    Phase,
    ProposalOutcome,
    ReasoningOutcome,
    RetrievalOutcome,
    SelectionOutcome,
    Snapshot,
    SnapshotReason,
    TraceRecord,
    merge_patch,
)
from coag.tracing import RunFolder, RunInfo, cycle_of, known_cycles, read_run, read_trace

from ._plain import explain_plain
from ._values import Considered, Explanation, ProcedureUsed

_HISTORIES: TypeAdapter[dict[str, tuple[ProcedureVersion, ...]]] = TypeAdapter(
    dict[str, tuple[ProcedureVersion, ...]]
)


def why(run: RunFolder | Path | str, cycle: int) -> Explanation:
    """What a cycle's decision rested on.

    Args:
        run: The run's folder.
        cycle: The cycle; of a plain run the turn.

    Raises:
        ConfigurationError: The run has no such cycle.
        TraceError: The run cannot be read.
    """
    folder = run if isinstance(run, RunFolder) else RunFolder(Path(run))
    return explain(read_run(folder.path), _records(folder), cycle)


def explain(info: RunInfo, records: Iterable[TraceRecord], cycle: int) -> Explanation:
    """What a cycle's decision rested on, by its records alone.

    Args:
        info: What is known about the run.
        records: Those from the cycle's beginning on, where it begins with a snapshot, and before
            them a snapshot that holds the procedures' texts; or all of the run.
        cycle: The cycle; of a plain run the turn.

    Raises:
        ConfigurationError: There is no such cycle among them.
    """
    if info.kind != "coag":
        return explain_plain(info, records, cycle)
    seen = _Seen(cycle)
    for record in records:
        if seen.take(record):
            break
    if not seen.outcomes:
        known = known_cycles(info, seen.last)
        raise ConfigurationError(f"Run {info.id!r} has {known}: no cycle {cycle}.")
    return seen.explained(info)


def _records(folder: RunFolder) -> Iterator[TraceRecord]:
    return (entry.body for entry in read_trace(folder.trace_path, lambda problem: None))


class _Seen:
    """What a trace tells of one cycle, and of what led up to it."""

    def __init__(self, cycle: int) -> None:
        self.outcomes: dict[Phase, Outcome] = {}
        self.last = 0
        """The last cycle met."""
        self._cycle = cycle
        self._goal = ""
        self._state: dict[str, Any] = {}
        self._percepts: list[Percept] = []
        self._histories: Mapping[str, tuple[ProcedureVersion, ...]] = {}
        self._calls: list[ModelCall] = []
        self._notes: list[str] = []

    def take(self, record: TraceRecord) -> bool:
        """Takes in the next record; True once nothing further can matter."""
        self.last = max(self.last, cycle_of(record) or 0)
        match record:
            case Snapshot():
                self._snapshot(record)
            case Percept() if not self.outcomes:
                self._percepts.append(record)
                self._state = merge_patch(self._state, record.state_patch or {})
            case ModelCall() if self._is_now(record.cycle):
                self._calls.append(record)
            case Note() if record.cycle == self._cycle:
                self._notes.append(f"{record.about}: {record.text}")
            case _ if record.record == "outcome":
                return self._outcome(record)
            case _:
                pass
        return False

    def _is_now(self, cycle: int) -> bool:
        """Retrieval counts the cycle up, so its own calls still name the one before."""
        return bool(self.outcomes) and cycle == self._cycle

    def _outcome(self, outcome: Outcome) -> bool:
        if outcome.cycle == self._cycle:
            self.outcomes[outcome.phase] = outcome
            return isinstance(outcome, ExecutionOutcome)
        if isinstance(outcome, ExecutionOutcome):
            self._percepts.clear()
        return False

    def _snapshot(self, snapshot: Snapshot) -> None:
        self._histories = _histories(snapshot) or self._histories
        if self.outcomes:
            return
        goal = snapshot.working_memory.get("goal", "")
        self._goal = goal if isinstance(goal, str) else ""
        state = snapshot.working_memory.get("perceptual_state")
        self._state = cast("dict[str, Any]", state) if isinstance(state, dict) else {}
        if snapshot.reason is SnapshotReason.CYCLE:
            return
        memory = memory_of(snapshot)
        self._percepts = list(memory.percepts)
        if memory.in_cycle and memory.cycle == self._cycle:
            self.outcomes = {outcome.phase: outcome for outcome in outcomes_of(memory)}

    # ---- the explanation ----

    def explained(self, info: RunInfo) -> Explanation:
        """What was seen, as an explanation."""
        told: dict[str, Any] = {"considered": self._considered()}
        for outcome in self.outcomes.values():
            told |= _told(outcome)
        return Explanation.model_validate(
            {
                "run": info.id,
                "kind": info.kind,
                "cycle": self._cycle,
                "goal": self._goal,
                "state": self._state,
                "percepts": tuple(self._percepts),
                "procedures": self._procedures(),
                "models": tuple(dict.fromkeys(call.model for call in self._calls)),
                "notes": tuple(self._notes),
                **told,
            }
        )

    def _procedures(self) -> tuple[ProcedureUsed, ...]:
        retrieval = self.outcomes.get(Phase.RETRIEVAL)
        pinned = retrieval.procedures if isinstance(retrieval, RetrievalOutcome) else {}
        names = dict.fromkeys(procedure_of(call) for call in self._calls)
        return tuple(self._used(name, pinned[name]) for name in names if name in pinned)

    def _used(self, name: str, version: int) -> ProcedureUsed:
        history = self._histories.get(name, ())
        if not 0 < version <= len(history):
            return ProcedureUsed(name=name, version=version)
        told = history[version - 1]
        return ProcedureUsed(
            name=name, version=version, author=told.author, reason=told.reason, text=told.text
        )

    def _considered(self) -> tuple[Considered, ...]:
        proposal = self.outcomes.get(Phase.PROPOSAL)
        evaluation = self.outcomes.get(Phase.EVALUATION)
        selection = self.outcomes.get(Phase.SELECTION)
        chosen = selection.chosen if isinstance(selection, SelectionOutcome) else ()
        judged = evaluation if isinstance(evaluation, EvaluationOutcome) else None
        candidates = proposal.candidates if isinstance(proposal, ProposalOutcome) else ()
        return tuple(_considered(one, judged, one.id in chosen) for one in candidates)


def _histories(snapshot: Snapshot) -> Mapping[str, tuple[ProcedureVersion, ...]]:
    """Every version of each procedure, where the snapshot holds them and they can be read."""
    state = snapshot.procedures.get("state")
    try:
        return _HISTORIES.validate_python(state["procedures"] if state else {})
    except (ValidationError, KeyError, TypeError):  # a trace may hold anything
        return {}


def _considered(
    candidate: Candidate, evaluation: EvaluationOutcome | None, chosen: bool
) -> Considered:
    judgements = evaluation.evaluations if evaluation is not None else ()
    found = [each for each in judgements if each.candidate_id == candidate.id]
    judged: dict[str, Any] = {}
    if found:
        judged = {
            "verdicts": found[0].verdicts,
            "died_of": found[0].died_of,
            "projection": found[0].projection,
            "score": found[0].score,
            "judged": found[0].reason,
        }
    return Considered(
        id=candidate.id,
        choice=Choice.of(candidate),
        because=candidate.reason,
        expected_effect=candidate.expected_effect,
        chosen=chosen,
        **judged,
    )


def _told(outcome: Outcome) -> dict[str, Any]:
    """What one outcome adds to an explanation."""
    match outcome:
        case RetrievalOutcome():
            return {
                "query": outcome.query,
                "recalled": outcome.records,
                "left_out": outcome.left_out,
                "constraints": outcome.constraints,
            }
        case ReasoningOutcome():
            return {"situation": outcome.situation, "risks": outcome.risks}
        case SelectionOutcome():
            return {"decided_by": outcome.decided_by, "reason": outcome.reason}
        case ExecutionOutcome():
            answer = outcome.response
            result = outcome.result if answer is None else answer
            return {"status": outcome.status.value, "result": result}
        case _:
            return {}
