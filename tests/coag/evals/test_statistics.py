"""Statistics of paired trials."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb, inf, pi
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coag.evals.statistics import (
    FEWEST_PAIRS,
    Interval,
    PairedCounts,
    cohens_h,
    compare,
    holm,
    mcnemar,
    needed_n,
    needed_pairs_for_rates,
    paired_bootstrap,
    paired_d,
    pass_at_k,
    rate_difference,
    sign_flip,
    smallest_n,
    wilson,
    with_holm,
    worst_of_k,
)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),  # Newcombe 1998, table I
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0),
    ],
)
def test_wilson_agrees_with_the_published_intervals(
    successes: int, n: int, low: float, high: float
) -> None:
    found = wilson(successes, n)
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


COUNTS = st.integers(0, 12)
DARWIN = (49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48)
"""Height of crossed over self-fertilised maize, in eighths of an inch (Fisher 1935)."""


def _pairs(both: int, first: int, second: int, neither: int) -> list[tuple[bool, bool]]:
    return (
        [(True, True)] * both
        + [(True, False)] * first
        + [(False, True)] * second
        + [(False, False)] * neither
    )


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [(1, 7, 0.0703125), (6, 0, 0.03125), (5, 0, 0.0625), (4, 4, 1.0), (0, 0, 1.0), (10, 2, 0.0386)],
)
def test_mcnemar_gives_the_binomial_p(first: int, second: int, p: float) -> None:
    assert mcnemar(_pairs(3, first, second, 2)).p == pytest.approx(p, abs=1e-4)


@settings(max_examples=40, deadline=None)
@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_mcnemar_counts_pairs_and_looks_at_discordant_ones_only(
    both: int, first: int, second: int, neither: int
) -> None:
    found = mcnemar(_pairs(both, first, second, neither))
    assert (found.both, found.first_only) == (both, first)
    assert (found.second_only, found.neither) == (second, neither)
    assert found.n == both + first + second + neither
    n, k = first + second, min(first, second)
    assert found.p == pytest.approx(min(1.0, 2 * sum(comb(n, i) for i in range(k + 1)) / 2**n))
    assert found.p == mcnemar(_pairs(0, second, first, 0)).p


def test_sign_flip_of_darwins_maize_is_fishers() -> None:
    assert sign_flip(DARWIN) == pytest.approx(2 * 863 / 2**15)


def test_sign_flip_of_many_pairs_is_drawn_by_the_seed() -> None:
    many = [float(n % 7 - 2) for n in range(50)]
    assert sign_flip(many, seed=1) == sign_flip(many, seed=1)
    assert sign_flip([1.0] * 50) < 0.001


def test_holm_agrees_with_the_worked_example() -> None:
    adjusted = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert adjusted == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02})


@pytest.mark.parametrize(("alpha", "n"), [(0.05, 6), (0.01, 8), (0.0005, 12)])
def test_fewest_pairs_are_those_that_can_come_below_alpha(alpha: float, n: int) -> None:
    assert smallest_n(alpha) == n
    assert mcnemar([(True, False)] * n).p < alpha <= mcnemar([(True, False)] * (n - 1)).p


def _paired(both: int, first_only: int, second_only: int, neither: int) -> PairedCounts:
    return PairedCounts(
        both=both, first_only=first_only, second_only=second_only, neither=neither, p=1.0
    )


def test_interval_of_paired_rates_is_newcombes() -> None:
    # The airway study of Fagerland, Lydersen and Laake (2014), its sides exchanged.
    found = rate_difference(_paired(1, 1, 7, 12))
    assert (found.low, found.high) == pytest.approx((0.026, 0.507), abs=1e-3)


def test_a_few_pairs_that_all_say_the_same_leave_a_wide_interval() -> None:
    assert rate_difference(_paired(0, 0, 3, 0)).width > 0.7
    assert rate_difference(_paired(3, 0, 0, 0)).includes_zero
    assert rate_difference(_paired(0, 0, 0, 0)) == Interval(low=-1.0, high=1.0)


def test_bootstrap_of_darwins_maize_is_that_of_the_textbook() -> None:
    maize = (49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48)
    found = paired_bootstrap(maize, 0)
    assert found.low == pytest.approx(-3, abs=4)
    assert found.high == pytest.approx(37, abs=3)


@pytest.mark.parametrize(
    ("first", "second", "h"), [(0.5, 0.65, 0.305), (0.25, 0.05, -0.596), (0.0, 1.0, pi)]
)
def test_cohens_h_agrees_with_the_tables(first: float, second: float, h: float) -> None:
    assert cohens_h(first, second) == pytest.approx(h, abs=1e-3)


def test_paired_d_is_mean_over_spread() -> None:
    assert paired_d([1.0, 2.0, 3.0]) == pytest.approx(2.0)
    assert paired_d([1.0]) is None


def test_needed_pairs_for_rates_agree_with_connors_formula() -> None:
    # (1.960 * sqrt(0.4) + 0.842 * sqrt(0.4 - 0.04))**2 / 0.04 is 76.1
    assert needed_pairs_for_rates(0.1, 0.3) == 77
    assert needed_pairs_for_rates(0.3, 0.1) == 77
    assert needed_pairs_for_rates(0.0, 1.0) == 6
    assert needed_pairs_for_rates(0.2, 0.2) is None


def test_needed_pairs_of_a_measure_agree_with_the_tables_of_power() -> None:
    differences = [-0.5, 1.5] * 50
    assert paired_d(differences) == pytest.approx(0.5, abs=0.01)
    assert needed_n(differences) == pytest.approx(34, abs=1)  # Cohen's tables for d = 0.5


def test_needed_pairs_are_none_without_a_difference_and_few_where_it_is_clear() -> None:
    assert needed_n([]) is None
    assert needed_n([1.0, -1.0]) is None
    assert needed_n([3.0, 3.0]) == 6
    assert needed_n([1000.0, -999.999, 0.001]) is not None


@given(st.lists(st.booleans(), min_size=1, max_size=7), st.data())
def test_pass_at_k_and_worst_of_k_count_all_draws(trials: list[bool], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(trials)))
    drawn = list(combinations(trials, k))
    successes, n = sum(trials), len(trials)
    assert pass_at_k(successes, n, k) == pytest.approx(fmean(any(d) for d in drawn))
    assert worst_of_k(successes, n, k) == pytest.approx(fmean(all(d) for d in drawn))


def test_one_trial_is_the_rate() -> None:
    assert pass_at_k(3, 10, 1) == pytest.approx(0.3)
    assert worst_of_k(3, 10, 1) == pytest.approx(0.3)


def test_success_is_compared_as_a_rate() -> None:
    plain = {seed: seed < 3 for seed in range(10)}
    full = dict.fromkeys(range(10), True)
    found = compare(plain, full)
    assert (found.kind, found.test, found.effect_name) == ("rate", "exact McNemar", "Cohen's h")
    assert (found.reference, found.other, found.difference) == (0.3, 1.0, 0.7)
    assert (found.higher, found.lower, found.pairs) == (7, 0, 10)
    assert found.p == pytest.approx(2 / 2**7)
    assert found.interval is not None
    assert not found.interval.includes_zero
    assert found.claims
    assert (found.needed_n, found.why) == (None, "")


def test_measures_are_compared_as_numbers() -> None:
    found = compare({n: 10 for n in range(8)}, {n: 10 + n % 4 for n in range(8)})
    assert (found.kind, found.test, found.effect_name) == (
        "number",
        "sign-flip permutation",
        "paired d",
    )
    assert found.difference == pytest.approx(1.5)
    assert (found.higher, found.lower) == (6, 0)
    assert found.p == pytest.approx(2 / 2**6)
    assert found.interval is not None
    assert found.interval.low > 0


def test_too_few_pairs_give_no_p_value_and_say_how_many_it_takes() -> None:
    found = compare(dict.fromkeys(range(5), False), dict.fromkeys(range(5), True))
    assert found.p is None
    assert not found.claims
    assert found.needed_n == 6
    assert found.why == "5 pairs are too few for a claim: p < 0.05 takes at least 6"
    costs = compare({0: 1.0, 1: 1.0}, {0: 2.0, 1: 4.0})
    assert (costs.p, costs.interval, costs.difference) == (None, None, 2.0)
    assert costs.needed_n is not None


def test_an_open_question_names_the_pairs_that_would_answer_it() -> None:
    reference = {n: n < 4 for n in range(10)}
    other = {n: n < 4 or n == 8 for n in range(10)}
    found = compare(reference, other)
    assert found.interval is not None
    assert found.interval.includes_zero
    assert found.needed_n is not None
    assert found.needed_n > 10
    same = compare(reference, reference)
    assert same.needed_n is None
    assert "no difference was seen" in same.why


def test_seeds_of_one_side_and_missing_values_are_left_out_and_counted() -> None:
    found = compare({1: 1.0, 2: None, 3: 3.0, 4: None}, {1: 2.0, 2: 2.0, 4: None, 5: 1.0})
    assert (found.pairs, found.unpaired) == (1, 3)
    assert (found.reference, found.other) == (1.0, 2.0)


def test_nothing_in_common_is_no_comparison_and_no_error() -> None:
    found = compare({1: True}, {2: True})
    assert (found.pairs, found.unpaired, found.difference) == (0, 2, None)
    assert found.why.startswith("0 pairs are too few")


def test_holm_sees_the_whole_table_and_skips_what_has_no_p_value() -> None:
    sure = compare(dict.fromkeys(range(6), False), dict.fromkeys(range(6), True))
    few = compare({1: False}, {1: True})
    table = with_holm({"a": sure, "b": sure, "few": few})
    assert table["a"].p_holm == pytest.approx(0.0625)
    assert table["few"].p_holm is None
    assert sure.claims
    assert not table["a"].claims
    assert smallest_n(0.05) == FEWEST_PAIRS


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: wilson(4, 3), "got 4 of n = 3"),
    (lambda: wilson(-1, 3), "got -1 of n = 3"),
    (lambda: holm({"a": 1.5}), r"'a' must be from 0 to 1, got 1\.5"),
    (lambda: smallest_n(0), "got 0"),
    (lambda: paired_bootstrap([]), "got none"),
    (lambda: cohens_h(0.5, 1.2), r"got 1\.2"),
    (lambda: needed_pairs_for_rates(0.6, 0.6), "add up to 1"),
    (lambda: pass_at_k(4, 3, 1), "must be from"),
    (lambda: worst_of_k(1, 3, 4), "must be from"),
    (lambda: compare({7: 1.0}, {7: inf}), "values of 7 must be finite"),
]


@pytest.mark.parametrize(("ask", "error"), REFUSED)
def test_impossible_numbers_are_refused(ask: Callable[[], object], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        ask()


def test_of_nothing_everything_is_possible_and_of_equal_differences_one_value() -> None:
    assert wilson(0, 0) == Interval(low=0.0, high=1.0)
    assert paired_bootstrap([2.0] * 7) == Interval(low=2.0, high=2.0)
