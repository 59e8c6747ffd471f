"""Two runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from kits.hostile import hostile_run
from kits.tracked import AT, card_of, cycles_of, index_of, plain_turn, thought, written_run

from coag.inspector.compare import Side, compare
from coag.inspector.views import CycleRow
from coag.schema import Phase, Snapshot, SnapshotReason, TokenUsage, TraceRecord
from coag.tracing import Parent, RunFolder, read_run

pytestmark = pytest.mark.broken_trace("their records are made up")


def side(folder: RunFolder) -> Side:
    index = index_of(folder)
    cycles = sorted({index.stretch(number).cycle for number in range(index.stretches)} - {0})

    def rows(first: int, count: int) -> Sequence[CycleRow]:
        return [CycleRow(number=c, at=None) for c in cycles if c >= first][:count]

    return Side(card=card_of(folder, read_run(folder.path)), index=index, rows=rows)


def coag_side(logs: Path, name: str, *actions: str, later: int = 0, request: str = "Go.") -> Side:
    records = cycles_of(*actions, at=AT + timedelta(seconds=later), request=request)
    return side(written_run(logs, records, name=name))


def test_runs_that_do_the_same_at_other_times_never_differ(tmp_path: Path) -> None:
    found = compare(
        coag_side(tmp_path, "one", "look", "clean"),
        coag_side(tmp_path, "two", "look", "clean", later=99),
    )
    assert found.divergence is None
    assert [(row.number, row.differs) for row in found.rows] == [(1, ()), (2, ())]
    assert found.related == "same request"


def test_the_first_divergence_is_found_with_its_values(tmp_path: Path) -> None:
    found = compare(
        coag_side(tmp_path, "one", "look", "clean", "rest"),
        coag_side(tmp_path, "two", "look", "leave", "rest"),
    )
    assert found.divergence == 2
    assert found.field == "proposal.candidates[0].action"
    assert (found.left_value, found.right_value) == ('"clean"', '"leave"')
    assert [row.differs for row in found.rows] == [(), ("proposal", "execution"), ()]


def test_candidates_are_the_same_whatever_their_ids(tmp_path: Path) -> None:
    first = thought(1)
    other: list[TraceRecord] = []
    for record in first:
        text = record.model_dump_json().replace('"c11"', '"x"').replace('"c12"', '"y"')
        other.append(type(record).model_validate_json(text))
    left = side(written_run(tmp_path, first, name="one"))
    right = side(written_run(tmp_path, other, name="two"))
    assert compare(left, right).divergence is None


def test_other_tokens_are_shown_and_are_no_divergence(tmp_path: Path) -> None:
    cheap = side(written_run(tmp_path, thought(1), name="one"))
    usage = TokenUsage(prompt_tokens=999, calls=1)
    dear = side(written_run(tmp_path, thought(1, usage=usage), name="two"))
    found = compare(cheap, dear)
    assert found.divergence is None
    assert found.rows[0].differs == ("usage",)


def test_a_run_that_ends_earlier_differs_where_it_ends(tmp_path: Path) -> None:
    found = compare(coag_side(tmp_path, "one", "look"), coag_side(tmp_path, "two", "look", "rest"))
    assert (found.divergence, found.field) == (2, "cycle")
    assert (found.left_value, found.right_value) == ("", "2")
    assert found.rows[1].left is None
    assert found.rows[1].right is not None


def test_the_page_of_the_divergence_is_shown_unless_another_is_asked_for(tmp_path: Path) -> None:
    left = coag_side(tmp_path, "one", *["look"] * 9)
    right = coag_side(tmp_path, "two", *["look"] * 7, "rest", "look")
    found = compare(left, right, page_size=3)
    assert (found.divergence, found.first, found.of) == (8, 6, 9)
    assert [row.number for row in found.rows] == [7, 8, 9]
    assert [row.number for row in compare(left, right, 0, page_size=3).rows] == [1, 2, 3]
    assert [row.number for row in compare(left, right, 99, page_size=3).rows] == [7, 8, 9]


def test_a_fork_is_compared_from_where_it_begins(tmp_path: Path) -> None:
    parent = coag_side(tmp_path, "parent", "look", "look", "look")
    forked = Snapshot(at=AT, cycle=2, reason=SnapshotReason.FORKED, working_memory={})
    where = Parent(
        run="parent",
        path="parent",
        cycle=2,
        phase=Phase.PROPOSAL,
        seq=9,
        changes=("--answer leave",),
    )
    records = [forked, *thought(2, "leave")[2:], *cycles_of("x", "y", "look")[-8:]]
    fork = side(written_run(tmp_path, records, name="fork", parent=where))
    for found in (compare(parent, fork), compare(fork, parent)):
        assert found.related == "fork of"
        assert found.changes == ("--answer leave",)
        assert [row.number for row in found.rows] == [2, 3]
        assert found.divergence == 2
        assert found.rows[0].differs == ("proposal", "execution", "usage")


def test_plain_runs_are_compared_by_turn(tmp_path: Path) -> None:
    one = [*plain_turn(1, "Yes."), *plain_turn(2, "Yes.")]
    other = [*plain_turn(1, "Yes."), *plain_turn(2, "No.")]
    left = side(written_run(tmp_path, one, name="one", kind="plain"))
    right = side(written_run(tmp_path, other, name="two", kind="plain"))
    found = compare(left, right)
    assert (found.divergence, found.field) == (2, "answers[0].raw")
    assert (found.left_value, found.right_value) == ('"Yes."', '"No."')
    assert found.rows[1].differs == ("answers", "response")


def test_a_plain_run_and_one_with_phases_differ_in_kind(tmp_path: Path) -> None:
    plain = side(written_run(tmp_path, plain_turn(1, "Yes."), name="one", kind="plain"))
    found = compare(plain, coag_side(tmp_path, "two", "look"))
    assert (found.divergence, found.field) == (1, "kind")
    assert (found.left_value, found.right_value) == ("a plain run", "phases")


def test_hostile_and_empty_runs_can_be_compared(tmp_path: Path) -> None:
    evil = side(hostile_run(tmp_path, cycles=3))
    empty = side(written_run(tmp_path, [], name="empty"))
    assert compare(evil, evil).divergence is None
    assert compare(evil, empty).divergence == 1
    assert compare(empty, empty).rows == ()
