"""Time as something that is given, so that a run can be repeated."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Tells the time of day and measures durations."""

    def now(self) -> datetime:
        """The time of day, in UTC and aware of it."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary point; only differences mean something."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds of the machine's monotonic clock."""
        return time.monotonic()


class SteppingClock:
    """A clock for tests and replays: starts where it is told and moves one step per look."""

    def __init__(
        self,
        start: datetime = datetime(2026, 1, 1, tzinfo=UTC),
        step: timedelta = timedelta(milliseconds=1),
    ) -> None:
        self._now = start
        self._step = step
        self._start = start

    def now(self) -> datetime:
        """The current instant; the next look is one step later."""
        current = self._now
        self._now = current + self._step
        return current

    def monotonic(self) -> float:
        """Seconds since the start, moving one step per look."""
        return (self.now() - self._start).total_seconds()
