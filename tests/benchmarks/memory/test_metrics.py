"""Measures of answers."""

import math

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.memory import (
    Answer,
    all_at,
    interval,
    mean,
    percentile,
    recall_at,
    reciprocal_rank,
)


def an_answer(wanted: str, got: str) -> Answer:
    return Answer(
        conversation="c", split="dev", category=1, wanted=frozenset(wanted), got=tuple(got)
    )


def test_recall_is_the_share_of_what_is_wanted_among_the_first() -> None:
    answer = an_answer("ab", "xaybz")
    assert [recall_at(answer, k) for k in (1, 2, 3, 4)] == [0.0, 0.5, 0.5, 1.0]


def test_all_is_found_only_when_nothing_is_missing() -> None:
    answer = an_answer("ab", "xaybz")
    assert [all_at(answer, k) for k in (3, 4)] == [0.0, 1.0]


def test_the_first_that_is_wanted_gives_the_reciprocal_rank() -> None:
    assert reciprocal_rank(an_answer("ab", "xayb")) == 0.5


def test_what_is_not_found_has_a_reciprocal_rank_of_zero() -> None:
    assert reciprocal_rank(an_answer("a", "xyz")) == 0.0


def test_what_stands_below_the_places_looked_at_is_not_found() -> None:
    got = tuple(f"x{number}" for number in range(20))
    late = Answer(conversation="c", split="dev", category=1, wanted=frozenset("a"), got=(*got, "a"))
    assert reciprocal_rank(late) == 0.0


def test_nothing_measured_is_no_number() -> None:
    assert math.isnan(mean([]))
    assert math.isnan(percentile([], 0.5))
    assert all(math.isnan(bound) for bound in interval([]))


def test_percentiles_are_values_that_were_measured() -> None:
    values = [5.0, 1.0, 4.0, 2.0, 3.0]
    assert [percentile(values, share) for share in (0.0, 0.5, 0.95, 1.0)] == [1.0, 3.0, 5.0, 5.0]


def test_the_interval_is_the_same_every_time() -> None:
    values = [0.0, 1.0, 1.0, 0.0, 1.0]
    assert interval(values) == interval(values)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30))
def test_the_interval_lies_around_the_mean(values: list[float]) -> None:
    low, high = interval(values, draws=200)
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9
