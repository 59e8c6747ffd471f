"""Where each record of a trace is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.hostile import hostile_run

from coag.errors import TraceError
from coag.schema import (
    Intent,
    ModelCall,
    Note,
    Percept,
    PerceptKind,
    Snapshot,
    SnapshotReason,
    TraceRecord,
    Trust,
    TurnEnd,
    TurnStart,
)
from coag.tracing import RecordKind, TraceIndex, read_lines, read_trace

LineMaker = Callable[[Iterable[TraceRecord]], list[bytes]]
CycleMaker = Callable[[int], list[TraceRecord]]
AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
OLD = Path(__file__).parent / "data" / "v1"
FOREIGN = [
    b"\n",
    b"hello\n",
    b"[1]\n",
    b'{"v":2,"seq":0}\n',
    b'{"v":9,"seq":1,"body":{}}\n',
    b'{"v":2,"seq":0,"hash":"","body":{"record":"intent","cycle":7}}\n',
    b"[" * 900 + b"\n",
]


def indexed(path: Path) -> TraceIndex:
    index = TraceIndex(path)
    while index.extend(limit=500):
        pass
    return index


def snapshot(cycle: int, environment: object = None, text: str = "") -> Snapshot:
    return Snapshot(at=AT, cycle=cycle, working_memory={"goal": text}, environment=environment)


def described(index: TraceIndex) -> list[tuple[int, int, int]]:
    stretches = [index.stretch(number) for number in range(index.stretches)]
    return [(each.cycle, each.first, each.count) for each in stretches]


@pytest.fixture
def story(cycle_records: CycleMaker) -> list[TraceRecord]:
    """Two turns of two cycles, as an agent writes them."""
    records: list[TraceRecord] = [
        Snapshot(at=AT, cycle=0, reason=SnapshotReason.OPENED, working_memory={}, environment=[0])
    ]
    for turn in (1, 2):
        records.append(TurnStart(at=AT, turn=turn, cycle=2 * turn - 2))
        for cycle in (2 * turn - 1, 2 * turn):
            message, *rest = cycle_records(cycle)
            arrived = [message] if cycle % 2 else []
            records += [*arrived, snapshot(cycle - 1, [cycle] if cycle == 3 else None), *rest]
        records.append(TurnEnd(at=AT, turn=turn, cycle=2 * turn, reason="respond", response="ok"))
    return records


@pytest.fixture
def story_path(tmp_path: Path, story: list[TraceRecord], trace_lines: LineMaker) -> Path:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b"".join(trace_lines(story)))
    return path


def test_each_cycle_is_a_stretch_that_begins_with_what_led_to_it(story_path: Path) -> None:
    index = indexed(story_path)
    assert [cycle for cycle, _, _ in described(index)] == [0, 1, 2, 3, 4]
    first = [index.kind(index.stretch(number).first) for number in range(5)]
    assert first[0] is RecordKind.SNAPSHOT
    assert first[1] is first[3] is RecordKind.TURN_START
    assert first[2] is first[4] is RecordKind.SNAPSHOT
    assert index.stretch(-1).cycle == index.last_cycle == 4
    assert index.kind(index.lines - 1) is RecordKind.TURN_END
    assert index.of_cycle(3) == [3]
    assert all(index.stretch_of(index.stretch(at).first) == at for at in range(5))


def test_what_an_index_reads_is_what_a_reader_reads(story_path: Path) -> None:
    index = indexed(story_path)
    lines = index.read(range(index.lines))
    assert [line.entry for line in lines] == list(read_trace(story_path))
    stretch = index.stretch(2)
    read = index.read(range(stretch.first, stretch.first + stretch.count))
    assert sum(line.entry.body.record == "outcome" for line in read if line.entry) == 6
    assert index.times([0, index.lines - 1]) == [AT, AT]


def test_snapshots_that_hold_the_environment_are_found_newest_first(story_path: Path) -> None:
    index = indexed(story_path)
    found = [line.entry for line in index.read(list(index.environments(index.lines)))]
    bodies = [entry.body for entry in found if entry is not None]
    assert [body.environment for body in bodies if isinstance(body, Snapshot)] == [[3], [0]]
    assert list(index.environments(0)) == []


@pytest.mark.broken_trace("a hostile run is no run of a mind")
def test_cycles_without_snapshots_are_distinguished_by_their_outcomes(tmp_path: Path) -> None:
    run = hostile_run(tmp_path, cycles=3)
    index = indexed(run.trace_path)
    assert [cycle for cycle, _, _ in described(index) if cycle] == [1, 2, 3]
    assert index.count(RecordKind.UNREADABLE) == 0


@given(cuts=st.lists(st.integers(0, 60_000), max_size=10))
def test_an_index_that_grew_is_one_that_was_made_at_once(
    tmp_path_factory: pytest.TempPathFactory,
    cycle_records: CycleMaker,
    trace_lines: LineMaker,
    cuts: list[int],
) -> None:
    path = tmp_path_factory.mktemp("index") / "trace.jsonl"
    records = [
        record for cycle in (1, 2) for record in (snapshot(cycle - 1), *cycle_records(cycle))
    ]
    data = b"".join(trace_lines(records))
    growing = TraceIndex(path)
    ends = [*sorted(cut % len(data) for cut in cuts), len(data)]
    for begin, end in zip([0, *ends], ends, strict=False):
        with path.open("ab") as file:
            file.write(data[begin:end])
        while growing.extend(limit=1_000):
            pass
        assert growing.scanned + growing.torn == end
        assert growing.lines == data[:end].count(b"\n")
    assert described(growing) == described(indexed(path))
    lines = growing.read(range(growing.lines))
    assert [line.entry.body for line in lines if line.entry] == records


@given(
    order=st.lists(st.one_of(st.sampled_from(FOREIGN), st.integers(0, 24)), min_size=1, max_size=30)
)
def test_an_index_says_of_each_line_what_a_reader_finds_in_it(
    tmp_path_factory: pytest.TempPathFactory,
    cycle_records: CycleMaker,
    trace_lines: LineMaker,
    order: list[bytes | int],
) -> None:
    records = [snapshot(0), *cycle_records(1), TurnStart(at=AT, turn=1, cycle=1)]
    records += [snapshot(1, {"a": 1}), *cycle_records(2)]
    good = trace_lines(records)
    lines = [each if isinstance(each, bytes) else good[each % len(good)] for each in order]
    path = tmp_path_factory.mktemp("index") / "trace.jsonl"
    path.write_bytes(b"".join(lines))
    index = indexed(path)
    read = list(read_lines(path))
    assert index.lines == len(read) == len(lines)
    for position, line in enumerate(read):
        if line.entry is not None:
            assert index.kind(position).name.lower() == line.entry.body.record
            assert index.read([position])[0].entry == line.entry
        else:
            assert index.read([position])[0].entry is None
    stretches = described(index)
    assert sum(count for _, _, count in stretches) == index.lines
    assert all(count > 0 for _, _, count in stretches)


def respaced(line: bytes) -> bytes:
    return json.dumps(json.loads(line)).encode() + b"\n"


def reordered(line: bytes) -> bytes:
    entry = json.loads(line)
    entry["body"] = dict(reversed(entry["body"].items()))
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


@pytest.mark.parametrize("rewritten", [respaced, reordered])
def test_lines_that_another_program_wrote_are_reported_as_well(
    story_path: Path, tmp_path: Path, rewritten: Callable[[bytes], bytes]
) -> None:
    other = tmp_path / "other.jsonl"
    lines = story_path.read_bytes().splitlines(keepends=True)
    other.write_bytes(b"".join(rewritten(line) for line in lines))
    assert described(indexed(other)) == described(indexed(story_path))


def test_texts_that_look_like_records_mislead_nobody(
    tmp_path: Path, trace_lines: LineMaker
) -> None:
    evil = '","cycle":99,"reason":"cycle"}}\n{"v":2,"seq":0,"body":{"record":"turn_start"'
    message = Percept(
        id=evil, at=AT, kind=PerceptKind.SIGNAL, source=evil, trust=Trust.UNTRUSTED, content=evil
    )
    noted = Note(at=AT, cycle=1, about=evil, text=evil, details={"cycle": 77})
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b"".join(trace_lines([snapshot(0, text=evil), message, noted])))
    index = indexed(path)
    assert described(index) == [(1, 0, 3)]
    kinds = [RecordKind.SNAPSHOT, RecordKind.PERCEPT, RecordKind.NOTE]
    assert [index.kind(at) for at in range(3)] == kinds


@pytest.mark.parametrize(
    "path", sorted(OLD.rglob("trace.jsonl")), ids=lambda path: path.parent.name
)
def test_a_trace_of_version_1_is_indexed_as_it_is_read(path: Path) -> None:
    index = indexed(path)
    read = [entry.body for entry in read_trace(path)]
    assert [index.kind(at).name.lower() for at in range(index.lines)] == [
        record.record for record in read
    ]
    assert index.last_cycle == max(
        record.cycle for record in read if isinstance(record, Intent | ModelCall | Note)
    )


def test_a_half_written_line_is_not_counted_and_foreign_ones_make_no_stretch(
    story_path: Path,
) -> None:
    expected = indexed(story_path)
    with story_path.open("ab") as file:
        file.write(b"\n" * 20_000 + b'{"v":2,"se')
    index = TraceIndex(story_path)
    while index.extend():
        pass
    assert (index.lines, index.torn) == (expected.lines + 20_000, 10)
    assert index.size == index.scanned + 10
    assert described(index)[:-1] == described(expected)[:-1]


def test_a_trace_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    index = TraceIndex(tmp_path / "trace.jsonl")
    assert not index.extend()
    assert (index.lines, index.stretches, index.size, index.last_cycle) == (0, 0, 0, 0)
    with pytest.raises(IndexError):
        index.stretch(0)
    with pytest.raises(TraceError, match="cannot be read"):
        index.times([0])
    with pytest.raises(TraceError, match="cannot be read"):
        index.read([0])


def cut_file(path: Path) -> None:
    path.write_bytes(b"")


def rewritten_file(path: Path) -> None:
    path.write_bytes(b"x" * (path.stat().st_size + 1))


def replaced_file(path: Path) -> None:
    other = path.with_name("other.jsonl")
    other.write_bytes(path.read_bytes() * 2)
    other.replace(path)


@pytest.mark.parametrize(
    ("harm", "problem"),
    [
        (cut_file, "was cut while it was read"),
        (replaced_file, "was replaced by another file"),
        (rewritten_file, "was rewritten"),
    ],
)
def test_a_trace_that_is_another_now_is_an_error(
    story_path: Path, harm: Callable[[Path], object], problem: str
) -> None:
    index = indexed(story_path)
    assert index.void == ""
    harm(story_path)
    with pytest.raises(TraceError, match=problem):
        index.extend()
    assert problem in index.void
    with pytest.raises(TraceError, match="Is a directory"):
        TraceIndex(story_path.parent).extend()


def test_times_that_are_none_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    body = '"body":{"record":"note","at":"%s","cycle":1,"about":"x","text":"y","details":{}}}\n'
    texts = ["2026-11-21T12:00:00+02:00", "2026-11-21T12:00:00", "2026-99-99T99:99:99Z", "soon"]
    lines = [f'{{"v":2,"seq":{at},"hash":"",{body % text}' for at, text in enumerate(texts)]
    path.write_text("".join(lines))
    first, *others = indexed(path).times(range(4))
    assert first is not None
    assert first.astimezone(UTC).hour == 10
    assert others == [None, None, None]


@pytest.mark.parametrize(
    "line", [b"\n", b"{}\n", b"hello, this is no record of any kind, but long\n"]
)
def test_a_file_that_begins_with_foreign_lines_is_given_up(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(line * 50_000)
    index = TraceIndex(path)
    for _ in range(2):
        with pytest.raises(TraceError, match="this is no trace of coag"):
            index.extend()
    assert index.lines == index.count(RecordKind.UNREADABLE) == 10_000


def test_the_shortest_record_is_one(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(
        '{"seq":0,"body":{"record":"turn_start","at":0,"turn":0,"cycle":0}}\n'
        '{"seq":1,"b\\u006fdy":{"record":"note","at":0,"cycle":0,"about":"","text":""}}\n'
    )
    index = indexed(path)
    assert [index.kind(at) for at in (0, 1)] == [RecordKind.TURN_START, RecordKind.NOTE]
