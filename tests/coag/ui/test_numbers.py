"""Numbers in narrow columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.ui.numbers import amount, count, duration, money


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0"), (9_120, "9,120"), (12_345, "12.3k"), (123_456, "123k"), (1_400_000, "1.4M")],
)
def test_a_count_is_short(number: int, shown: str) -> None:
    assert amount(number) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.4, "0 s"), (59, "59 s"), (61, "1 m"), (5_400, "1.5 h"), (200_000, "2 d")],
)
def test_a_length_of_time_is_short(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


@given(st.integers(0, 999_999_999), st.floats(0, 8_000_000))
def test_no_number_is_wider_than_its_column(number: int, seconds: float) -> None:
    assert len(amount(number)) <= 6
    assert len(duration(seconds)) <= 6


def test_a_cost_is_shown_where_there_is_one() -> None:
    assert (money(0), money(0.0123), money(1_234.5)) == ("-", "0.0123", "1,234.50")


def test_one_is_singular() -> None:
    assert (count(1, "call"), count(1_200, "call")) == ("1 call", "1,200 calls")
