"""Pages that are made beside the run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from coag.schema import Note, SteppingClock, TraceRecord
from coag.tracing import Redactor, TraceWriter, read_trace

NOTE = Note(at=SteppingClock().now(), cycle=1, about="x", text="y")
CycleMaker = Callable[[int], list[TraceRecord]]


class Shelf:
    """Pages that only remember, and wait where they are told to."""

    def __init__(self, *, failing_at: int | None = None) -> None:
        self.seen: list[TraceRecord] = []
        self.threads: set[int] = set()
        self.gate = threading.Event()
        self.gate.set()
        self._failing_at = failing_at

    def add(self, record: TraceRecord, text: str) -> None:
        assert self.gate.wait(30)
        assert text == record.model_dump_json()
        self.threads.add(threading.get_ident())
        self.seen.append(record)
        if len(self.seen) == self._failing_at:
            raise OSError("no more paper")


def opened(path: Path, shelf: Shelf) -> TraceWriter:
    return TraceWriter(path, pages=shelf, clock=SteppingClock(), redactor=Redactor())


def test_pages_get_every_record_in_order(tmp_path: Path, cycle_records: CycleMaker) -> None:
    shelf = Shelf()
    records = [record for cycle in range(1, 30) for record in cycle_records(cycle)]
    with opened(tmp_path / "trace.jsonl", shelf) as writer:
        for record in records:
            writer.write(record)
    assert shelf.seen == records


def test_the_thread_of_the_run_makes_pages_only_at_the_end(
    tmp_path: Path, cycle_records: CycleMaker
) -> None:
    shelf = Shelf()
    with opened(tmp_path / "trace.jsonl", shelf) as writer:
        for cycle in range(1, 200):
            for record in cycle_records(cycle):
                writer.write(record)
        assert shelf.threads
        assert threading.get_ident() not in shelf.threads


def test_the_trace_does_not_wait_for_a_page(tmp_path: Path, cycle_records: CycleMaker) -> None:
    shelf = Shelf()
    shelf.gate.clear()
    path = tmp_path / "trace.jsonl"
    records = cycle_records(1)
    with opened(path, shelf) as writer:
        for record in records:
            writer.write(record)
        assert [entry.body for entry in read_trace(path)] == records
        assert shelf.seen == []
        shelf.gate.set()
    assert shelf.seen == records


def test_a_page_that_fails_at_the_very_end_is_still_noted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "trace.jsonl"
    with opened(path, Shelf(failing_at=1)) as writer:
        writer.write(NOTE)
    first, second = (entry.body for entry in read_trace(path))
    assert first == NOTE
    assert isinstance(second, Note)
    assert (second.about, second.cycle) == ("pages", 1)
    assert "no more paper" in second.text
    assert [record.message for record in caplog.records] == [second.text]


def test_closing_leaves_no_thread(tmp_path: Path, cycle_records: CycleMaker) -> None:
    with opened(tmp_path / "trace.jsonl", Shelf()) as writer:
        for record in cycle_records(1):
            writer.write(record)
    assert not [each for each in threading.enumerate() if each.name.startswith("coag-pages")]
