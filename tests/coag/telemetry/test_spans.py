"""Spans of records of any writer and with any content."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

from coag.compat import Recorder
from coag.errors import TraceError
from coag.schema import (
    Candidate,
    DecidedBy,
    Evaluation,
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    Intent,
    ModelCall,
    Note,
    OutputMode,
    Percept,
    PerceptKind,
    Phase,
    ProposalOutcome,
    ReasoningOutcome,
    Receipt,
    ReceiptStatus,
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
from coag.telemetry import SpanSink, Subject
from coag.tracing import MemoryTrace

AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def _sink(backend: Any, inner: MemoryTrace | None = None, **options: Any) -> SpanSink:
    return SpanSink(
        Subject(agent="robot", run="run-1"),
        inner,
        tracer_provider=backend.tracers,
        meter_provider=backend.meters,
        **options,
    )


def _call(**changes: Any) -> ModelCall:
    call = ModelCall(
        id="call-1",
        at=AT,
        cycle=1,
        phase=Phase.REASONING,
        model="tiny",
        rung=OutputMode.JSON_SCHEMA,
        attempt=1,
        messages=({"role": "user", "content": "What now?"},),
        raw="{}",
        usage=TokenUsage(prompt_tokens=1_000, completion_tokens=40, cached_tokens=600, calls=1),
        seconds=0.25,
    )
    return call.model_copy(update=changes)


def test_a_recorded_stock_agents_turns_hold_its_calls_and_tools(backend: Any) -> None:
    inner = MemoryTrace()
    with _sink(backend, inner) as sink:
        recorder = Recorder(agent="robot", trace=sink)
        recorder.begin_turn()
        recorder.model_call(_call(phase=None))
        attempt = recorder.begin("look", {"where": "east"})
        recorder.end(attempt, ReceiptStatus.FAILED, "It is dark.")
        recorder.end_turn("respond", "Done.")
    assert backend.tree() == [
        "invoke_agent robot > chat tiny",  # it was called long before the clock of the recorder
        "run robot",
        "run robot > invoke_agent robot",
        "invoke_agent robot > execute_tool look",
    ]
    (tool,) = backend.named("execute_tool look")
    assert tool.attributes["error.type"] == "failed"
    assert len(inner.records) == 5


def test_calls_have_the_times_tokens_and_cached_tokens_of_their_records(backend: Any) -> None:
    with _sink(backend) as sink:
        sink.write(TurnStart(at=AT, turn=1, cycle=0))
        sink.write(_call())
    (call,) = backend.named("chat tiny")
    assert call.start_time == int(AT.timestamp()) * 10**9
    assert call.end_time - call.start_time == 250_000_000
    assert call.attributes["gen_ai.usage.cache_read.input_tokens"] == 600
    assert backend.points()["coag.tokens.cached"][0][1] == 600


def test_estimated_tokens_are_marked_and_not_measured(backend: Any) -> None:
    with _sink(backend) as sink:
        sink.write(_call(usage_estimated=True))
    assert backend.named("chat tiny")[0].attributes["coag.usage.estimated"] is True
    assert "gen_ai.client.token.usage" not in backend.points()


@pytest.mark.parametrize(
    ("changes", "error_type"),
    [
        ({"error": "no JSON"}, "unusable_answer"),
        ({"error": "refused", "raw": ""}, "_OTHER"),
    ],
)
def test_failed_calls_name_the_sort_of_error(
    backend: Any, changes: dict[str, Any], error_type: str
) -> None:
    with _sink(backend) as sink:
        sink.write(_call(**changes))
    (call,) = backend.named("chat tiny")
    assert call.attributes["error.type"] == error_type
    assert call.status.status_code.name == "ERROR"
    assert not call.status.description


def test_what_was_never_finished_says_so(backend: Any) -> None:
    with _sink(backend) as sink:
        sink.write(TurnStart(at=AT, turn=1, cycle=0))
        sink.write(RetrievalOutcome(cycle=1, at=AT, query="walls"))
        sink.write(Intent(id="i", at=AT, cycle=1, candidate_id="c", action="go", arguments={}))
    open_ones = [span.name for span in backend.spans if span.attributes.get("coag.unfinished")]
    assert open_ones == ["invoke_agent robot", "cycle 1", "execution", "execute_tool go"]
    assert "coag.cycle.duration" not in backend.points()


def test_notes_and_written_records_are_events_without_words(backend: Any) -> None:
    with _sink(backend) as sink:
        sink.write(TurnStart(at=AT, turn=1, cycle=0))
        sink.write(Note(at=AT, cycle=1, about="repair", text="secret words"))
        sink.write(Written(at=AT, cycle=1, what="procedure", id="reasoning@2", content={"a": "b"}))
        sink.write(TurnEnd(at=AT, turn=1, cycle=1, reason="respond", response="secret words"))
    (turn,) = backend.named("invoke_agent robot")
    assert [(event.name, dict(event.attributes)) for event in turn.events] == [
        ("coag.note", {"coag.note.about": "repair"}),
        ("coag.written", {"coag.written.what": "procedure", "coag.written.id": "reasoning@2"}),
    ]
    assert "secret words" not in backend.everything()


def test_long_contents_are_cut(backend: Any) -> None:
    with _sink(backend, record_content=True) as sink:
        sink.write(_call(raw="a" * 10_000_000))
    (call,) = backend.named("chat tiny")
    assert len(call.attributes["gen_ai.output.messages"]) < 9_000
    assert "[… 9992000 more]" in call.attributes["gen_ai.output.messages"]


def test_records_are_passed_to_the_inner_sink_and_late_ones_stay_late(backend: Any) -> None:
    class Lazy(MemoryTrace):
        made = 0

        def write_later(self, make: Any) -> None:
            self.made += 1

    inner, made = Lazy(), list[int]()

    def snapshot() -> Snapshot:
        made.append(1)
        return Snapshot(at=AT, cycle=1, working_memory={})

    sink = _sink(backend, inner)
    sink.write_later(snapshot)
    sink.flush()
    assert (inner.made, made) == (1, [])


def test_a_trace_that_cannot_be_written_still_stops_the_run(backend: Any, tmp_path: Any) -> None:
    class Full(MemoryTrace):
        def write(self, record: TraceRecord) -> None:
            raise TraceError(tmp_path, "the disk is full")

    with _sink(backend, Full()) as sink, pytest.raises(TraceError):
        sink.write(TurnStart(at=AT, turn=1, cycle=0))
    assert backend.spans == []


_TEXTS = st.text(st.characters(), max_size=20) | st.sampled_from(["\ud800", "\x00", "a" * 500, ""])
_TIMES = st.sampled_from(
    [AT, AT + timedelta(days=1), datetime(1, 1, 1), datetime(9999, 12, 31, tzinfo=UTC)]
)
_CYCLES = st.sampled_from([1, 2, 3, 10**25])
_COUNTS = st.sampled_from([0, -5, 7, 10**30])
_SECONDS = st.sampled_from([0.0, -1.0, 0.5, float("nan"), float("inf"), 1e300])


@st.composite
def _outcomes(draw: st.DrawFn) -> TraceRecord:
    text, at, cycle = draw(_TEXTS), draw(_TIMES), draw(_CYCLES)
    verdict = Verdict(allowed=draw(st.booleans()), constraint=draw(_TEXTS))
    phase: Phase = draw(st.sampled_from(Phase))
    match phase:
        case Phase.RETRIEVAL:
            return RetrievalOutcome(cycle=cycle, at=at, query=text, constraints=(text,))
        case Phase.REASONING:
            return ReasoningOutcome(cycle=cycle, at=at, situation=text)
        case Phase.PROPOSAL:
            candidate = Candidate(id=text, action=draw(_TEXTS))
            return ProposalOutcome(cycle=cycle, at=at, candidates=(candidate,))
        case Phase.EVALUATION:
            evaluation = Evaluation(candidate_id=text, verdicts=(verdict,))
            return EvaluationOutcome(cycle=cycle, at=at, evaluations=(evaluation,))
        case Phase.SELECTION if verdict.allowed:
            decided = DecidedBy.RANK
            return SelectionOutcome(cycle=cycle, at=at, candidate_id=text, decided_by=decided)
        case Phase.SELECTION:
            return SelectionOutcome(cycle=cycle, at=at, reason=text)
        case Phase.EXECUTION:
            return ExecutionOutcome(cycle=cycle, at=at, status=ExecutionStatus.DONE)


@st.composite
def _calls(draw: st.DrawFn) -> TraceRecord:
    text = draw(_TEXTS)
    prompt, cached = draw(_COUNTS), draw(_COUNTS)
    return _call(
        at=draw(_TIMES),
        cycle=draw(_CYCLES),
        phase=draw(st.sampled_from([None, *Phase])),
        model=draw(_TEXTS | st.just("http://[")),
        raw=text,
        tool_calls=({"id": 1, "name": None, "arguments": [text]},),
        messages=({"role": 3, "content": {"a": [text]}}, {}),
        usage=TokenUsage(prompt_tokens=prompt, cached_tokens=cached, cost=draw(_SECONDS)),
        seconds=draw(_SECONDS),
        finish_reason=text,
        error=draw(st.sampled_from([None, text])),
    )


@st.composite
def _others(draw: st.DrawFn) -> TraceRecord:
    text, at = draw(_TEXTS), draw(_TIMES)
    chosen, unknown = draw(st.sampled_from([None, text])), ReceiptStatus.UNKNOWN
    match draw(st.integers(0, 5)):
        case 0:
            return TurnStart(at=at, turn=draw(_COUNTS), cycle=0)
        case 1:
            return TurnEnd(at=at, turn=1, cycle=0, reason=text, response=text)
        case 2:
            cycle = draw(_CYCLES)
            arguments = {"a": text}
            return Intent(
                id=text, at=at, cycle=cycle, candidate_id=chosen, action=text, arguments=arguments
            )
        case 3:
            return Receipt(intent_id=text, at=at, cycle=0, status=unknown, content=text)
        case 4:
            return Note(at=at, cycle=0, about=text, text=text)
        case _:
            trust, kind = Trust.UNTRUSTED, PerceptKind.SIGNAL
            return Percept(id=text, at=at, kind=kind, source=text, trust=trust, content=text)


_RECORDS = _outcomes() | _calls() | _others()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=st.lists(_RECORDS, max_size=20), content=st.booleans())
def test_any_records_give_spans_that_can_be_sent(
    backend: Any, caplog: pytest.LogCaptureFixture, records: list[TraceRecord], content: bool
) -> None:
    backend.exporter.clear()
    caplog.clear()
    with _sink(backend, record_content=content) as sink:
        for record in records:
            sink.write(record)
    assert caplog.records == []
    ended = backend.exporter.get_finished_spans()
    assert all(span.end_time >= span.start_time for span in ended)
    ids = {span.context.span_id for span in ended}
    assert all(span.parent is None or span.parent.span_id in ids for span in ended)
    assert encode_spans(ended).SerializeToString() is not None
