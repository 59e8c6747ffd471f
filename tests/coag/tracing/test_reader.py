"""Reading a trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from coag.errors import TraceError
from coag.schema import Entry, Note, Percept, PerceptKind, SteppingClock, Trust
from coag.tracing import TraceProblem, cycle_of, read_trace

NOW = SteppingClock().now()
NOTE = Note(at=NOW, cycle=3, about="x", text="y")


def line(seq: int, version: int = 1) -> str:
    """A line of version 1, which has no hash, or one that is no better than it."""
    return Entry(v=version, seq=seq, body=NOTE).model_dump_json(exclude={"hash"}) + "\n"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "trace.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_truncated_last_line_is_told_after_all_whole_ones(tmp_path: Path) -> None:
    path = written(tmp_path, line(0) + line(1) + line(2)[:20])
    problems: list[TraceProblem] = []
    assert [entry.seq for entry in read_trace(path, problems.append)] == [0, 1]
    (problem,) = problems
    assert (problem.path, problem.line) == (path, 3)
    assert problem.text == "line 3, the last one, is truncated"


def test_a_truncated_last_line_is_raised_where_nobody_listens(tmp_path: Path) -> None:
    entries = read_trace(written(tmp_path, line(0) + line(1)[:20]))
    assert next(entries).seq == 0
    with pytest.raises(TraceError, match="truncated"):
        next(entries)


def test_a_last_line_that_lacks_only_its_newline_is_read(tmp_path: Path) -> None:
    entries = read_trace(written(tmp_path, line(0) + line(1).rstrip("\n")))
    assert [entry.seq for entry in entries] == [0, 1]


def test_an_empty_trace_has_no_records(tmp_path: Path) -> None:
    assert list(read_trace(written(tmp_path, ""))) == []


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
    tmp_path: Path, text: str, sentence: str
) -> None:
    with pytest.raises(TraceError, match=sentence):
        list(read_trace(written(tmp_path, text)))


def test_damage_in_the_middle_is_an_error_even_if_somebody_listens(tmp_path: Path) -> None:
    problems: list[TraceProblem] = []
    with pytest.raises(TraceError, match="line 2 is not JSON"):
        list(read_trace(written(tmp_path, line(0) + "{oops\n" + line(1)), problems.append))
    assert problems == []


def test_a_file_without_lines_cannot_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with path.open("wb") as file:
        file.truncate((1 << 26) + 10)
    with pytest.raises(TraceError, match="line 1 is over 67,108,864 bytes"):
        list(read_trace(path))


def test_a_missing_trace_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"trace\.jsonl: cannot be read: No such file"):
        list(read_trace(tmp_path / "trace.jsonl"))


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
