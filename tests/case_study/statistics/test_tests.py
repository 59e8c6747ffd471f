from __future__ import annotations

from itertools import product
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from case_study.statistics import holm, mcnemar, sign_flip, smallest_n

P_VALUES = st.floats(0, 1, allow_nan=False)
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


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=7))
def test_sign_flip_counts_every_assignment_of_signs(differences: list[int]) -> None:
    seen = abs(sum(differences))
    signs = list(product((1, -1), repeat=len(differences)))
    extreme = sum(
        abs(sum(s * d for s, d in zip(sign, differences, strict=True))) >= seen for sign in signs
    )
    assert sign_flip(differences) == pytest.approx(extreme / len(signs))


def test_sign_flip_of_many_pairs_is_drawn_by_the_seed() -> None:
    many = [float(n % 7 - 2) for n in range(50)]
    assert sign_flip(many, seed=1) == sign_flip(many, seed=1)
    assert sign_flip([1.0] * 50) < 0.001


def test_holm_agrees_with_the_worked_example() -> None:
    adjusted = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert adjusted == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02})


@given(st.dictionaries(st.integers(), P_VALUES, max_size=12))
def test_holm_never_lowers_a_p_value_nor_changes_their_order(p_values: dict[int, float]) -> None:
    adjusted = holm(p_values)
    assert adjusted.keys() == p_values.keys()
    for key, p in p_values.items():
        assert p <= adjusted[key] + 1e-12
        assert adjusted[key] <= 1
    ordered = sorted(p_values, key=lambda key: (p_values[key], adjusted[key]))
    assert [adjusted[key] for key in ordered] == sorted(adjusted.values())
    if len(p_values) == 1:
        assert adjusted == pytest.approx(p_values)


def test_what_is_no_p_value_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'a' must be from 0 to 1, got 1\.5"):
        holm({"a": 1.5})


@pytest.mark.parametrize(("alpha", "n"), [(0.05, 6), (0.01, 8), (0.0005, 12)])
def test_fewest_pairs_are_those_that_can_come_below_alpha(alpha: float, n: int) -> None:
    assert smallest_n(alpha) == n
    assert mcnemar([(True, False)] * n).p < alpha <= mcnemar([(True, False)] * (n - 1)).p


def test_alpha_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="got 0"):
        smallest_n(0)
