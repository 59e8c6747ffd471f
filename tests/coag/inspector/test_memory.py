"""What a run wrote to memory and recalled, a page at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.hostile import HARM, hostile_run
from kits.tracked import AT, index_of, noted, remembered, snapshot, thought, written_run

from coag.inspector.charts import kept_svg
from coag.inspector.memory import diff, read_memory, read_procedures
from coag.schema import (
    FeltRecord,
    RecalledRecord,
    RecalledState,
    RetrievalOutcome,
    TraceRecord,
    Trust,
    Written,
)
from coag.tracing import TraceIndex

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


def test_records_and_retrievals_are_given_newest_first_and_of_each_other(tmp_path: Path) -> None:
    page = read_memory(index_of(written_run(tmp_path, remembering(3))))
    rows = [(row.record.text, row.cycle, row.recalled) for row in page.written]
    assert rows == [("fact 3", 3, ()), ("fact 2", 2, (3,)), ("fact 1", 1, (2,))]
    assert [(row.cycle, row.records[0].score) for row in page.recalls] == [(3, 0.5), (2, 0.5)]
    assert page.recalls[0].query == "dirt"
    assert (page.written_total, page.recalls_total) == (3, 2)


def test_retrievals_name_what_had_no_room_in_the_prompt(tmp_path: Path) -> None:
    first, *others = thought(1, recalled=[remembered("a")])
    without_room = first.model_copy(update={"left_out": ("r8", "r9")})
    page = read_memory(index_of(written_run(tmp_path, [without_room, *others])))
    assert page.recalls[0].left_out == ("r8", "r9")


def test_the_strength_of_records_is_followed_over_their_recalls_the_weakest_first(
    tmp_path: Path,
) -> None:
    def recalled(cycle: int, **strengths: float) -> list[TraceRecord]:
        first, *others = thought(cycle)
        assert isinstance(first, RetrievalOutcome)
        hits = tuple(
            RecalledRecord(
                record=remembered(f"fact {name}", name=name),
                score=0.5,
                state=RecalledState(strength=strength, confidence=1.0, age=3.0),
            )
            for name, strength in strengths.items()
        )
        plain = RecalledRecord(record=remembered("plain", name="r9"), score=0.4)
        felt = (FeltRecord(id="r8", cue="a key", score=0.4, trust=Trust.USER),)
        return [
            snapshot(cycle, {}),
            first.model_copy(update={"records": (*hits, plain), "felt": felt}),
            *others,
        ]

    run = written_run(tmp_path, [*recalled(1, r1=0.5), *recalled(2, r1=0.6, r2=0.3)])
    page = read_memory(index_of(run))
    assert [(one.record.id, one.points) for one in page.kept] == [
        ("r2", ((2, 0.3),)),
        ("r1", ((1, 0.5), (2, 0.6))),
    ]
    assert [one.cue for one in page.recalls[0].felt] == ["a key"]
    words = str(kept_svg(page.kept[1], "p"))
    assert "From 0.50 in cycle 1 to 0.60 in 2." in words
    assert kept_svg(page.kept[0], "p")


def test_pages_hold_so_many_of_each_and_the_nearest_is_given(tmp_path: Path) -> None:
    index = index_of(written_run(tmp_path, remembering(7)))
    last = read_memory(index, 3, size=3)
    assert (last.page, last.pages) == (3, 3)
    assert [row.cycle for row in last.written] == [1]
    assert last.recalls == ()
    assert [read_memory(index, page, size=3).page for page in (99, -5)] == [3, 1]


def test_what_was_written_and_is_no_record_is_counted(tmp_path: Path) -> None:
    odd = Written(at=AT, cycle=1, what="record", id="x", content={"text": 5})
    page = read_memory(index_of(written_run(tmp_path, [odd, noted(remembered("a"), cycle=1)])))
    assert [row.record.text for row in page.written] == ["a"]
    assert page.unreadable == 1


def test_a_hostile_run_is_read_like_any_other_and_an_empty_one_has_nothing(tmp_path: Path) -> None:
    index = index_of(hostile_run(tmp_path, cycles=3))
    page = read_memory(index)
    assert (page.unreadable, len(page.recalls)) == (2, 3)
    (found,) = read_procedures(index)
    assert (found.name, found.current, found.steps[0].text) == (HARM, 2, HARM)
    empty = TraceIndex(tmp_path / "trace.jsonl")
    assert (read_memory(empty).written_total, read_procedures(empty)) == (0, ())


# ---- procedures ----


def version(number: int, text: str, *, author: str = "seed") -> dict[str, Any]:
    fields = {"version": number, "text": text, "author": author, "reason": "better", "diff": ""}
    return fields | {"cycle": None if number == 1 else number, "at": AT.isoformat()}


def in_force(versions: list[dict[str, Any]], *, whole: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"versions": {"proposal": len(versions), "native": 1}}
    return fields | ({"state": {"procedures": {"proposal": versions}}} if whole else {})


def changing(cycles: int, change_at: int) -> list[TraceRecord]:
    records: list[TraceRecord] = []
    versions = [version(1, "Look.\nMove.")]
    for cycle in range(1, cycles + 1):
        if cycle == change_at:
            versions.append(version(2, "Look.\nThink.\nMove.", author="robot"))
        held = in_force(versions, whole=cycle in (1, change_at))
        records += [snapshot(cycle, {}, procedures=held), *thought(cycle)]
    return records


def test_versions_are_given_with_what_changed(tmp_path: Path) -> None:
    first, second = read_procedures(index_of(written_run(tmp_path, changing(40, 17))))
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
    (changed, _) = read_procedures(index)
    assert len(changed.steps) == 2
    assert len(read) < 20


def test_a_version_that_was_just_written_is_in_force(tmp_path: Path) -> None:
    new = version(2, "Wait.", author="robot")
    written = Written(at=AT, cycle=3, what="procedure", id="proposal@2", content=new)
    records = [*changing(2, 99), written]
    (first, _) = read_procedures(index_of(written_run(tmp_path, records)))
    assert (first.current, [step.text for step in first.steps][1]) == (2, "Wait.")
    assert first.steps[1].cycle == 2


# ---- differences of texts ----

TEXT = st.lists(st.sampled_from(["one", "two", "three", ""]), min_size=1).map("\n".join)


@given(TEXT, TEXT, st.integers(0, 3))
def test_a_diff_rebuilds_both_texts(old: str, new: str, around: int) -> None:
    lines = diff(old, new, around=1_000)
    assert old == new or [
        line.text for line in lines if line.sort in ("same", "removed")
    ] == old.split("\n")
    assert old == new or [
        line.text for line in lines if line.sort in ("same", "added")
    ] == new.split("\n")
    folded = diff(old, new, around=around)
    changes = [line for line in lines if line.sort in ("added", "removed")]
    assert [line for line in folded if line.sort in ("added", "removed")] == changes
    skipped = sum(int(line.text) for line in folded if line.sort == "skipped")
    old_lines = [line for line in folded if line.sort in ("same", "removed")]
    assert skipped + len(old_lines) == len(old.split("\n"))


def test_what_is_far_from_a_change_is_skipped() -> None:
    old = "\n".join(map(str, range(20)))
    lines = diff(old, old.replace("10", "ten"), around=1)
    assert [line.sort for line in lines] == [
        "skipped", "same", "removed", "added", "same", "skipped",
    ]  # fmt: skip
    assert lines[0].text == "9"
    numbered = [(line.sort, line.old, line.new, line.text) for line in diff("a\nb", "a\nc")]
    assert numbered == [("same", 1, 1, "a"), ("removed", 2, None, "b"), ("added", None, 2, "c")]


def test_long_texts_are_compared_in_bounds() -> None:
    lines = diff("x\n" * 5_000, "y" * 1_000_000)
    assert len(lines) == 2_002
    assert max(len(line.text) for line in lines) == 2_000
