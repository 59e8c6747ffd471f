"""A memory that sleeps at an interval."""

from __future__ import annotations

import logging

import pytest
from kits.sleepers import dynamics_of, fill, sleeper
from kits.waiting import until

from coag.memory.consolidation import SleepSchedule
from coag.memory.consolidation.journal import SleepJournal


async def test_a_sleep_that_is_refused_is_logged_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    memory = sleeper()
    await fill(memory, 3)
    async with SleepSchedule(memory, every=0.001) as schedule:
        with (
            caplog.at_level(logging.WARNING),
            SleepJournal(dynamics_of(memory).file, "alice").held(),
        ):
            await until(lambda: caplog.records)
        assert schedule.last is None
        await until(lambda: schedule.last)
    assert "sleeps already" in caplog.text


def test_an_interval_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="every must be above 0 seconds, not 0"):
        SleepSchedule(sleeper(), every=0)
