"""The summary of one cycle: what was known, considered, decided and done.

Every view of a cycle (the log, the consoles, the inspector, spans, explanations, forks) is built on
this value, so that they all read a trace in the same way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from coag._util.json_diff import merge_patch
from coag.schema import (
    Candidate,
    DecidedBy,
    Entry,
    Evaluation,
    EvaluationOutcome,
    ExecutionOutcome,
    Intent,
    ModelCall,
    Note,
    Outcome,
    Percept,
    Phase,
    ProposalOutcome,
    ReasoningOutcome,
    Receipt,
    ReceiptStatus,
    RetrievalOutcome,
    SelectionOutcome,
    Snapshot,
    SnapshotReason,
    TokenUsage,
    TraceRecord,
    TurnEnd,
    TurnStart,
    Verdict,
    Written,
)

_OutcomeT = TypeVar("_OutcomeT")
_VERDICTS = TypeAdapter(tuple[Verdict, ...])
_TURN_STATUS = {"error": "failed", "cancelled": "cancelled"}
"""The status of a turn in which nothing was called, by the reason of its end; otherwise `done`."""

_ACTS = frozenset({"outcome", "model_call", "intent", "receipt", "written"})
"""Records after which a cycle has begun to act: percepts that follow are its effects."""


@dataclass(frozen=True, slots=True)
class CandidateSummary:
    """A candidate, what was found out about it, and whether it was selected."""

    candidate: Candidate
    evaluation: Evaluation | None = None
    """None if it was not evaluated."""
    chosen: bool = False

    @property
    def survived(self) -> bool | None:
        """Whether every constraint allowed it; None if it was not evaluated."""
        return None if self.evaluation is None else self.evaluation.survived

    @property
    def rejected_by(self) -> Verdict | None:
        """The verdict that forbade it; None for a survivor, and if it was not evaluated."""
        return None if self.evaluation is None else self.evaluation.rejected_by


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionSummary:
    """An action that was executed, or at least begun."""

    action: str
    arguments: dict[str, Any] | None
    status: str | None
    """How it ended (`done`, `failed`, `refused`, `unknown`, `cancelled`); None if that is not in
    the trace."""
    result: str = ""
    internal: bool = False
    candidate_id: str | None = None
    intent_id: str | None = None
    """Id of its intent; None for one that needs none."""
    seconds: float | None = None
    """How long it ran; None where there is no receipt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleSummary:
    """One cycle, or one turn of a plain agent, as its records show it. See `summarize_cycle`."""

    cycle: int
    """Number of the cycle; of a plain run the turn."""
    goal: str = ""
    """The goal when the cycle began; empty where the records do not say."""
    state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The perceptual state when the cycle began."""
    began: datetime | None = None
    """Time of the first record."""
    ended: datetime | None = None
    """Time of the last record."""
    outcomes: Mapping[Phase, Outcome] = field(default_factory=dict[Phase, Outcome])
    """The outcome of each phase that was finished; of a repeated phase the last."""
    candidates: tuple[CandidateSummary, ...] = ()
    actions: tuple[ActionSummary, ...] = ()
    """What Execution dealt with; without its outcome, the actions that were begun."""
    calls: tuple[ModelCall, ...] = ()
    """Requests to models."""
    effects: tuple[tuple[Intent, Receipt | None], ...] = ()
    """External actions that were begun, each with its receipt if there is one."""
    percepts: tuple[Percept, ...] = ()
    """What arrived before the first phase."""
    returned: tuple[Percept, ...] = ()
    """What arrived afterwards: what the actions returned, and changes of the environment."""
    written: tuple[Written, ...] = ()
    notes: tuple[Note, ...] = ()
    turn_end: TurnEnd | None = None
    """The end of the turn, if this was its last cycle."""

    @property
    def retrieval(self) -> RetrievalOutcome | None:
        """The outcome of Retrieval."""
        return _of_type(self.outcomes.get(Phase.RETRIEVAL), RetrievalOutcome)

    @property
    def reasoning(self) -> ReasoningOutcome | None:
        """The outcome of Reasoning."""
        return _of_type(self.outcomes.get(Phase.REASONING), ReasoningOutcome)

    @property
    def proposal(self) -> ProposalOutcome | None:
        """The outcome of Proposal."""
        return _of_type(self.outcomes.get(Phase.PROPOSAL), ProposalOutcome)

    @property
    def evaluation(self) -> EvaluationOutcome | None:
        """The outcome of Evaluation."""
        return _of_type(self.outcomes.get(Phase.EVALUATION), EvaluationOutcome)

    @property
    def selection(self) -> SelectionOutcome | None:
        """The outcome of Selection."""
        return _of_type(self.outcomes.get(Phase.SELECTION), SelectionOutcome)

    @property
    def execution(self) -> ExecutionOutcome | None:
        """The outcome of Execution."""
        return _of_type(self.outcomes.get(Phase.EXECUTION), ExecutionOutcome)

    @property
    def recalled(self) -> int:
        """How many records of long-term memory were recalled."""
        return len(self.retrieval.records) if self.retrieval else 0

    @property
    def situation(self) -> str:
        """How Reasoning understood the situation."""
        return self.reasoning.situation if self.reasoning else ""

    @property
    def rejected(self) -> tuple[CandidateSummary, ...]:
        """The candidates that a constraint or a check forbade."""
        return tuple(one for one in self.candidates if one.rejected_by is not None)

    @property
    def chosen(self) -> tuple[CandidateSummary, ...]:
        """The selected candidates, in the order of the selection; empty for an impasse."""
        names = self.selection.chosen if self.selection else ()
        by_id = {one.candidate.id: one for one in self.candidates}
        return tuple(by_id[name] for name in names if name in by_id)

    @property
    def impasse(self) -> bool:
        """True if Selection was reached and no candidate had survived."""
        return self.selection is not None and self.selection.impasse

    @property
    def decided_by(self) -> DecidedBy | None:
        """Who selected; None for an impasse, and before Selection."""
        return self.selection.decided_by if self.selection else None

    @property
    def reason(self) -> str:
        """Why that was selected."""
        return self.selection.reason if self.selection else ""

    @property
    def status(self) -> str | None:
        """How the cycle ended; None if nothing says so.

        Of a turn without phases: `failed` if any of its actions did not succeed, `done` otherwise;
        where it called nothing, by the reason of its end.
        """
        if self.execution is not None:
            return self.execution.status.value
        receipts = [receipt for _, receipt in self.effects if receipt is not None]
        if receipts:
            succeeded = all(receipt.status is ReceiptStatus.DONE for receipt in receipts)
            return "done" if succeeded else "failed"
        return None if self.turn_end is None else _TURN_STATUS.get(self.turn_end.reason, "done")

    @property
    def result(self) -> str:
        """The answer of the turn if Execution gave one, otherwise what the action returned."""
        if self.execution is None:
            return ""
        answer = self.execution.response
        return self.execution.result if answer is None else answer

    @property
    def usage(self) -> TokenUsage:
        """Tokens that the phases used; of a turn without phases those of its model calls."""
        used = self.outcomes.values() or self.calls
        return sum((one.usage for one in used), TokenUsage())

    @property
    def call_usage(self) -> TokenUsage:
        """Tokens of the requests to models."""
        return sum((call.usage for call in self.calls), TokenUsage())

    @property
    def seconds(self) -> float | None:
        """Seconds from the first to the last record; None without records."""
        if self.began is None or self.ended is None:
            return None
        return (self.ended - self.began).total_seconds()

    @property
    def problems(self) -> tuple[str, ...]:
        """What did not go as it should, in the order of the trace: the notes as sentences."""
        return tuple(f"{note.about}: {note.text}" for note in self.notes)


def summarize_cycle(
    records: Iterable[TraceRecord],
    *,
    cycle: int | None = None,
    goal: str = "",
    state: Mapping[str, Any] | None = None,
    inherited: Iterable[Outcome] = (),
) -> CycleSummary:
    """The summary of a cycle, or of a plain agent's turn, from its records.

    Any part of the records may be given: what is not among them is missing in the summary.

    Args:
        records: The records of one cycle, in the order of the trace.
        cycle: Its number; None takes the highest that its records name.
        goal: The goal at the first record, used if no snapshot among the records has it.
        state: The perceptual state at the first record, likewise.
        inherited: Outcomes of the same cycle that are not among the records; of a fork, those
            that its parent had committed.
    """
    situation = dict(state or {})
    outcomes = {outcome.phase: outcome for outcome in inherited}
    receipts: dict[str, Receipt] = {}
    groups: dict[str, list[Any]] = defaultdict(list)
    times: list[datetime] = []
    named, acted = 0, False
    for record in records:
        times.append(record.at)
        if not acted:
            goal, situation = situation_after(record, goal, situation)
        named = max(named, _named_cycle(record))
        if record.record == "outcome":
            outcomes[record.phase] = record
        elif isinstance(record, Receipt):
            receipts[record.intent_id] = record
        else:
            later = acted and isinstance(record, Percept)
            groups["returned" if later else record.record].append(record)
        acted = acted or record.record in _ACTS
    return CycleSummary(
        cycle=named if cycle is None else cycle,
        goal=goal,
        state=situation,
        began=times[0] if times else None,
        ended=times[-1] if times else None,
        outcomes=outcomes,
        candidates=_candidates(outcomes),
        actions=_actions(outcomes.get(Phase.EXECUTION), groups["intent"], receipts),
        calls=tuple(groups["model_call"]),
        effects=tuple((one, receipts.get(one.id)) for one in groups["intent"]),
        percepts=tuple(groups["percept"]),
        returned=tuple(groups["returned"]),
        written=tuple(groups["written"]),
        notes=tuple(groups["note"]),
        turn_end=groups["turn_end"][-1] if groups["turn_end"] else None,
    )


def refusal_of(note: Note) -> Verdict | None:
    """The verdict that forbade a guarded call, by the note of its verdicts; None for another note.

    A call that was forbidden was not begun, and leaves nothing else.
    """
    with suppress(ValidationError):  # a trace may hold anything
        verdicts = _VERDICTS.validate_python(note.details.get("verdicts", ()))
        return next((verdict for verdict in verdicts if not verdict.allowed), None)
    return None


def split_cycles(entries: Iterable[Entry]) -> Iterator[tuple[int, list[Entry]]]:
    """The records of a trace, cycle by cycle, of a plain run turn by turn.

    A cycle begins with the start of its turn or its snapshot, where neither was written with the
    first record that names it: so what an action returned is in the cycle that ran it. What names
    no cycle is added to the next one, at the end of the trace to the last. `TraceIndex` divides a
    trace in the same way.
    """
    cycle, group, acted = 0, list[Entry](), False
    done: tuple[int, list[Entry]] | None = None
    for entry in entries:
        record = entry.body
        begins = isinstance(record, TurnStart) or (
            isinstance(record, Snapshot) and record.reason is SnapshotReason.CYCLE
        )
        named = _named_cycle(record)
        if (begins and acted) or (cycle and named > cycle):
            if cycle and done and done[0] != cycle:
                yield done
                done = None
            if cycle:
                done = (cycle, [*done[1], *group]) if done else (cycle, group)
                group = []
            cycle, acted = 0, False
        group.append(entry)
        acted = acted or not (begins or isinstance(record, Percept))
        cycle = max(cycle, named)
    if done and (not cycle or done[0] == cycle):
        yield done[0], [*done[1], *group]
        return
    if done:
        yield done
    if cycle:
        yield cycle, group


def summarize_cycles(entries: Iterable[Entry]) -> Iterator[CycleSummary]:
    """The summary of every cycle of a trace, in order; one is held at a time."""
    goal, state = "", dict[str, Any]()
    for cycle, group in split_cycles(entries):
        records = [entry.body for entry in group]
        yield summarize_cycle(records, cycle=cycle, goal=goal, state=state)
        for record in records:
            goal, state = situation_after(record, goal, state)


def _of_type(outcome: Outcome | None, kind: type[_OutcomeT]) -> _OutcomeT | None:
    return outcome if isinstance(outcome, kind) else None


def _named_cycle(record: TraceRecord) -> int:
    """The cycle in which a record was made; 0 if it is between two cycles."""
    if isinstance(record, Percept | TurnStart | TurnEnd | Snapshot):
        return 0
    return 0 if record.record == "actions" else max(record.cycle, 0)


def situation_after(
    record: TraceRecord, goal: str, state: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Goal and perceptual state after a record."""
    if isinstance(record, Snapshot):
        held = record.working_memory.get("perceptual_state")
        state = cast("dict[str, Any]", held) if isinstance(held, dict) else {}
        known = record.working_memory.get("goal")
        return known if isinstance(known, str) else "", state
    if isinstance(record, Percept):
        goal = record.content if record.sets_goal else goal
        state = merge_patch(state, record.state_patch) if record.state_patch else state
    return goal, state


def _candidates(outcomes: Mapping[Phase, Outcome]) -> tuple[CandidateSummary, ...]:
    proposal, evaluation = outcomes.get(Phase.PROPOSAL), outcomes.get(Phase.EVALUATION)
    selection = outcomes.get(Phase.SELECTION)
    if not isinstance(proposal, ProposalOutcome):
        return ()
    judged = evaluation.evaluations if isinstance(evaluation, EvaluationOutcome) else ()
    by_id = {one.candidate_id: one for one in judged}
    chosen = selection.chosen if isinstance(selection, SelectionOutcome) else ()
    return tuple(
        CandidateSummary(one, by_id.get(one.id), one.id in chosen) for one in proposal.candidates
    )


def _actions(
    execution: Outcome | None, intents: list[Intent], receipts: Mapping[str, Receipt]
) -> tuple[ActionSummary, ...]:
    if isinstance(execution, ExecutionOutcome):
        return tuple(
            ActionSummary(
                action=one.action,
                arguments=one.arguments,
                status=one.status.value,
                result=one.result,
                internal=one.internal,
                candidate_id=one.candidate_id,
                intent_id=one.intent_id,
                seconds=_seconds(receipts.get(one.intent_id or "")),
            )
            for one in execution.executed
        )
    begun = ((intent, receipts.get(intent.id)) for intent in intents)
    return tuple(
        ActionSummary(
            action=intent.action,
            arguments=intent.arguments,
            status=None if receipt is None else receipt.status.value,
            result="" if receipt is None else receipt.content,
            internal=intent.internal,
            candidate_id=intent.candidate_id,
            intent_id=intent.id,
            seconds=_seconds(receipt),
        )
        for intent, receipt in begun
    )


def _seconds(receipt: Receipt | None) -> float | None:
    return None if receipt is None else receipt.seconds
