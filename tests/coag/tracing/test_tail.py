"""A trace while it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.errors import TraceError
from coag.schema import Note, SteppingClock, TraceRecord
from coag.tracing import TraceTail

LineMaker = Callable[[Iterable[TraceRecord]], list[bytes]]
NOTES = [Note(at=SteppingClock().now(), cycle=1, about="x", text=str(n)) for n in range(5)]


@given(cuts=st.lists(st.integers(0, 10_000), max_size=12))
def test_each_line_is_given_once_and_whole_however_it_arrives(
    tmp_path_factory: pytest.TempPathFactory, trace_lines: LineMaker, cuts: list[int]
) -> None:
    path = tmp_path_factory.mktemp("tail") / "trace.jsonl"
    whole = b"".join(trace_lines(NOTES))
    tail = TraceTail(path)
    seen = [line.entry for line in tail.lines()]
    ends = [*sorted(cut % len(whole) for cut in cuts), len(whole)]
    for begin, end in zip([0, *ends], ends, strict=False):
        with path.open("ab") as file:
            file.write(whole[begin:end])
        lines = list(tail.lines())
        assert all(not line.problems for line in lines)
        seen += [line.entry for line in lines]
    assert [entry.body for entry in seen if entry is not None] == NOTES


def test_a_half_line_that_is_cut_off_was_never_seen(tmp_path: Path, trace_lines: LineMaker) -> None:
    path = tmp_path / "trace.jsonl"
    lines = trace_lines(NOTES)
    tail = TraceTail(path)
    path.write_bytes(lines[0] + lines[1][:40])
    assert len(list(tail.lines())) == 1
    path.write_bytes(lines[0])
    assert list(tail.lines()) == []
    path.write_bytes(b"".join(lines))
    assert len(list(tail.lines())) == len(NOTES) - 1


def test_a_trace_that_is_cut_below_what_was_read_is_an_error(
    tmp_path: Path, trace_lines: LineMaker
) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b"".join(trace_lines(NOTES)))
    tail = TraceTail(path)
    list(tail.lines())
    path.write_bytes(b"")
    with pytest.raises(TraceError, match="was cut"):
        list(tail.lines())


def test_a_trace_that_another_file_replaced_is_told_and_read_from_its_start(
    tmp_path: Path, trace_lines: LineMaker
) -> None:
    path, other = tmp_path / "trace.jsonl", tmp_path / "other.jsonl"
    path.write_bytes(b"".join(trace_lines(NOTES)))
    tail = TraceTail(path)
    assert len(list(tail.lines())) == len(NOTES)
    other.write_bytes(b"".join(trace_lines([*NOTES, *NOTES])))
    other.replace(path)
    with pytest.raises(TraceError, match="was replaced by another file"):
        list(tail.lines())
    lines = list(tail.lines())
    assert len(lines) == 2 * len(NOTES)
    assert not any(line.problems for line in lines)


def test_a_folder_in_the_place_of_a_trace_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read"):
        list(TraceTail(tmp_path).lines())
