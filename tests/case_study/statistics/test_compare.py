from __future__ import annotations

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from case_study.statistics import FEWEST_PAIRS, compare, smallest_n, with_holm

OUTCOMES = st.dictionaries(st.integers(0, 20), st.booleans(), max_size=20)


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


def test_values_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="values of 7 must be finite"):
        compare({7: 1.0}, {7: inf})


@settings(max_examples=40, deadline=None)
@given(OUTCOMES, OUTCOMES)
def test_a_comparison_of_rates_turns_round_with_its_sides(
    first: dict[int, bool], second: dict[int, bool]
) -> None:
    there, back = compare(first, second), compare(second, first)
    assert there.pairs == len(first.keys() & second.keys())
    assert (there.higher, there.lower) == (back.lower, back.higher)
    assert there.p == back.p
    assert (there.p is not None) == (there.pairs >= FEWEST_PAIRS)
    if there.difference is not None:
        assert back.difference == pytest.approx(-there.difference)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-5, 5), min_size=6, max_size=12))
def test_a_comparison_of_numbers_does_not_depend_on_where_they_start(moved: list[int]) -> None:
    zero = compare(dict.fromkeys(range(len(moved)), 0.0), dict(enumerate(moved)))
    ten = compare(
        dict.fromkeys(range(len(moved)), 10.0), {k: 10.0 + v for k, v in enumerate(moved)}
    )
    assert (zero.p, zero.higher, zero.needed_n) == (ten.p, ten.higher, ten.needed_n)


def test_holm_sees_the_whole_table_and_skips_what_has_no_p_value() -> None:
    sure = compare(dict.fromkeys(range(6), False), dict.fromkeys(range(6), True))
    few = compare({1: False}, {1: True})
    table = with_holm({"a": sure, "b": sure, "few": few})
    assert table["a"].p_holm == pytest.approx(0.0625)
    assert table["few"].p_holm is None
    assert sure.claims
    assert not table["a"].claims
    assert smallest_n(0.05) == FEWEST_PAIRS
