"""A run to trace: records of every sort, as a cycle and as a plain agent leave them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coag.schema import (
    Candidate,
    DecidedBy,
    Evaluation,
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    Intent,
    ModelCall,
    OutputMode,
    Percept,
    PerceptKind,
    Phase,
    ProposalOutcome,
    ReasoningOutcome,
    Receipt,
    ReceiptStatus,
    Redactor,
    RetrievalOutcome,
    SelectionOutcome,
    TokenUsage,
    TraceRecord,
    Trust,
    TurnEnd,
    TurnStart,
    Verdict,
)
from coag.tracing import Recipe, RunFolder, RunInfo, RunKind, line_hash

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

CycleMaker = Callable[[int], list[TraceRecord]]
RunMaker = Callable[..., RunFolder]
LineMaker = Callable[[Iterable[TraceRecord]], list[bytes]]


def made_call(cycle: int, phase: Phase | None) -> ModelCall:
    return ModelCall(
        id=f"call-{cycle}-{phase}",
        at=NOW,
        cycle=cycle,
        phase=phase,
        model="scripted:sound",
        rung=OutputMode.JSON_SCHEMA,
        attempt=1,
        messages=(
            {"role": "system", "content": "You clean.\nYou never bump."},
            {"role": "user", "content": "What now?"},
        ),
        raw='{\n"situation": "dirty"}',
        usage=TokenUsage(prompt_tokens=10, completion_tokens=4, cached_tokens=6, calls=1),
    )


def made_cycle(cycle: int) -> Iterator[TraceRecord]:
    yield Percept(
        id=f"percept-{cycle}",
        at=NOW,
        kind=PerceptKind.MESSAGE,
        source="user",
        trust=Trust.USER,
        content="Clean the room.",
    )
    yield RetrievalOutcome(cycle=cycle, at=NOW, query="dirt")
    yield made_call(cycle, Phase.REASONING)
    yield ReasoningOutcome(cycle=cycle, at=NOW, situation="This cell is dirty.")
    yield made_call(cycle, Phase.PROPOSAL)
    candidates = (Candidate(id="c1", action="clean"), Candidate(id="c2", action="fly"))
    yield ProposalOutcome(cycle=cycle, at=NOW, candidates=candidates)
    good = Evaluation(candidate_id="c1", arguments={}, verdicts=(Verdict.allow(),), score=0.9)
    bad = Evaluation(candidate_id="c2", arguments=None, verdicts=(Verdict.forbid("no such"),))
    yield EvaluationOutcome(cycle=cycle, at=NOW, evaluations=(good, bad))
    yield SelectionOutcome(
        cycle=cycle, at=NOW, candidate_id="c1", decided_by=DecidedBy.ONLY_SURVIVOR
    )
    intent = f"intent-{cycle}"
    yield Intent(id=intent, at=NOW, cycle=cycle, candidate_id="c1", action="clean", arguments={})
    yield Receipt(
        intent_id=intent, at=NOW, cycle=cycle, status=ReceiptStatus.DONE, content="cleaned"
    )
    yield ExecutionOutcome(
        cycle=cycle, at=NOW, status=ExecutionStatus.DONE, action="clean", intent_id=intent
    )


def made_plain_cycle(cycle: int) -> Iterator[TraceRecord]:
    yield made_call(cycle, None)
    intent = f"intent-{cycle}"
    yield Intent(id=intent, at=NOW, cycle=cycle, candidate_id=None, action="clean", arguments={})
    yield Receipt(
        intent_id=intent, at=NOW, cycle=cycle, status=ReceiptStatus.DONE, content="cleaned"
    )


@pytest.fixture(scope="session")
def cycle_records() -> CycleMaker:
    return lambda cycle: list(made_cycle(cycle))


@pytest.fixture
def plain_cycle_records() -> CycleMaker:
    return lambda cycle: list(made_plain_cycle(cycle))


@pytest.fixture
def turn_records() -> list[TraceRecord]:
    start = TurnStart(at=NOW, turn=1, cycle=0)
    end = TurnEnd(at=NOW, turn=1, cycle=1, reason="respond", response="Done.")
    return [start, *made_cycle(1), end]


@pytest.fixture
def make_run(tmp_path: Path) -> RunMaker:
    def make(name: str = "20261121-120000-robot-abcdef", kind: RunKind = "coag") -> RunFolder:
        info = RunInfo(
            id=name,
            kind=kind,
            agent="robot",
            model="scripted:sound",
            recipe=Recipe(factory="case_study.recipes:robot", arguments={"seed": 7}),
            seed=7,
            started_at=NOW,
        )
        return RunFolder.create(tmp_path / "logs", info, redactor=Redactor())

    return make


def chained_lines(records: Iterable[TraceRecord]) -> list[bytes]:
    """Lines as a writer leaves them, with their newlines."""
    lines: list[bytes] = []
    before = ""
    for seq, record in enumerate(records):
        body = record.model_dump_json()
        before = line_hash(before, seq, body.encode())
        lines.append(f'{{"v":2,"seq":{seq},"hash":"{before}","body":{body}}}\n'.encode())
    return lines


@pytest.fixture(scope="session")
def trace_lines() -> LineMaker:
    return chained_lines
