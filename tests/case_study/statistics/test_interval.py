from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from case_study.statistics import Interval, wilson


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


@given(st.integers(0, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_rate_and_mirrors_failures(trial: tuple[int, int]) -> None:
    successes, n = trial
    found, mirrored = wilson(successes, n), wilson(n - successes, n)
    assert 0 <= found.low <= found.high <= 1
    assert found.low == pytest.approx(1 - mirrored.high, abs=1e-9)
    if n:
        assert found.low <= successes / n <= found.high


@given(st.integers(1, 100), st.integers(2, 10))
def test_more_trials_of_the_same_rate_tell_more(n: int, times: int) -> None:
    assert wilson(n, 2 * n).width > wilson(n * times, 2 * n * times).width


def test_no_trials_leave_everything_possible() -> None:
    assert wilson(0, 0) == Interval(low=0.0, high=1.0)


@pytest.mark.parametrize(("successes", "n"), [(-1, 3), (4, 3)])
def test_more_successes_than_trials_are_refused(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match=f"got {successes} of n = {n}"):
        wilson(successes, n)
