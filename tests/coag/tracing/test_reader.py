"""Reading a trace, also while it is written, and lines from which a long measurement continues."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.errors import TraceError
from coag.schema import (
    Entry,
    Note,
    Percept,
    PerceptKind,
    SteppingClock,
    TraceRecord,
    Trust,
)
from coag.tracing import TraceProblem, TraceTail, cycle_of, read_trace

LineMaker = Callable[[Iterable[TraceRecord]], list[bytes]]
NOW = SteppingClock().now()
NOTE = Note(at=NOW, cycle=3, about="x", text="y")
NOTES = [Note(at=NOW, cycle=1, about="x", text=str(n)) for n in range(5)]


def line(seq: int, version: int = 1) -> str:
    """A line of version 1, which has no hash, or another without one."""
    return Entry(v=version, seq=seq, body=NOTE).model_dump_json(exclude={"hash"}) + "\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trace.jsonl"


def numbers(path: Path, text: str) -> list[int]:
    path.write_text(text, encoding="utf-8")
    return [entry.seq for entry in read_trace(path)]


def test_a_truncated_last_line_is_reported_after_all_whole_ones_or_raised(path: Path) -> None:
    path.write_text(line(0) + line(1) + line(2)[:20])
    problems: list[TraceProblem] = []
    assert [entry.seq for entry in read_trace(path, problems.append)] == [0, 1]
    (problem,) = problems
    assert (problem.path, problem.line) == (path, 3)
    assert problem.text == "line 3, the last one, is truncated"
    entries = read_trace(path)
    assert [next(entries).seq, next(entries).seq] == [0, 1]
    with pytest.raises(TraceError, match="truncated"):
        next(entries)


def test_a_last_line_may_lack_its_newline_and_a_trace_its_lines(path: Path) -> None:
    assert numbers(path, line(0) + line(1).rstrip("\n")) == [0, 1]
    assert numbers(path, "") == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("hello\n", "line 1 is not JSON, so this is no trace of coag"),
        ('{"name": "x"}\n', "has no `v`, `seq` and `body`"),
        ("[1, 2]\n", "has no `v`, `seq` and `body`"),
        ("\n", "is not JSON"),
        (line(0, version=7), "version 7 .* reads up to 2. Update coag"),
        (line(0, version=0), "version 0 of the format, which never was"),
        ('{"v": 3, "seq": 0, "body": {"record": "dream"}}\n', "version 3 .* Update coag"),
        ('{"v": 2, "seq": 0, "body": {"record": "dream"}}\n', "line 1 is no valid record: body"),
        ('{"v": 1, "seq": 0, "body": {"record": "dream"}}\n', "line 1 is no valid record: body"),
        (line(1), "line 1 has the number 1, not 0: lines are missing"),
    ],
)
def test_what_is_no_trace_of_this_version_is_refused_with_a_sentence(
    path: Path, text: str, sentence: str
) -> None:
    with pytest.raises(TraceError, match=sentence):
        numbers(path, text)


def test_damage_in_the_middle_is_an_error_even_if_somebody_listens(path: Path) -> None:
    problems: list[TraceProblem] = []
    path.write_text(line(0) + "{oops\n" + line(1))
    with pytest.raises(TraceError, match="line 2 is not JSON"):
        list(read_trace(path, problems.append))
    assert problems == []


def test_a_file_without_lines_cannot_fill_the_memory_and_none_is_named(path: Path) -> None:
    with pytest.raises(TraceError, match=r"trace\.jsonl: cannot be read: No such file"):
        list(read_trace(path))
    with path.open("wb") as file:
        file.truncate((1 << 26) + 10)
    with pytest.raises(TraceError, match="line 1 is over 67,108,864 bytes"):
        list(read_trace(path))


def test_only_a_percept_names_no_cycle() -> None:
    percept = Percept(
        id="p",
        at=NOW,
        kind=PerceptKind.SIGNAL,
        source="bell",
        trust=Trust.UNTRUSTED,
        content="ding",
    )
    assert cycle_of(percept) is None
    assert cycle_of(NOTE) == 3


# ---- a trace while it is written ----


@given(cuts=st.lists(st.integers(0, 10_000), max_size=12))
def test_each_line_is_given_once_and_whole_however_it_arrives(
    tmp_path_factory: pytest.TempPathFactory, trace_lines: LineMaker, cuts: list[int]
) -> None:
    path = tmp_path_factory.mktemp("tail") / "trace.jsonl"
    data = b"".join(trace_lines(NOTES))
    tail = TraceTail(path)
    seen = [line.entry for line in tail.lines()]
    ends = [*sorted(cut % len(data) for cut in cuts), len(data)]
    for begin, end in zip([0, *ends], ends, strict=False):
        with path.open("ab") as file:
            file.write(data[begin:end])
        lines = list(tail.lines())
        assert all(not line.problems for line in lines)
        seen += [line.entry for line in lines]
    assert [entry.body for entry in seen if entry is not None] == NOTES


def test_a_half_line_that_is_cut_off_was_never_seen(path: Path, trace_lines: LineMaker) -> None:
    lines = trace_lines(NOTES)
    tail = TraceTail(path)
    path.write_bytes(lines[0] + lines[1][:40])
    assert len(list(tail.lines())) == 1
    path.write_bytes(lines[0])
    assert list(tail.lines()) == []
    path.write_bytes(b"".join(lines))
    assert len(list(tail.lines())) == len(NOTES) - 1


def test_a_trace_that_is_replaced_is_read_from_its_start_and_one_that_is_cut_is_not(
    path: Path, trace_lines: LineMaker
) -> None:
    path.write_bytes(b"".join(trace_lines(NOTES)))
    tail = TraceTail(path)
    assert len(list(tail.lines())) == len(NOTES)
    other = path.with_name("other.jsonl")
    other.write_bytes(b"".join(trace_lines([*NOTES, *NOTES])))
    other.replace(path)
    with pytest.raises(TraceError, match="was replaced by another file"):
        list(tail.lines())
    lines = list(tail.lines())
    assert len(lines) == 2 * len(NOTES)
    assert not any(line.problems for line in lines)
    path.write_bytes(b"")
    with pytest.raises(TraceError, match="was cut"):
        list(tail.lines())
    with pytest.raises(TraceError, match="cannot be read"):
        list(TraceTail(path.parent).lines())


# ---- kept lines ----
