from __future__ import annotations

from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from case_study.statistics import expected_worst, pass_at_k, worst_of_k

VALUES = st.lists(st.integers(0, 9), min_size=1, max_size=7)


@given(st.lists(st.booleans(), min_size=1, max_size=7), st.data())
def test_pass_at_k_and_worst_of_k_count_all_draws(trials: list[bool], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(trials)))
    drawn = list(combinations(trials, k))
    successes, n = sum(trials), len(trials)
    assert pass_at_k(successes, n, k) == pytest.approx(fmean(any(d) for d in drawn))
    assert worst_of_k(successes, n, k) == pytest.approx(fmean(all(d) for d in drawn))


@given(VALUES, st.data(), st.booleans())
def test_expected_worst_counts_all_draws(
    values: list[int], data: st.DataObject, more_is_better: bool
) -> None:
    k = data.draw(st.integers(1, len(values)))
    worst = min if more_is_better else max
    wanted = fmean(worst(drawn) for drawn in combinations(values, k))
    assert expected_worst(values, k, more_is_better=more_is_better) == pytest.approx(wanted)


def test_one_trial_is_the_rate() -> None:
    assert pass_at_k(3, 10, 1) == pytest.approx(0.3)
    assert worst_of_k(3, 10, 1) == pytest.approx(0.3)


@pytest.mark.parametrize(("successes", "n", "k"), [(3, 2, 1), (1, 2, 0), (1, 2, 3)])
def test_impossible_numbers_are_refused(successes: int, n: int, k: int) -> None:
    with pytest.raises(ValueError, match="must be from"):
        pass_at_k(successes, n, k)
