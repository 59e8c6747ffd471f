"""The versions of procedures, found by reading few snapshots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kits.hostile import HARM, hostile_run
from kits.tracked import AT, index_of, snapshot, thought, written_run

from coag.inspector.tracks import procedures
from coag.schema import TraceRecord, Written
from coag.tracing import TraceIndex

pytestmark = pytest.mark.broken_trace("their records are made up")


def version(number: int, text: str, *, author: str = "seed") -> dict[str, Any]:
    told = {"version": number, "text": text, "author": author, "reason": "better", "diff": ""}
    return told | {"cycle": None if number == 1 else number, "at": AT.isoformat()}


def in_force(versions: list[dict[str, Any]], *, whole: bool) -> dict[str, Any]:
    told: dict[str, Any] = {"versions": {"proposal": len(versions), "native": 1}}
    return told | ({"state": {"procedures": {"proposal": versions}}} if whole else {})


def changing(cycles: int, change_at: int) -> list[TraceRecord]:
    records: list[TraceRecord] = []
    versions = [version(1, "Look.\nMove.")]
    for cycle in range(1, cycles + 1):
        if cycle == change_at:
            versions.append(version(2, "Look.\nThink.\nMove.", author="robot"))
        told = in_force(versions, whole=cycle in (1, change_at))
        records += [snapshot(cycle, {}, procedures=told), *thought(cycle)]
    return records


def test_versions_are_told_with_what_changed(tmp_path: Path) -> None:
    first, second = procedures(index_of(written_run(tmp_path, changing(40, 17))))
    assert (first.name, first.current) == ("proposal", 2)
    assert [(step.version, step.author) for step in first.steps] == [(1, "seed"), (2, "robot")]
    assert [line.text for line in first.steps[1].diff if line.sort == "added"] == ["Think."]
    assert first.steps[0].diff == ()
    assert (second.name, second.current, second.steps) == ("native", 1, ())


def test_few_snapshots_are_read(tmp_path: Path) -> None:
    read: list[int] = []

    class Counting(TraceIndex):
        def read(self, positions: Any) -> Any:
            read.extend(positions)
            return super().read(positions)

    index = Counting(written_run(tmp_path, changing(200, 120)).trace_path)
    while index.extend():
        pass
    (changed, _) = procedures(index)
    assert len(changed.steps) == 2
    assert len(read) < 20


def test_a_version_that_was_just_written_is_in_force(tmp_path: Path) -> None:
    new = version(2, "Wait.", author="robot")
    written = Written(at=AT, cycle=3, what="procedure", id="proposal@2", content=new)
    records = [*changing(2, 99), written]
    (first, _) = procedures(index_of(written_run(tmp_path, records)))
    assert (first.current, [step.text for step in first.steps][1]) == (2, "Wait.")
    assert first.steps[1].cycle == 2


def test_a_hostile_run_has_procedures(tmp_path: Path) -> None:
    (found,) = procedures(index_of(hostile_run(tmp_path)))
    assert found.name == HARM
    assert found.steps[0].text == HARM
    assert found.current == 2


def test_a_run_without_records_has_none(tmp_path: Path) -> None:
    assert procedures(index_of(written_run(tmp_path, []))) == ()
