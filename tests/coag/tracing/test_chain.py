"""The hashes that make the lines of a trace a chain."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.errors import TraceError
from coag.schema import Entry, Note, Redactor, SteppingClock, TraceRecord
from coag.tracing import (
    ProblemKind,
    RunFolder,
    TraceLine,
    TraceProblem,
    TraceWriter,
    line_hash,
    open_trace,
    read_lines,
    read_run,
    read_trace,
)

pytestmark = pytest.mark.broken_trace("its records are made up")
LineMaker = Callable[[Iterable[TraceRecord]], list[bytes]]
NOW = SteppingClock().now()
NOTES = [Note(at=NOW, cycle=1, about="x", text=f"note {number}") for number in range(6)]


def kinds(lines: Iterable[TraceLine]) -> dict[int, list[str]]:
    """What is wrong with a trace, by the number of the line."""
    return {
        line.number: [str(problem.kind) for problem in line.problems]
        for line in lines
        if line.problems
    }


def written(path: Path, lines: Iterable[bytes]) -> Path:
    path.write_bytes(b"".join(lines))
    return path


def opened(path: Path) -> TraceWriter:
    return TraceWriter(path, clock=SteppingClock(), redactor=Redactor(["hush-hush"]))


def test_a_line_is_written_in_the_form_that_the_format_describes(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with opened(path) as writer:
        for note in NOTES[:2]:
            writer.write(note)
        head = writer.head
    before = ""
    for seq, line in enumerate(path.read_text().splitlines()):
        body = NOTES[seq].model_dump_json()
        before = hashlib.sha256(f"{before}\n{seq}\n{body}".encode()).hexdigest()
        assert line == f'{{"v":2,"seq":{seq},"hash":"{before}","body":{body}}}'
    assert head == before
    assert [entry.hash for entry in read_trace(path)][-1] == head


def test_a_trace_that_is_continued_stays_one_chain_of_what_is_in_the_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "trace.jsonl"
    for note in (NOTES[0].model_copy(update={"text": "it is hush-hush"}), *NOTES):
        with opened(path) as writer:
            writer.write(note)
    assert b"[redacted]" in path.read_bytes()
    assert kinds(read_lines(path)) == {}


def test_a_trace_continues_from_its_last_whole_line_after_a_crash(
    tmp_path: Path, trace_lines: LineMaker
) -> None:
    lines = trace_lines(NOTES)
    path = written(tmp_path / "trace.jsonl", [*lines[:3], lines[3][:50]])
    with opened(path) as writer:
        writer.write(NOTES[5])
    found = list(read_lines(path))
    assert kinds(found) == {}
    assert [line.entry.body.record for line in found if line.entry] == ["note"] * 5


HARM: dict[str, tuple[Callable[[list[bytes]], list[bytes]], dict[int, list[str]]]] = {
    "edited": (
        lambda lines: [*lines[:2], lines[2].replace(b"note 2", b"note X"), *lines[3:]],
        {3: ["hash"]},
    ),
    "edited in its number": (
        lambda lines: [*lines[:2], lines[2].replace(b'"seq":2', b'"seq":7'), *lines[3:]],
        {3: ["number", "hash"], 4: ["number"]},
    ),
    "dropped": (lambda lines: [*lines[:2], *lines[3:]], {3: ["number", "hash"]}),
    "dropped at the beginning": (lambda lines: lines[1:], {1: ["number", "hash"]}),
    "swapped": (
        lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
        {2: ["number", "hash"], 3: ["number", "hash"], 4: ["number", "hash"]},
    ),
    "repeated": (
        lambda lines: [*lines[:3], lines[2], *lines[3:]],
        {4: ["number", "hash"]},
    ),
    "damaged": (lambda lines: [*lines[:2], b"{oops\n", *lines[3:]], {3: ["unreadable"]}),
    "spaced": (
        lambda lines: [*lines[:2], json.dumps(json.loads(lines[2])).encode() + b"\n", *lines[3:]],
        {3: ["hash"]},
    ),
    "without its hash": (
        lambda lines: [*lines[:2], Entry(seq=2, body=NOTES[2]).model_dump_json().encode() + b"\n"],
        {3: ["hash"]},
    ),
    "of the older version": (
        lambda lines: [*lines[:5], b'{"v":1,"seq":5,"body":' + lines[5].split(b'"body":')[1]],
        {6: ["hash"]},
    ),
    "with other line ends": (
        lambda lines: [line.replace(b"\n", b"\r\n") for line in lines[:2]],
        {1: ["hash"], 2: ["hash"]},
    ),
    "truncated": (lambda lines: [*lines[:5], lines[5][:-9]], {6: ["truncated"]}),
}


@pytest.mark.parametrize("harm", HARM)
def test_each_change_is_reported_where_it_was_made_and_the_rest_is_read(
    tmp_path: Path, trace_lines: LineMaker, harm: str
) -> None:
    change, expected = HARM[harm]
    path = written(tmp_path / "trace.jsonl", change(trace_lines(NOTES)))
    found = list(read_lines(path))
    assert kinds(found) == expected
    unread = [line.number for line in found if line.entry is None]
    assert unread == [n for n, what in expected.items() if what[0] in {"unreadable", "truncated"}]


def test_a_line_that_is_changed_with_its_hash_does_not_fit_the_next(
    tmp_path: Path, trace_lines: LineMaker
) -> None:
    lines = trace_lines(NOTES)
    body = NOTES[2].model_copy(update={"text": "forged"}).model_dump_json()
    before = lines[1].split(b'"')[7].decode()
    forged = f'{{"v":2,"seq":2,"hash":"{line_hash(before, 2, body.encode())}","body":{body}}}\n'
    path = written(tmp_path / "trace.jsonl", [*lines[:2], forged.encode(), *lines[3:]])
    assert kinds(read_lines(path)) == {4: ["hash"]}


@given(data=st.data())
def test_no_byte_of_a_trace_can_be_changed_unnoticed(
    tmp_path_factory: pytest.TempPathFactory, trace_lines: LineMaker, data: st.DataObject
) -> None:
    first, *further = trace_lines(NOTES[:4])
    lines = first + b"".join(further)
    # Without its run.json nothing binds the first line, whose values may be any.
    at = data.draw(st.integers(len(first), len(lines) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != lines[at]))
    changed = lines[:at] + bytes([other]) + lines[at + 1 :]
    path = written(tmp_path_factory.mktemp("byte") / "trace.jsonl", [changed])
    lacks_last_newline = at == len(lines) - 1 and other in b" \t\r"
    assert kinds(read_lines(path)) or lacks_last_newline


def test_a_changed_trace_is_read_with_a_report_where_somebody_listens(
    tmp_path: Path, trace_lines: LineMaker
) -> None:
    lines = trace_lines(NOTES)
    lines[2] = lines[2].replace(b"note 2", b"note X")
    path = written(tmp_path / "trace.jsonl", lines)
    problems: list[TraceProblem] = []
    assert len(list(read_trace(path, problems.append))) == len(NOTES)
    assert [(problem.kind, problem.line) for problem in problems] == [(ProblemKind.HASH, 3)]
    with pytest.raises(TraceError, match="line 3 has a hash that does not fit"):
        list(read_trace(path))


def test_a_finished_run_is_sealed_with_the_end_of_its_trace(
    make_run: Callable[..., RunFolder],
) -> None:
    folder = make_run()
    with open_trace(folder, redactor=Redactor()) as writer:
        for note in NOTES:
            writer.write(note)
        head = writer.head
    seal = folder.finish(at=NOW).seal
    assert seal is not None
    assert (seal.records, seal.hash) == (len(NOTES), head)
    assert read_run(folder.path).seal == seal


def test_a_run_that_continues_after_its_end_is_no_longer_sealed(
    make_run: Callable[..., RunFolder],
) -> None:
    folder = make_run()
    open_trace(folder).close()
    folder.finish(at=NOW, result={"success": True})
    with open_trace(folder) as writer:
        info = read_run(folder.path)
        assert (info.seal, info.ended_at, info.result) == (None, None, {"success": True})
        writer.write(NOTES[0])
    again = folder.finish(at=NOW).seal
    assert again is not None
    assert again.records == 1


@pytest.mark.parametrize("end", [b'{"v":2,"se', b"notes of mine\n"])
def test_what_ends_in_no_whole_line_is_not_sealed(
    make_run: Callable[..., RunFolder], trace_lines: LineMaker, end: bytes
) -> None:
    folder = make_run()
    assert folder.finish(at=NOW).seal is None
    written(folder.trace_path, [*trace_lines(NOTES), end])
    assert folder.finish(at=NOW).seal is None
