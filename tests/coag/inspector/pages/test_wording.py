"""Numbers and times that no run should have said."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.inspector.pages import wording

NUMBERS = st.one_of(st.floats(), st.integers(), st.just(10**400), st.just(-(10**400)))
ENDS = [
    datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
    datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-12))),
    datetime(2026, 11, 21, 12, 0),
]


@given(number=NUMBERS)
def test_every_number_is_told_in_a_few_characters(number: float) -> None:
    for told in (wording.count, wording.amount, wording.duration, wording.decimal):
        assert 0 < len(told(number)) < 32
    assert 0 <= float(wording.percent(number)) <= 100


def test_what_is_no_number_is_a_dash_and_what_has_no_end_says_so() -> None:
    for told in (wording.count, wording.amount, wording.duration, wording.decimal):
        assert told(math.nan) == wording.NOT_KNOWN
        assert told(math.inf) == wording.ENDLESS


@pytest.mark.parametrize("at", ENDS)
def test_times_at_the_ends_of_the_calendar_are_told(at: datetime) -> None:
    assert wording.stamp(at).startswith(f"{at.year:04d}")
    assert wording.moment(at)
    assert wording.clock(at)


def test_times_are_told_in_utc() -> None:
    at = datetime(2026, 11, 21, 12, 0, tzinfo=timezone(timedelta(hours=2)))
    assert wording.stamp(at) == datetime(2026, 11, 21, 10, 0, tzinfo=UTC).isoformat()
