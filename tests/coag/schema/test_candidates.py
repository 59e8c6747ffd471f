"""Candidates and how they are judged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from coag.schema import Candidate, Evaluation, SelectionOutcome, SteppingClock, TokenUsage, Verdict

USAGES = st.builds(
    TokenUsage,
    prompt_tokens=st.integers(0, 99),
    completion_tokens=st.integers(0, 99),
    cached_tokens=st.integers(0, 99),
    calls=st.integers(0, 9),
)


@given(st.lists(st.booleans()))
def test_a_candidate_survives_exactly_if_nothing_forbids_it(answers: list[bool]) -> None:
    verdicts = tuple(
        Verdict.allow() if allowed else Verdict.forbid(f"rule {index}")
        for index, allowed in enumerate(answers)
    )
    evaluation = Evaluation(candidate_id="c1", arguments={}, verdicts=verdicts)
    assert evaluation.survived == all(answers)
    assert evaluation.survived == (evaluation.died_of is None)


def test_a_candidate_dies_of_the_first_rule_that_forbids_it() -> None:
    verdicts = (Verdict.allow(), Verdict.forbid("no charge"), Verdict.forbid("a wall"))
    evaluation = Evaluation(candidate_id="c1", arguments={}, verdicts=verdicts)
    assert evaluation.died_of == Verdict.forbid("no charge")


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan")])
def test_a_score_lies_between_0_and_1(score: float) -> None:
    with pytest.raises(ValidationError):
        Candidate(id="c1", action="move", draft_score=score)


def test_a_selection_of_nothing_is_an_impasse() -> None:
    now = SteppingClock().now()
    assert SelectionOutcome(cycle=1, at=now).impasse
    assert not SelectionOutcome(cycle=1, at=now, candidate_id="c1").impasse


@given(left=USAGES, right=USAGES)
def test_usage_adds_up_field_by_field(left: TokenUsage, right: TokenUsage) -> None:
    total = left + right
    assert total == right + left
    assert total.prompt_tokens == left.prompt_tokens + right.prompt_tokens
    assert total.completion_tokens == left.completion_tokens + right.completion_tokens
    assert total.cached_tokens == left.cached_tokens + right.cached_tokens
    assert total.calls == left.calls + right.calls
    assert left + TokenUsage() == left
