"""Runs to show, and a way to run the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coag.cli import main
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
    Note,
    OutputMode,
    Percept,
    PerceptKind,
    Phase,
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
from coag.tracing import RunFolder, RunInfo, RunKind, open_trace

AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
USAGE = TokenUsage(prompt_tokens=1_000, completion_tokens=40, cached_tokens=600, calls=1)


@dataclass(frozen=True, slots=True)
class Result:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


def shown_call(cycle: int, phase: Phase | None = None, **changes: object) -> ModelCall:
    call = ModelCall(
        id="call-1",
        at=AT,
        cycle=cycle,
        phase=phase,
        model="scripted:sound",
        rung=OutputMode.JSON_SCHEMA,
        attempt=1,
        messages=({"role": "user", "content": "What now?"},),
        raw="{}",
        usage=USAGE,
        seconds=0.25,
    )
    return call.model_copy(update=changes)


def shown_percept(content: str, **changes: object) -> Percept:
    percept = Percept(
        id="percept-1",
        at=AT,
        kind=PerceptKind.MESSAGE,
        source="user",
        trust=Trust.USER,
        content=content,
    )
    return percept.model_copy(update=changes)


def good_cycle() -> list[TraceRecord]:
    provenance = Provenance(
        run="run-0",
        activity="main",
        cycle=2,
        source="robot",
        source_kind="agent",
        trust=Trust.UNTRUSTED,
    )
    record = Record(
        id="0123456789abcdef",
        kind=MemoryKind.EPISODIC,
        text="A wall stands at (2,1).",
        scope="robot",
        created_at=AT,
        provenance=provenance,
    )
    candidates = (
        Candidate(id="c1", action="move", raw_arguments='{"direction": "east"}', reason="dirt"),
        Candidate(id="c2", action="fly"),
    )
    survivor = Evaluation(
        candidate_id="c1", arguments={}, verdicts=(Verdict.allow(),), score=0.8, reason="short"
    )
    fatal = Verdict(allowed=False, reason="There is no such tool.", constraint="tool_exists")
    victim = Evaluation(candidate_id="c2", arguments=None, verdicts=(fatal,))
    return [
        RetrievalOutcome(
            cycle=1,
            at=AT,
            query="walls",
            records=(RecalledRecord(record=record, score=0.87),),
            constraints=("keep_charge",),
        ),
        shown_call(1, Phase.REASONING, attempt=2, repaired=True),
        ReasoningOutcome(cycle=1, at=AT, situation="Dirt lies east.", risks=("a wall",)),
        ProposalOutcome(cycle=1, at=AT, candidates=candidates),
        EvaluationOutcome(cycle=1, at=AT, evaluations=(survivor, victim)),
        SelectionOutcome(
            cycle=1, at=AT, candidate_id="c1", decided_by=DecidedBy.MODEL, reason="best"
        ),
        Intent(id="intent-1", at=AT, cycle=1, candidate_id="c1", action="move", arguments={}),
        Receipt(intent_id="intent-1", at=AT, cycle=1, status=ReceiptStatus.DONE, content="moved"),
        Written(at=AT, cycle=1, what="record", id="0123", content={"text": "moved east"}),
        ExecutionOutcome(
            cycle=1, at=AT, status=ExecutionStatus.DONE, action="move", result="moved"
        ),
        shown_percept("now at (1,0)", kind=PerceptKind.TOOL_RETURN, source="move"),
    ]


def impasse_cycle() -> list[TraceRecord]:
    return [
        Snapshot(at=AT, cycle=2, working_memory={}),
        RetrievalOutcome(cycle=2, at=AT, query="walls"),
        shown_call(2, Phase.REASONING, error="not JSON"),
        ReasoningOutcome(cycle=2, at=AT, situation="Stuck."),
        ProposalOutcome(cycle=2, at=AT, proposed_by="nobody"),
        Note(at=AT, cycle=2, about="fallback", text="No usable candidates."),
        EvaluationOutcome(cycle=2, at=AT),
        SelectionOutcome(cycle=2, at=AT, reason="none left"),
        ExecutionOutcome(cycle=2, at=AT, status=ExecutionStatus.NONE),
        shown_percept("no way", kind=PerceptKind.IMPASSE, source="cycle", is_error=True),
    ]


def answer_cycle() -> list[TraceRecord]:
    return [
        SelectionOutcome(cycle=3, at=AT, candidate_id="gone", decided_by=DecidedBy.ONLY_SURVIVOR),
        ExecutionOutcome(
            cycle=3, at=AT, status=ExecutionStatus.DONE, action="respond", response="All clean."
        ),
        TurnEnd(at=AT, turn=1, cycle=3, reason="respond", response="All clean."),
    ]


def plain_records() -> list[TraceRecord]:
    call = {"id": "t1", "name": "move", "arguments": '{"direction": "east"}'}
    return [
        shown_call(1, raw="I shall move.", tool_calls=(call,), rung=OutputMode.TEXT),
        Intent(id="intent-1", at=AT, cycle=1, candidate_id=None, action="move", arguments={}),
        Receipt(
            intent_id="intent-1", at=AT, cycle=1, status=ReceiptStatus.FAILED, content="a wall"
        ),
        TurnEnd(at=AT, turn=1, cycle=1, reason="respond", response=""),
    ]


LeaveRun = Callable[..., RunFolder]


@pytest.fixture
def leave_run(tmp_path: Path) -> LeaveRun:
    """Leaves a run with these records in the folder of logs."""

    def leave(
        records: Sequence[TraceRecord], name: str = "run-1", kind: RunKind = "coag"
    ) -> RunFolder:
        info = RunInfo(
            id=name, kind=kind, agent="robot", model="scripted:sound", seed=7, started_at=AT
        )
        folder = RunFolder.create(tmp_path / "logs", info, redactor=Redactor())
        with open_trace(folder, redactor=Redactor()) as trace:
            for record in records:
                trace.write(record)
        return folder

    return leave


@pytest.fixture
def coag_run(leave_run: LeaveRun) -> RunFolder:
    start = TurnStart(at=AT, turn=1, cycle=0)
    message = shown_percept("Clean [bold]the[/bold] room.")
    cycles = [*good_cycle(), *impasse_cycle(), *answer_cycle()]
    return leave_run([start, message, *cycles])


@pytest.fixture
def plain_run(leave_run: LeaveRun) -> RunFolder:
    return leave_run(plain_records(), "run-2-plain", "plain")


@pytest.fixture
def hostile_run(leave_run: LeaveRun) -> RunFolder:
    text = "a\x1b[2Jb\x1b]0;title\x07c\x9b31md\u202ee\rf [link=x]g[/link] :smile:"
    return leave_run([shown_percept(text, source="\x1b[31mmallory")])


@pytest.fixture
def say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Result]:
    """Runs `coag` with these words, beside a folder `logs`."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Result:
        with pytest.raises(SystemExit) as left:
            main(words)
        captured = capfd.readouterr()
        code = left.value.code
        return Result(code if isinstance(code, int) else 0, captured.out, captured.err)

    return run
