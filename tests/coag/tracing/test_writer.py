"""Writing a trace."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coag.errors import TraceError
from coag.schema import (
    Entry,
    Intent,
    Note,
    Redactor,
    SteppingClock,
    TraceRecord,
    TraceSink,
    TurnStart,
)
from coag.tracing import MemoryTrace, RunFolder, TraceWriter, open_trace, read_trace

pytestmark = pytest.mark.broken_trace("its records are made up")

CLOCK = SteppingClock()
NOW = CLOCK.now()
INTENT = Intent(id="i1", at=NOW, cycle=3, candidate_id="c1", action="move", arguments={})
NOTE = Note(at=NOW, cycle=3, about="repair", text="repaired")
LineMaker = Callable[[Iterable[TraceRecord]], list[bytes]]
needs_full_device = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="needs a device that is always full"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trace.jsonl"


def opened(path: Path, **options: Any) -> TraceWriter:
    return TraceWriter(path, clock=SteppingClock(), redactor=Redactor(), **options)


def bodies(path: Path) -> list[TraceRecord]:
    return [entry.body for entry in read_trace(path)]


def test_what_was_written_is_read_in_order_and_numbered(
    path: Path, turn_records: list[TraceRecord]
) -> None:
    with opened(path) as writer:
        for record in turn_records:
            writer.write(record)
        assert writer.count == len(turn_records)
    entries = list(read_trace(path))
    assert [entry.body for entry in entries] == turn_records
    assert [entry.seq for entry in entries] == list(range(len(turn_records)))


def test_at_every_boundary_all_before_it_is_in_the_file(
    path: Path, turn_records: list[TraceRecord]
) -> None:
    with opened(path) as writer:
        for count, record in enumerate(turn_records, start=1):
            writer.write(record)
            if record.record in {"outcome", "intent", "receipt", "written", "turn_end"}:
                assert len(bodies(path)) == count


def test_between_boundaries_no_more_than_a_bound_is_held_back_until_flushed(path: Path) -> None:
    large = NOTE.model_copy(update={"text": "x" * 2_000_000})
    with opened(path) as writer:
        writer.write(NOTE)
        assert bodies(path) == []
        writer.flush()
        assert bodies(path) == [NOTE]
        writer.write(large)
        assert bodies(path) == [NOTE, large]


def test_closing_writes_what_is_held_back_and_can_be_repeated(path: Path) -> None:
    writer = opened(path)
    writer.write(NOTE)
    writer.close()
    writer.close()
    assert bodies(path) == [NOTE]
    with pytest.raises(TraceError, match="was closed"):
        writer.write(NOTE)


def test_a_reopened_trace_continues_its_numbers_also_after_a_long_line(path: Path) -> None:
    for text in ("first", "x" * 300_000, "y" * 65_536):
        with opened(path) as writer:
            writer.write(INTENT)
            writer.write(NOTE.model_copy(update={"text": text}))
    assert [entry.seq for entry in read_trace(path)] == [0, 1, 2, 3, 4, 5]


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(min_value=0))
def test_a_trace_cut_anywhere_is_repaired_without_losing_a_whole_line(
    tmp_path_factory: pytest.TempPathFactory, trace_lines: LineMaker, cut: int
) -> None:
    path = tmp_path_factory.mktemp("cut") / "trace.jsonl"
    records: list[TraceRecord] = [TurnStart(at=NOW, turn=1, cycle=3), NOTE, INTENT]
    lines = [line[:-1] for line in trace_lines(records)]
    data = b"\n".join(lines) + b"\n"
    left = data[: cut % (len(data) + 1)]
    path.write_bytes(left)

    with opened(path) as writer:
        writer.write(INTENT)

    complete = [record for record, line in zip(records, lines, strict=True) if line in left]
    found = bodies(path)
    assert found[: len(complete)] == complete
    assert found[-1] == INTENT
    torn = left.rsplit(b"\n", 1)[-1]
    if not torn or torn in lines:
        assert len(found) == len(complete) + 1
        return
    note = found[len(complete)]
    assert isinstance(note, Note)
    assert note.about == "repair"
    assert note.cycle == (3 if complete else 0)
    assert path.with_name(f"trace.jsonl.torn-{len(complete)}").read_bytes() == torn


def test_a_last_line_that_lacks_only_its_newline_is_kept(
    path: Path, trace_lines: LineMaker
) -> None:
    path.write_bytes(trace_lines([INTENT])[0][:-1])
    with opened(path) as writer:
        writer.write(NOTE)
    assert bodies(path) == [INTENT, NOTE]


def test_the_note_about_a_repair_names_the_cycle_even_behind_percepts(
    path: Path,
    cycle_records: Callable[[int], list[TraceRecord]],
    trace_lines: LineMaker,
) -> None:
    percept = cycle_records(4)[0]
    path.write_bytes(b"".join(trace_lines([NOTE, percept, percept])) + b'{"v":1')
    opened(path).close()
    note = bodies(path)[-1]
    assert isinstance(note, Note)
    assert (note.cycle, note.text) == (
        3,
        "The last line was torn; its 6 bytes were moved to trace.jsonl.torn-3.",
    )


@pytest.mark.parametrize(
    ("held", "problem"),
    [
        (b"these are\nmy own notes\n", "no trace of coag"),
        (Entry(v=3, seq=0, body=NOTE).model_dump_json().encode() + b"\n", "version 3"),
    ],
)
def test_a_damaged_trace_or_a_newer_one_is_not_written_to(
    path: Path, held: bytes, problem: str
) -> None:
    path.write_bytes(held)
    with pytest.raises(TraceError, match=problem):
        opened(path)
    assert path.read_bytes() == held


@pytest.mark.skipif(sys.platform == "win32", reason="needs advisory locks")
def test_a_trace_has_one_writer_at_a_time(path: Path) -> None:
    with opened(path), pytest.raises(TraceError, match="another writer"):
        opened(path)
    opened(path).close()


def test_a_folder_that_cannot_be_written_to_stops_at_opening(tmp_path: Path) -> None:
    blocked = tmp_path / "logs"
    blocked.write_text("a file where the folder should be")
    with pytest.raises(TraceError, match="opened for writing"):
        opened(blocked / "trace.jsonl")


def removed(path: Path) -> None:
    path.unlink()


def replaced(path: Path) -> None:
    path.rename(path.with_name("old.jsonl"))
    path.write_text("")


def cut(path: Path) -> None:
    os.truncate(path, 10)


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be removed there")
@pytest.mark.parametrize(
    ("harm", "problem"),
    [(removed, "was removed"), (replaced, "was replaced"), (cut, "was cut to 10 of")],
)
def test_nothing_is_intended_once_the_trace_is_not_where_it_was(
    path: Path, harm: Callable[[Path], None], problem: str
) -> None:
    with opened(path) as writer:
        writer.write(INTENT)
        harm(path)
        with pytest.raises(TraceError, match=problem):
            writer.write(INTENT)
        with pytest.raises(TraceError, match="could not be written to before"):
            writer.write(NOTE)


def test_a_trace_is_found_again_from_another_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with opened(Path("trace.jsonl")) as writer:
        (tmp_path / "else").mkdir()
        monkeypatch.chdir(tmp_path / "else")
        writer.write(INTENT)
    assert bodies(tmp_path / "trace.jsonl") == [INTENT]


@needs_full_device
def test_a_full_disk_stops_the_run_at_the_intent_and_for_good(path: Path) -> None:
    path.symlink_to("/dev/full")
    with opened(path) as writer:
        with pytest.raises(TraceError, match="No space left"):
            writer.write(INTENT)
        with pytest.raises(TraceError, match="could not be written to before"):
            writer.write(NOTE)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on the size of files")
def test_a_disk_that_fills_up_within_a_line_leaves_no_half_line(path: Path) -> None:
    import resource
    import signal

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with opened(path) as writer:
        writer.write(INTENT)
        size = path.stat().st_size
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, limits[1]))
            with pytest.raises(TraceError, match="written to"):
                writer.write(INTENT)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, handler)
    assert path.stat().st_size == size
    assert bodies(path) == [INTENT]


def test_a_record_that_is_no_json_is_refused_by_name(path: Path) -> None:
    odd = Note(at=NOW, cycle=1, about="x", text="y", details={"thing": object()})
    with opened(path) as writer:
        with pytest.raises(TraceError, match="'note' cannot be written as JSON"):
            writer.write(odd)
        writer.write(INTENT)
    assert bodies(path) == [INTENT]


def test_half_characters_do_not_stop_a_run(
    make_run: Callable[..., RunFolder], cycle_records: Callable[[int], list[TraceRecord]]
) -> None:
    broken = NOTE.model_copy(update={"text": "cut off: \ud83d"})
    folder = make_run()
    with open_trace(folder) as writer:
        writer.write(broken)
        for record in cycle_records(3)[1:2]:
            writer.write(record)
    assert bodies(folder.trace_path)[0] == NOTE.model_copy(update={"text": "cut off: ?"})
    assert "cut off: ?" in (folder.cycles_path / "0003" / "1-retrieval.json").read_text()


def test_secrets_of_the_environment_reach_neither_trace_nor_pages(
    make_run: Callable[..., RunFolder],
    cycle_records: Callable[[int], list[TraceRecord]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_API_KEY", "a-very-secret-value")
    folder = make_run()
    note = NOTE.model_copy(update={"text": "it said a-very-secret-value"})
    with open_trace(folder) as writer:
        writer.write(note)
        for record in cycle_records(3):
            writer.write(record)
    written = "".join(path.read_text() for path in folder.path.rglob("*.json*"))
    assert "it said [redacted]" in written
    assert "a-very-secret-value" not in written


@pytest.mark.skipif(os.name != "posix", reason="Only POSIX has these modes.")
def test_a_runs_folder_and_its_files_are_their_owners_alone(
    make_run: Callable[..., RunFolder], cycle_records: Callable[[int], list[TraceRecord]]
) -> None:
    folder = make_run()
    with open_trace(folder) as writer:
        for record in cycle_records(3):
            writer.write(record)
    files = [path for path in folder.path.rglob("*") if path.is_file()]
    assert len(files) > 2
    assert folder.path.stat().st_mode & 0o077 == 0
    assert [path for path in files if path.stat().st_mode & 0o077] == []


def test_a_long_run_keeps_nothing_in_memory(
    path: Path, cycle_records: Callable[[int], list[TraceRecord]]
) -> None:
    import tracemalloc

    with opened(path) as writer:
        tracemalloc.start()
        sizes: list[int] = []
        for cycle in range(1, 61):
            for record in cycle_records(cycle):
                writer.write(record)
            sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
    assert os.path.getsize(path) > 200_000
    assert sizes[-1] - sizes[9] < 50_000


def test_a_process_that_was_forked_off_does_not_write_into_the_trace(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TraceWriter(path, redactor=Redactor()) as writer:
        writer.write(NOTE)
        with monkeypatch.context() as child:
            child.setattr(os, "getpid", lambda: -1)
            with pytest.raises(TraceError, match="agent of its own"):
                writer.write(NOTE)
    assert len(list(read_trace(path))) == 1


# ---- a trace in RAM ----


def test_the_oldest_records_in_ram_are_dropped_and_numbers_continue(
    turn_records: list[TraceRecord],
) -> None:
    trace = MemoryTrace(limit=3)
    sink: TraceSink = trace
    for record in turn_records:
        sink.write(record)
    sink.flush()
    count = len(turn_records)
    assert list(trace.records) == turn_records[-3:]
    assert [entry.seq for entry in trace.entries] == [count - 3, count - 2, count - 1]
    assert trace.dropped == count - 3
    with pytest.raises(ValueError, match="at least 1"):
        MemoryTrace(limit=0)


def test_a_record_that_is_written_later_is_made_only_when_it_is_read() -> None:
    trace, made = MemoryTrace(), list[int]()

    def make() -> Note:
        made.append(1)
        return NOTE

    trace.write_later(make)
    assert made == []
    assert trace.records == (NOTE,)
    assert [entry.seq for entry in trace.entries] == [0]


# ---- pages that are made beside the run ----


class Shelf:
    """Pages that only remember, and wait where a test wants it."""

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


def test_pages_get_every_record_in_order_from_another_thread_that_ends(
    path: Path, cycle_records: Callable[[int], list[TraceRecord]]
) -> None:
    shelf = Shelf()
    records = [record for cycle in range(1, 200) for record in cycle_records(cycle)]
    with opened(path, pages=shelf) as writer:
        for record in records:
            writer.write(record)
        assert shelf.threads
        assert threading.get_ident() not in shelf.threads
    assert shelf.seen == records
    assert not [each for each in threading.enumerate() if each.name.startswith("coag-pages")]


def test_the_trace_does_not_wait_for_a_page(
    path: Path, cycle_records: Callable[[int], list[TraceRecord]]
) -> None:
    shelf = Shelf()
    shelf.gate.clear()
    records = cycle_records(1)
    with opened(path, pages=shelf) as writer:
        for record in records:
            writer.write(record)
        assert bodies(path) == records
        assert shelf.seen == []
        shelf.gate.set()
    assert shelf.seen == records


def test_a_page_that_fails_at_the_very_end_is_still_noted(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(path, pages=Shelf(failing_at=1)) as writer:
        writer.write(NOTE)
    first, second = bodies(path)
    assert first == NOTE
    assert isinstance(second, Note)
    assert (second.about, second.cycle) == ("pages", NOTE.cycle)
    assert "no more paper" in second.text
    assert [record.message for record in caplog.records] == [second.text]
