"""What a run wrote to memory and recalled, a page at a time."""

from __future__ import annotations

from pathlib import Path

import pytest
from kits.hostile import hostile_run
from kits.tracked import AT, index_of, noted, remembered, snapshot, thought, written_run

from coag.inspector.tracks import MemoryScan, memory_page
from coag.schema import TraceRecord, Written
from coag.tracing import TraceIndex, TraceWriter

pytestmark = pytest.mark.broken_trace("their records are made up")


def remembering(cycles: int) -> list[TraceRecord]:
    """Each cycle recalls what the one before it wrote."""
    records: list[TraceRecord] = []
    for cycle in range(1, cycles + 1):
        before = [remembered(f"fact {cycle - 1}", name=f"r{cycle - 1}")] if cycle > 1 else []
        records += [snapshot(cycle, {}), *thought(cycle, recalled=before)]
        fact = remembered(f"fact {cycle}", cycle=cycle, name=f"r{cycle}")
        records.append(noted(fact, cycle=cycle))
    return records


def test_records_tell_which_cycles_recalled_them(tmp_path: Path) -> None:
    page = memory_page(index_of(written_run(tmp_path, remembering(3))))
    told = [(row.record.text, row.cycle, row.recalled) for row in page.written]
    assert told == [("fact 3", 3, ()), ("fact 2", 2, (3,)), ("fact 1", 1, (2,))]
    assert page.written_total == 3


def test_retrievals_that_brought_something_are_told_newest_first(tmp_path: Path) -> None:
    page = memory_page(index_of(written_run(tmp_path, remembering(3))))
    assert [(row.cycle, row.hits[0].score) for row in page.recalls] == [(3, 0.5), (2, 0.5)]
    assert page.recalls[0].query == "dirt"
    assert page.recalls_total == 2


def test_retrievals_tell_what_had_no_room_in_the_prompt(tmp_path: Path) -> None:
    first, *others = thought(1, recalled=[remembered("a")])
    without_room = first.model_copy(update={"left_out": ("r8", "r9")})
    page = memory_page(index_of(written_run(tmp_path, [without_room, *others])))
    assert page.recalls[0].left_out == ("r8", "r9")


def test_pages_hold_so_many_of_each(tmp_path: Path) -> None:
    scan = MemoryScan(index_of(written_run(tmp_path, remembering(7))))
    last = scan.page(3, size=3)
    assert (last.page, last.pages) == (3, 3)
    assert [row.cycle for row in last.written] == [1]
    assert last.recalls == ()


def test_a_page_out_of_range_is_the_nearest(tmp_path: Path) -> None:
    scan = MemoryScan(index_of(written_run(tmp_path, remembering(2))))
    assert scan.page(99).page == 1
    assert scan.page(-5).page == 1


def test_what_comes_later_is_found_by_the_same_scan(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    index = TraceIndex(path)
    scan = MemoryScan(index)
    assert scan.page().written_total == 0
    with TraceWriter(path) as trace:
        trace.write(noted(remembered("later"), cycle=1))
    index.extend()
    assert scan.page().written_total == 1


def test_what_was_written_and_is_no_record_is_counted(tmp_path: Path) -> None:
    odd = Written(at=AT, cycle=1, what="record", id="x", content={"text": 5})
    page = memory_page(index_of(written_run(tmp_path, [odd, noted(remembered("a"), cycle=1)])))
    assert [row.record.text for row in page.written] == ["a"]
    assert page.unreadable == 1


def test_a_hostile_run_has_a_page(tmp_path: Path) -> None:
    page = memory_page(index_of(hostile_run(tmp_path, cycles=3)))
    assert page.unreadable == 2
    assert len(page.recalls) == 3
