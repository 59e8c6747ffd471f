"""Runs that an older version left."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.schema import ENTRY, Entry, Note, Redactor, Snapshot, SteppingClock
from coag.tracing import TraceWriter, line_hash, read_lines, read_run, read_trace

pytestmark = pytest.mark.broken_trace("version 1 is not verified")
OLD = Path(__file__).parent / "data" / "v1"
RUNS = sorted(path.name for path in OLD.iterdir())
NOW = SteppingClock().now()
NOTE = Note(at=NOW, cycle=1, about="x", text="y")


@pytest.mark.parametrize("name", RUNS)
def test_a_run_of_version_1_is_read_as_one_of_this_version(name: str) -> None:
    info = read_run(OLD / name)
    assert (info.v, info.id, info.seal, info.parent) == (2, name, None, None)
    lines = list(read_lines(OLD / name / "trace.jsonl"))
    assert [line.problems for line in lines] == [()] * len(lines)
    assert {line.version for line in lines} == {1}
    entries = list(read_trace(OLD / name / "trace.jsonl"))
    assert [entry.seq for entry in entries] == list(range(len(entries)))
    assert {(entry.v, entry.hash) for entry in entries} == {(2, "")}


def test_nothing_but_the_reasons_of_snapshots_is_added() -> None:
    path = OLD / RUNS[0] / "trace.jsonl"
    for line, entry in zip(path.read_text().splitlines(), read_trace(path), strict=True):
        was = json.loads(line)["body"]
        now = entry.body.model_dump(mode="json")
        assert without_additions(was, now) == was


def without_additions(was: Any, now: Any) -> Any:
    if isinstance(was, dict):
        old = cast("dict[str, Any]", was)
        return {name: without_additions(value, now[name]) for name, value in old.items()}
    if isinstance(was, list):
        return [without_additions(a, b) for a, b in zip(cast("list[Any]", was), now, strict=True)]
    return now


def test_a_snapshot_claims_to_follow_from_the_records_only_where_that_is_sure() -> None:
    (desk,) = (name for name in RUNS if "-desk-" in name)
    snapshots = [
        entry.body
        for entry in read_trace(OLD / desk / "trace.jsonl")
        if isinstance(entry.body, Snapshot)
    ]
    reasons = [str(snapshot.reason) for snapshot in snapshots]
    assert reasons == ["loaded", "cycle", "loaded", "cycle", "cycle"]
    with_texts = ["state" in snapshot.procedures for snapshot in snapshots]
    assert with_texts == [reason == "loaded" for reason in reasons]


def test_a_run_of_version_1_can_be_continued_and_its_past_is_bound(tmp_path: Path) -> None:
    shutil.copytree(OLD / RUNS[1], tmp_path / "run")
    path = tmp_path / "run" / "trace.jsonl"
    past = path.read_bytes()
    count = past.count(b"\n")
    with TraceWriter(path, redactor=Redactor()) as writer:
        writer.write(NOTE)
        writer.write(NOTE)
    lines = list(read_lines(path))
    assert all(not line.problems for line in lines)
    assert [line.version for line in lines] == [1] * count + [2, 2]
    first = lines[count].entry
    assert first is not None
    body = NOTE.model_dump_json().encode()
    assert first.hash == line_hash(hashlib.sha256(past).hexdigest(), count, body)

    path.write_bytes(path.read_bytes().replace(b'"cycle":1', b'"cycle":2', 1))
    bad = [line.number for line in read_lines(path) if line.problems]
    assert bad == [count + 1]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(seq=st.integers(0, 10**9), memory=st.dictionaries(st.text(max_size=5), JSON))
def test_every_snapshot_of_version_1_gets_a_reason_and_keeps_the_rest(
    tmp_path_factory: pytest.TempPathFactory, seq: int, memory: dict[str, Any]
) -> None:
    body = Snapshot(at=NOW, cycle=3, working_memory=memory, procedures=memory)
    line = {"v": 1, "seq": seq, "body": json.loads(body.model_dump_json(exclude={"reason"}))}
    path = tmp_path_factory.mktemp("v1") / "trace.jsonl"
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    (read,) = read_lines(path)
    assert read.entry is not None
    expected = "opened" if seq == 0 else "loaded" if "state" in memory else "cycle"
    assert read.entry.body == body.model_copy(update={"reason": expected})


@given(st.binary(max_size=200))
def test_a_foreign_line_is_reported_and_never_breaks_the_reader(
    tmp_path_factory: pytest.TempPathFactory, text: bytes
) -> None:
    path = tmp_path_factory.mktemp("foreign") / "trace.jsonl"
    path.write_bytes(text + b"\n")
    assert all(line.problems and line.entry is None for line in read_lines(path))


@given(JSON, st.sampled_from([0, 1, 2, 3]), st.integers(-2, 2) | st.text(max_size=3))
def test_any_json_in_the_place_of_a_record_is_reported(
    tmp_path_factory: pytest.TempPathFactory, body: Any, version: int, seq: int | str
) -> None:
    path = tmp_path_factory.mktemp("json") / "trace.jsonl"
    path.write_text(json.dumps({"v": version, "seq": seq, "body": body}) + "\n", encoding="utf-8")
    (line,) = read_lines(path)
    assert line.entry is None
    assert line.problems


def test_entries_of_this_version_are_written_with_its_number() -> None:
    assert json.loads(ENTRY.dump_json(Entry(seq=0, body=NOTE)))["v"] == 2
