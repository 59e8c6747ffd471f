from __future__ import annotations

from math import pi

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from case_study.statistics import (
    cohens_h,
    discordant_odds,
    needed_n,
    needed_pairs_for_rates,
    paired_d,
)

RATES = st.floats(0, 1)


@pytest.mark.parametrize(
    ("first", "second", "h"), [(0.5, 0.65, 0.305), (0.25, 0.05, -0.596), (0.0, 1.0, pi)]
)
def test_cohens_h_agrees_with_the_tables(first: float, second: float, h: float) -> None:
    assert cohens_h(first, second) == pytest.approx(h, abs=1e-3)


@given(RATES, RATES)
def test_cohens_h_changes_its_sign_with_the_order(first: float, second: float) -> None:
    assert cohens_h(first, second) == pytest.approx(-cohens_h(second, first))
    assert abs(cohens_h(first, second)) <= pi + 1e-9


def test_a_rate_above_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"got 1\.2"):
        cohens_h(0.5, 1.2)


def test_odds_of_discordant_pairs_need_a_pair_that_the_first_won() -> None:
    assert discordant_odds(2, 8) == 4
    assert discordant_odds(0, 8) is None


@given(st.lists(st.integers(-99, 99), min_size=2, max_size=12), st.integers(1, 50))
def test_paired_d_does_not_depend_on_the_unit(differences: list[int], factor: int) -> None:
    scaled = [value * factor for value in differences]
    d, of_scaled = paired_d(differences), paired_d(scaled)
    assert (d is None) == (of_scaled is None) == (len(set(differences)) == 1)
    if d is not None:
        assert d == pytest.approx(of_scaled)


def test_paired_d_is_mean_over_spread() -> None:
    assert paired_d([1.0, 2.0, 3.0]) == pytest.approx(2.0)
    assert paired_d([1.0]) is None


def test_needed_pairs_for_rates_agree_with_connors_formula() -> None:
    # (1.960 * sqrt(0.4) + 0.842 * sqrt(0.4 - 0.04))**2 / 0.04 is 76.1
    assert needed_pairs_for_rates(0.1, 0.3) == 77
    assert needed_pairs_for_rates(0.3, 0.1) == 77
    assert needed_pairs_for_rates(0.0, 1.0) == 6
    assert needed_pairs_for_rates(0.2, 0.2) is None


@settings(max_examples=40)
@given(st.floats(0.02, 0.3), st.floats(0.02, 0.3))
def test_a_smaller_difference_needs_more_pairs(first: float, more: float) -> None:
    large = needed_pairs_for_rates(first, first + more)
    small = needed_pairs_for_rates(first, first + more / 2)
    assert large is not None
    assert small is not None
    assert small >= large


def test_shares_above_one_are_refused() -> None:
    with pytest.raises(ValueError, match="add up to 1"):
        needed_pairs_for_rates(0.6, 0.6)


def test_needed_pairs_of_a_measure_agree_with_the_tables_of_power() -> None:
    differences = [-0.5, 1.5] * 50
    assert paired_d(differences) == pytest.approx(0.5, abs=0.01)
    assert needed_n(differences) == pytest.approx(34, abs=1)  # Cohen's tables for d = 0.5


def test_needed_pairs_are_none_without_a_difference_and_few_where_it_is_clear() -> None:
    assert needed_n([]) is None
    assert needed_n([1.0, -1.0]) is None
    assert needed_n([3.0, 3.0]) == 6
    assert needed_n([1000.0, -999.999, 0.001]) is not None
