"""A trace in RAM."""

from __future__ import annotations

import pytest

from coag.schema import Note, SteppingClock, TraceRecord, TraceSink
from coag.tracing import MemoryTrace

NOW = SteppingClock().now()


def note(number: int) -> Note:
    return Note(at=NOW, cycle=number, about="x", text="y")


def test_what_was_written_is_kept_in_order(turn_records: list[TraceRecord]) -> None:
    trace = MemoryTrace()
    sink: TraceSink = trace
    for record in turn_records:
        sink.write(record)
    sink.flush()
    assert list(trace.records) == turn_records
    assert trace.dropped == 0


def test_the_oldest_records_make_room_and_numbers_go_on() -> None:
    trace = MemoryTrace(limit=3)
    for number in range(5):
        trace.write(note(number))
    assert [entry.seq for entry in trace.entries] == [2, 3, 4]
    assert [record.record for record in trace.records] == ["note"] * 3
    assert trace.dropped == 2


def test_a_record_that_is_written_later_is_made_only_when_it_is_read() -> None:
    trace, made = MemoryTrace(), list[int]()

    def make() -> Note:
        made.append(1)
        return note(1)

    trace.write_later(make)
    assert made == []
    assert trace.records == (note(1),)
    assert [entry.seq for entry in trace.entries] == [0]


def test_a_trace_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        MemoryTrace(limit=0)
