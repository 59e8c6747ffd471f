"""Runs that are written down by hand, for tests of what runs through a whole trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from coag.inspector.views import RunCard, TaskOutcome
from coag.proof import DomainKnowledge
from coag.schema import (
    Candidate,
    DecidedBy,
    Evaluation,
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    Intent,
    MemoryKind,
    ModelCall,
    OutputMode,
    Percept,
    PerceptKind,
    ProposalOutcome,
    Provenance,
    ReasoningOutcome,
    RecalledRecord,
    Receipt,
    ReceiptStatus,
    Record,
    Redactor,
    RetrievalOutcome,
    SelectionOutcome,
    Snapshot,
    TokenUsage,
    TraceRecord,
    Trust,
    TurnEnd,
    TurnStart,
    Verdict,
    Written,
)
from coag.tracing import Parent, RunFolder, RunInfo, RunKind, TraceIndex, open_trace

AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
USED = TokenUsage(prompt_tokens=100, completion_tokens=10, calls=1)


def written_run(
    logs: Path,
    records: Iterable[TraceRecord],
    *,
    name: str = "run-1",
    kind: RunKind = "coag",
    parent: Parent | None = None,
) -> RunFolder:
    """A run that ended, with these records."""
    info = RunInfo(id=name, kind=kind, agent="robot", model="none", started_at=AT, parent=parent)
    folder = RunFolder.create(logs, info, redactor=Redactor())
    with open_trace(folder, redactor=Redactor()) as trace:
        for record in records:
            trace.write(record)
    folder.finish(at=AT + timedelta(minutes=1), redactor=Redactor())
    return folder


def index_of(folder: RunFolder) -> TraceIndex:
    """The index of a run's trace, scanned to its end."""
    index = TraceIndex(folder.trace_path)
    while index.extend():
        pass
    return index


def card_of(folder: RunFolder, info: RunInfo) -> RunCard:
    """A card for it."""
    return RunCard(
        key=info.id,
        folder=folder.path.name,
        info=info,
        is_open=False,
        outcome=TaskOutcome.UNKNOWN,
        ending="",
    )


def snapshot(cycle: int, state: dict[str, Any], **more: Any) -> Snapshot:
    """The beginning of a cycle; snapshots name the cycle before."""
    return Snapshot(at=AT, cycle=cycle - 1, working_memory={"perceptual_state": state}, **more)


def heard(text: str, *, source: str = "user", number: int = 1) -> Percept:
    """What somebody said."""
    return Percept(
        id=f"percept-{number:06}",
        at=AT,
        kind=PerceptKind.MESSAGE,
        source=source,
        trust=Trust.USER,
        content=text,
        sets_goal=True,
    )


def remembered(text: str, *, cycle: int = 1, name: str = "r1") -> Record:
    """A record of long-term memory."""
    origin = Provenance(
        run="run-1", activity="main", cycle=cycle, source="robot", source_kind="agent",
        trust=Trust.DEVELOPER,
    )  # fmt: skip
    return Record(
        id=name, kind=MemoryKind.EPISODIC, text=text, scope="robot", created_at=AT,
        provenance=origin,
    )  # fmt: skip


def noted(record: Record, *, cycle: int) -> Written:
    """That it was written to memory."""
    content = record.model_dump(mode="json")
    return Written(at=AT, cycle=cycle, what="record", id=record.id, content=content)


def thought(
    cycle: int,
    action: str = "clean",
    *,
    at: datetime = AT,
    recalled: Sequence[Record] = (),
    result: str = "cleaned",
    usage: TokenUsage = USED,
) -> list[TraceRecord]:
    """Six outcomes of a cycle that does something; another candidate is forbidden."""
    chosen = Candidate(id=f"c{cycle}1", action=action, raw_arguments='{"hard": true}')
    other = Candidate(id=f"c{cycle}2", action="leave", reason="it is late")
    forbidden = Verdict(allowed=False, constraint="stay", reason="the work is not done")
    hits = tuple(RecalledRecord(record=record, score=0.5) for record in recalled)
    allowed = Verdict(allowed=True, constraint="stay")
    return [
        RetrievalOutcome(cycle=cycle, at=at, query="dirt", records=hits, constraints=("stay",)),
        ReasoningOutcome(cycle=cycle, at=at, situation="It is dirty.", usage=usage),
        ProposalOutcome(cycle=cycle, at=at, candidates=(chosen, other)),
        EvaluationOutcome(
            cycle=cycle,
            at=at,
            evaluations=(
                Evaluation(candidate_id=chosen.id, verdicts=(allowed,), score=0.9),
                Evaluation(candidate_id=other.id, verdicts=(forbidden,)),
            ),
        ),
        SelectionOutcome(
            cycle=cycle, at=at, candidate_id=chosen.id, decided_by=DecidedBy.ONLY_SURVIVOR
        ),
        ExecutionOutcome(
            cycle=cycle,
            at=at,
            status=ExecutionStatus.DONE,
            candidate_id=chosen.id,
            action=action,
            result=result,
        ),
    ]


def cycles_of(*actions: str, at: datetime = AT, request: str = "Clean up!") -> list[TraceRecord]:
    """A turn with a cycle for each action."""
    records: list[TraceRecord] = [TurnStart(at=at, turn=1, cycle=0), heard(request)]
    for cycle, action in enumerate(actions, 1):
        records += [snapshot(cycle, {"battery": 100 - cycle}), *thought(cycle, action, at=at)]
    last = len(actions)
    return [*records, TurnEnd(at=at, turn=1, cycle=last, reason="respond", response="Done.")]


def plain_turn(turn: int, answer: str, *, usage: TokenUsage = USED) -> list[TraceRecord]:
    """A turn of a plain agent with one call of a model and one of a tool."""
    intent = f"intent-{turn:06}"
    call = ModelCall(
        id=f"call-{turn:06}",
        at=AT,
        cycle=turn,
        phase=None,
        model="none",
        expected="text",
        rung=OutputMode.TEXT,
        attempt=1,
        messages=({"role": "user", "content": "Go on."},),
        raw=answer,
        usage=usage,
        seconds=1.0,
    )
    return [
        TurnStart(at=AT, turn=turn, cycle=turn),
        heard("Go on.", number=turn),
        call,
        Intent(id=intent, at=AT, cycle=turn, candidate_id=None, action="look", arguments={}),
        Receipt(
            intent_id=intent, at=AT, cycle=turn, status=ReceiptStatus.DONE, content="all clean"
        ),
        TurnEnd(at=AT, turn=turn, cycle=turn, reason="respond", response=answer),
    ]


class Faulty(DomainKnowledge):
    """A domain whose code is wrong."""

    def goal_facts(self, goal: str) -> Mapping[str, Any]:
        raise ZeroDivisionError(f"nothing is known of {goal}")
