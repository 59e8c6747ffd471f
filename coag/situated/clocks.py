"""The time in which tools live: that of the machine, a multiple of it, or one moved by hand."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from datetime import UTC, datetime, timedelta
from typing import Protocol

from coag.schema import SystemClock


class ToolClock(Protocol):
    """Tells tools the time, and lets them wait."""

    def now(self) -> datetime:
        """The time of day, in UTC and aware of it."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        ...


class ScaledClock(SystemClock):
    """The machine's time of day, with waits that take a fraction of their time.

    Args:
        speed: How many times faster waits pass, e.g. 20 for a simulation that shall not take long.

    Raises:
        ValueError: The speed is not above 0.
    """

    def __init__(self, speed: float = 1.0) -> None:
        if not speed > 0:
            raise ValueError(f"A clock's speed is above 0 (got {speed!r}).")
        self._speed = speed

    async def sleep(self, seconds: float) -> None:
        """Waits `seconds` divided by the speed."""
        await asyncio.sleep(seconds / self._speed)


class VirtualClock:
    """A clock that stands until it is moved: waits end in order, always at the same moment.

    Args:
        start: The time at first.
    """

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._seconds = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Event]] = []
        self._numbers = itertools.count()

    def now(self) -> datetime:
        """The time of day, in UTC."""
        return self._start + timedelta(seconds=self._seconds)

    def monotonic(self) -> float:
        """Seconds since the start."""
        return self._seconds

    async def sleep(self, seconds: float) -> None:
        """Waits until the clock has been moved on by so much."""
        woken = asyncio.Event()
        place = (self._seconds + max(0.0, seconds), next(self._numbers), woken)
        heapq.heappush(self._sleepers, place)
        try:
            await woken.wait()
        finally:
            if not woken.is_set():  # cancelled
                self._sleepers.remove(place)
                heapq.heapify(self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Moves the clock on; whoever sleeps until then is woken at its own moment.

        Other tasks run before, between and after the wakings for a few turns of the event loop:
        enough for one that was woken to sleep again, so that a loop of short sleeps passes whole.
        """
        end = self._seconds + seconds
        await _let_others_run()
        while self._sleepers and self._sleepers[0][0] <= end:
            self._seconds, _, woken = heapq.heappop(self._sleepers)
            woken.set()
            await _let_others_run()
        self._seconds = end


_TURNS = 10


async def _let_others_run() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)
