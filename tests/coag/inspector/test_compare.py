"""Two runs side by side."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kits.hostile import hostile_run
from kits.tracked import AT, cycles_of, plain_turn, thought, written_run

from coag.inspector.compare import RunComparison, compare
from coag.inspector.library import Library
from coag.schema import Phase, Snapshot, SnapshotReason, TokenUsage, TraceRecord
from coag.tracing import Parent, RunFolder

pytestmark = pytest.mark.broken_trace("their records are made up")


def compared(*runs: RunFolder, first: int = -1, page_size: int = 50) -> RunComparison:
    cards = [Library(run.path).cards()[0] for run in runs]
    opened = [Library(run.path).open(card.key) for run, card in zip(runs, cards, strict=True)]
    for run in opened:
        run.advance(60)
    left, right = zip(cards, opened, strict=True)
    return compare(left, right, first, page_size=page_size)


def run_of(logs: Path, name: str, *actions: str, later: int = 0, **more: Any) -> RunFolder:
    return written_run(logs, cycles_of(*actions, at=AT + timedelta(seconds=later)), name=name)


def test_runs_that_do_the_same_at_other_times_never_differ(tmp_path: Path) -> None:
    found = compared(
        run_of(tmp_path, "one", "look", "clean"), run_of(tmp_path, "two", "look", "clean", later=99)
    )
    assert found.divergence is None
    assert [(row.number, row.differs) for row in found.rows] == [(1, ()), (2, ())]
    assert found.related == "same request"


def test_the_first_divergence_is_found_with_its_values(tmp_path: Path) -> None:
    found = compared(
        run_of(tmp_path, "one", "look", "clean", "rest"),
        run_of(tmp_path, "two", "look", "leave", "rest"),
    )
    assert (found.divergence, found.field) == (2, "proposal.candidates[0].action")
    assert (found.left_value, found.right_value) == ('"clean"', '"leave"')
    assert [row.differs for row in found.rows] == [(), ("proposal", "execution"), ()]


def test_candidates_are_the_same_whatever_their_ids(tmp_path: Path) -> None:
    other: list[TraceRecord] = []
    for record in thought(1):
        text = record.model_dump_json().replace('"c11"', '"x"').replace('"c12"', '"y"')
        other.append(type(record).model_validate_json(text))
    runs = [written_run(tmp_path, made, name=n) for n, made in (("1", thought(1)), ("2", other))]
    assert compared(*runs).divergence is None


def test_other_tokens_are_shown_and_are_no_divergence(tmp_path: Path) -> None:
    dear = thought(1, usage=TokenUsage(prompt_tokens=999, calls=1))
    runs = [written_run(tmp_path, made, name=n) for n, made in (("1", thought(1)), ("2", dear))]
    found = compared(*runs)
    assert (found.divergence, found.rows[0].differs) == (None, ("usage",))


def test_a_run_that_ends_earlier_differs_where_it_ends(tmp_path: Path) -> None:
    found = compared(run_of(tmp_path, "one", "look"), run_of(tmp_path, "two", "look", "rest"))
    assert (found.divergence, found.field) == (2, "cycle")
    assert (found.left_value, found.right_value) == ("", "2")
    assert [(row.left is None, row.right is None) for row in found.rows][1] == (True, False)


def test_the_page_of_the_divergence_is_shown_unless_another_is_asked_for(tmp_path: Path) -> None:
    left = run_of(tmp_path, "one", *["look"] * 9)
    right = run_of(tmp_path, "two", *["look"] * 7, "rest", "look")
    found = compared(left, right, page_size=3)
    assert (found.divergence, found.first, found.of) == (8, 6, 9)
    pages = [compared(left, right, first=first, page_size=3) for first in (-1, 0, 99)]
    numbers = [[row.number for row in page.rows] for page in pages]
    assert numbers == [[7, 8, 9], [1, 2, 3], [7, 8, 9]]


def test_a_fork_is_compared_from_where_it_begins(tmp_path: Path) -> None:
    parent = run_of(tmp_path, "parent", "look", "look", "look")
    forked = Snapshot(at=AT, cycle=2, reason=SnapshotReason.FORKED, working_memory={})
    changes = ("--answer leave",)
    where = Parent(
        run="parent", path="parent", cycle=2, phase=Phase.PROPOSAL, seq=9, changes=changes
    )
    records = [forked, *thought(2, "leave")[2:], *cycles_of("x", "y", "look")[-8:]]
    fork = written_run(tmp_path, records, name="fork", parent=where)
    for found in (compared(parent, fork), compared(fork, parent)):
        assert (found.related, found.changes, found.divergence) == ("fork of", changes, 2)
        assert [row.number for row in found.rows] == [2, 3]
        assert found.rows[0].differs == ("proposal", "execution", "usage")


def test_plain_runs_are_compared_by_turn_and_with_others_by_kind(tmp_path: Path) -> None:
    left, right = (
        written_run(
            tmp_path, [*plain_turn(1, "Yes."), *plain_turn(2, last)], name=last[:2], kind="plain"
        )
        for last in ("Yes.", "No.")
    )
    found = compared(left, right)
    assert (found.divergence, found.field) == (2, "answers[0].raw")
    assert (found.left_value, found.right_value) == ('"Yes."', '"No."')
    assert found.rows[1].differs == ("answers", "response")
    other = compared(left, run_of(tmp_path, "two", "look"))
    assert (other.divergence, other.field) == (1, "kind")
    assert (other.left_value, other.right_value) == ("a plain run", "phases")


def test_hostile_and_empty_runs_can_be_compared(tmp_path: Path) -> None:
    evil, empty = hostile_run(tmp_path, cycles=3), written_run(tmp_path, [], name="empty")
    assert compared(evil, evil).divergence is None
    assert compared(evil, empty).divergence == 1
    assert compared(empty, empty).rows == ()
