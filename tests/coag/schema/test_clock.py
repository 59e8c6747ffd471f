"""Time as something that is given."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from coag.schema import SteppingClock, SystemClock


def test_a_stepping_clock_moves_one_step_per_look() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    clock = SteppingClock(start, timedelta(seconds=2))
    assert [clock.now(), clock.now()] == [start, start + timedelta(seconds=2)]
    assert clock.monotonic() == 4.0


def test_the_machines_clock_knows_its_zone_and_never_runs_back() -> None:
    clock = SystemClock()
    assert clock.now().utcoffset() == timedelta(0)
    assert clock.monotonic() <= clock.monotonic()
