from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from case_study.statistics import Interval, Paired, paired_bootstrap, rate_difference

COUNTS = st.integers(0, 30)


def _paired(both: int, first_only: int, second_only: int, neither: int) -> Paired:
    return Paired(both=both, first_only=first_only, second_only=second_only, neither=neither, p=1.0)


def test_interval_of_paired_rates_is_newcombes() -> None:
    # The airway study of Fagerland, Lydersen and Laake (2014), its sides exchanged.
    found = rate_difference(_paired(1, 1, 7, 12))
    assert (found.low, found.high) == pytest.approx((0.026, 0.507), abs=1e-3)


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_interval_of_paired_rates_holds_the_difference_and_mirrors(
    both: int, first: int, second: int, neither: int
) -> None:
    assume(both + first + second + neither > 0)
    paired = _paired(both, first, second, neither)
    found, swapped = rate_difference(paired), rate_difference(_paired(both, second, first, neither))
    difference = (second - first) / paired.n
    assert -1 <= found.low <= difference + 1e-9
    assert difference - 1e-9 <= found.high <= 1
    assert (found.low, found.high) == pytest.approx((-swapped.high, -swapped.low))


def test_a_few_pairs_that_all_say_the_same_leave_a_wide_interval() -> None:
    assert rate_difference(_paired(0, 0, 3, 0)).width > 0.7
    assert rate_difference(_paired(3, 0, 0, 0)).includes_zero
    assert rate_difference(_paired(0, 0, 0, 0)) == Interval(low=-1.0, high=1.0)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=20), st.integers(0, 5))
def test_bootstrap_stays_within_the_data_and_is_the_seeds(
    differences: list[int], seed: int
) -> None:
    found = paired_bootstrap(differences, seed, resamples=400)
    assert min(differences) - 1e-9 <= found.low <= found.high <= max(differences) + 1e-9
    assert found == paired_bootstrap(differences, seed, resamples=400)


def test_bootstrap_of_darwins_maize_is_that_of_the_textbook() -> None:
    maize = (49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48)
    found = paired_bootstrap(maize, 0)
    assert found.low == pytest.approx(-3, abs=4)
    assert found.high == pytest.approx(37, abs=3)


def test_bootstrap_of_equal_differences_is_that_one_value() -> None:
    assert paired_bootstrap([2.0, 2.0]) == Interval(low=2.0, high=2.0)


def test_bootstrap_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="got none"):
        paired_bootstrap([])
