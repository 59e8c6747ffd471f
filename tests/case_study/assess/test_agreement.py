from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from kits.ponds import pond_plan

from case_study.assess import Assessment, AssessmentError, Trial, agreement

Make = Callable[..., Assessment]


def _assessed(folder: str, *outcomes: str, actions: float = 3.0, first: int = 0) -> Assessment:
    """One trial a seed, with these outcomes."""
    seeds = tuple(range(first, first + len(outcomes)))
    plan = pond_plan("fisher", seeds=seeds)
    trials = tuple(
        Trial.model_validate({"job": job, "outcome": outcome, "measures": {"actions": actions}})
        for job, outcome in zip(plan.jobs(), outcomes, strict=True)
    )
    return Assessment(folder=Path(folder), plan=plan, trials=trials)


def test_assessments_with_the_same_outcomes_agree() -> None:
    found = agreement(_assessed("a", "success", "failure"), _assessed("b", "success", "failure"))
    assert (found.holds, found.same, found.broken, found.only_one) == (True, 2, 0, 0)


def test_another_outcome_is_told_with_the_job() -> None:
    found = agreement(_assessed("a", "success"), _assessed("b", "failure", "success"))
    assert not found.holds
    assert found.only_one == 1
    assert str(found.differing[0]) == (
        "small-pond, fisher, none, seed 0: success, 3 actions in the one, "
        "failure, 3 actions in the other"
    )


def test_the_same_outcome_after_other_actions_is_no_agreement() -> None:
    found = agreement(_assessed("a", "success"), _assessed("b", "success", actions=4.0))
    assert len(found.differing) == 1


def test_a_broken_trial_is_not_compared() -> None:
    found = agreement(_assessed("a", "broken", "failure"), _assessed("b", "success", "failure"))
    assert (found.holds, found.same, found.broken) == (True, 1, 1)


def test_where_nothing_could_be_compared_nothing_agrees() -> None:
    assert not agreement(_assessed("a", "broken"), _assessed("b", "success")).holds


def test_assessments_without_a_common_job_cannot_be_compared() -> None:
    with pytest.raises(AssessmentError, match="no job in common"):
        agreement(_assessed("a", "success"), _assessed("b", "success", first=7))
