"""Findings as a run tells them: the same of several cycles once, and the first one first."""

from __future__ import annotations

from dataclasses import replace

from coag.inspector.views import Finding, Findings, FindingSort, Progress
from coag.schema import Phase

WRONG = Finding(
    sort=FindingSort.CAUSE,
    title="wrong recalled fact",
    text="It is not so.",
    cycle=3,
    phase=Phase.RETRIEVAL,
    seq=39,
)


def made(*found: Finding) -> Findings:
    return Findings(progress=Progress.DONE, found=found)


def test_the_same_of_neighbouring_cycles_is_one_finding_of_all_of_them() -> None:
    found = made(WRONG, replace(WRONG, cycle=4, seq=56), replace(WRONG, cycle=5, seq=68))
    (one,) = found.together
    assert one.cycles == (3, 4, 5)
    assert (one.cycle, one.seq) == (3, 39)
    assert len(found.found) == 3


def test_what_stands_between_does_not_part_what_is_the_same() -> None:
    other = replace(WRONG, cycle=4, text="Something else.")
    found = made(WRONG, replace(WRONG, cycle=4), other, replace(WRONG, cycle=5))
    assert [one.cycles for one in found.together] == [(3, 4, 5), ()]


def test_the_same_after_a_cycle_without_it_is_another_finding() -> None:
    found = made(WRONG, replace(WRONG, cycle=5), replace(WRONG, cycle=5, title="other"))
    assert [(one.cycle, one.cycles) for one in found.together] == [(3, ()), (5, ()), (5, ())]


def test_findings_of_no_cycle_stand_alone() -> None:
    nowhere = replace(WRONG, cycle=None)
    assert len(made(nowhere, nowhere).together) == 2
    assert made(nowhere).first is None


def test_it_first_went_wrong_where_nothing_came_before() -> None:
    follows = replace(WRONG, cycle=2, follows=1)
    broken = replace(WRONG, cycle=3, sort=FindingSort.VIOLATION)
    assert made(follows, broken, WRONG, replace(WRONG, cycle=9, title="x")).first == WRONG
