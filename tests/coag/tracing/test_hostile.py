"""Traces that were made to do harm, or that are merely huge."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from coag.errors import TraceError
from coag.schema import Note, Redactor, SteppingClock, TraceRecord
from coag.tracing import (
    ProblemKind,
    RunFolder,
    TraceTail,
    TraceWriter,
    read_lines,
    read_run,
    read_trace,
    seal_of,
)

pytestmark = pytest.mark.broken_trace("its records are made up")
LineMaker = Callable[[Iterable[TraceRecord]], list[bytes]]
NOTE = Note(at=SteppingClock().now(), cycle=1, about="x", text="y")

UNREADABLE = {
    "nested deeply": b'{"v":2,"seq":0,"hash":"","body":' + b"[" * 100_000 + b"\n",
    "nested deeply and closed": b"[" * 50_000 + b"]" * 50_000 + b"\n",
    "a lone half of a character": b'{"v":2,"seq":0,"body":"\\ud800"}\n',
    "bytes that are no text": b'{"v":2,"seq":0,"body":"\xff\xfe"}\n',
    "nothing but NUL": b"\0" * 4_000 + b"\n",
    "a huge number": b'{"v":2,"seq":' + b"9" * 5_000 + b',"body":{}}\n',
    "a huge version": b'{"v":' + b"9" * 4_000 + b',"seq":0,"body":{}}\n',
    "a version that is a list": b'{"v":[1],"seq":0,"body":{}}\n',
    "a version below none": b'{"v":-1,"seq":0,"body":{}}\n',
    "ten megabytes of text": b'"' + b"x" * 10_000_000 + b'"\n',
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_hostile_line_is_reported_and_the_next_one_is_read(
    tmp_path: Path, trace_lines: LineMaker, what: str
) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(UNREADABLE[what] + trace_lines([NOTE, NOTE])[1])
    first, second = read_lines(path)
    assert first.entry is None
    assert [problem.kind for problem in first.problems] == [ProblemKind.UNREADABLE]
    assert len(first.problems[0].text) < 10_000
    assert second.entry is not None
    with pytest.raises(TraceError):
        list(read_trace(path))


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_trace_with_a_hostile_end_cannot_be_continued(tmp_path: Path, what: str) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(UNREADABLE[what])
    with pytest.raises(TraceError):
        TraceWriter(path, redactor=Redactor())


READERS: dict[str, Callable[[Path], object]] = {
    "trace.jsonl": lambda path: list(read_lines(path)),
    "tail/trace.jsonl": lambda path: list(TraceTail(path).lines()),
    "seal/trace.jsonl": seal_of,
    "run.json": lambda path: read_run(path.parent),
    "remembered.jsonl": lambda path: RunFolder(path.parent).remembered(),
}
"""What reads a file of a run's folder, by the name of that file."""


@pytest.mark.parametrize("name", READERS)
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_or_a_device_in_the_place_of_a_file_is_refused_at_once(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)
    with pytest.raises(TraceError, match="not a regular file"):
        READERS[name](path)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(TraceError, match="not a regular file"):
        READERS[name](path)
    path.unlink()
    path.mkdir()
    with pytest.raises(TraceError):
        READERS[name](path)
    path.rmdir()


def test_a_large_trace_is_read_in_bounded_memory(tmp_path: Path, trace_lines: LineMaker) -> None:
    path = tmp_path / "trace.jsonl"
    line = trace_lines([NOTE.model_copy(update={"text": "x" * 100_000})])[0]
    with path.open("wb") as file:
        for _ in range(300):
            file.write(line)
    tracemalloc.start()
    count = sum(1 for _ in read_lines(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 300
    assert path.stat().st_size > 30_000_000
    assert peak < 3_000_000


def test_what_follows_a_line_without_end_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with path.open("wb") as file:
        file.truncate(200_000_000)
    (line,) = read_lines(path)
    assert line.problems[0].kind is ProblemKind.UNREADABLE


@pytest.mark.parametrize("depth", [10, 150, 194])
def test_what_is_nested_within_reason_is_written_and_read(tmp_path: Path, depth: int) -> None:
    note = NOTE.model_copy(update={"details": {"deep": nested(depth)}})
    with TraceWriter(tmp_path / "trace.jsonl", redactor=Redactor()) as writer:
        writer.write(note)
    assert [entry.body for entry in read_trace(tmp_path / "trace.jsonl")] == [note]


@pytest.mark.parametrize("depth", [200, 240, 260, 5_000])
def test_what_no_reader_would_take_is_not_written(tmp_path: Path, depth: int) -> None:
    deep = NOTE.model_copy(update={"details": {"deep": nested(depth)}})
    with TraceWriter(tmp_path / "trace.jsonl", redactor=Redactor()) as writer:
        with pytest.raises(TraceError, match="'note' cannot be written as JSON"):
            writer.write(deep)
        writer.write(NOTE)
    assert [entry.body for entry in read_trace(tmp_path / "trace.jsonl")] == [NOTE]


def nested(depth: int) -> Any:
    """Lists within lists."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value
