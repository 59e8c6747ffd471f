"""What a scheduler holds of activities: which is next, who waits for whom, and until when."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

_PATIENCE = 50
"""By how many steps of others one is passed over at most, for each priority that it is lower."""
_STALE = 64
"""So many deadlines that hold no more are kept at least before the heap is made again."""


class ReadyQueue:
    """Activities that are ready: by priority, then first come; none waits for ever.

    Each priority counts as 50 steps: a lower one runs before a higher one that became ready more
    than 50 steps later for each step between them.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, str]] = []
        self._entries: dict[str, int] = {}
        self._order = itertools.count()
        self._served = 0

    def __len__(self) -> int:
        return len(self._entries)

    def push(self, activity: str, priority: int) -> None:
        """Puts an activity in, once."""
        if activity in self._entries:
            return
        order = next(self._order)
        self._entries[activity] = order
        heapq.heappush(self._heap, (self._served - priority * _PATIENCE, order, activity))

    def pop(self) -> str:
        """Takes the next one out; there must be one."""
        while True:
            _, order, activity = heapq.heappop(self._heap)
            if self._entries.get(activity) == order:
                del self._entries[activity]
                self._served += 1
                return activity

    def remove(self, activity: str) -> None:
        """Takes an activity out, if it is in."""
        self._entries.pop(activity, None)


class Resting:
    """Activities whose step raised, until they are ready again."""

    def __init__(self) -> None:
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def add(
        self, activity: str, seconds: float, ready: Callable[[str, int], None], priority: int
    ) -> None:
        """Calls back with an activity and its priority after so long."""
        loop = asyncio.get_running_loop()
        self._timers[activity] = loop.call_later(seconds, ready, activity, priority)

    def end(self, activity: str) -> None:
        """Calls back no more for an activity."""
        if (timer := self._timers.pop(activity, None)) is not None:
            timer.cancel()

    def clear(self) -> None:
        """Calls back no more."""
        for activity in list(self._timers):
            self.end(activity)


@dataclass(slots=True)
class Parked:
    """What is held of a blocked activity; the rest is in the store."""

    priority: int
    awaited: str | None = None
    """The activity whose end it waits for."""
    deadline: float | None = None
    """Seconds since 1970, UTC."""
    seen: int = 0
    """The number of the last entry of its inbox that was found not to end its wait."""


class WaitIndex:
    """Blocked activities, by whom they wait for, and a heap of their deadlines."""

    def __init__(self) -> None:
        self._parked: dict[str, Parked] = {}
        self._waiters: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._deadlines: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._parked)

    def get(self, activity: str) -> Parked | None:
        """What is held of a blocked activity; None for one that is not blocked."""
        return self._parked.get(activity)

    def add(self, activity: str, parked: Parked) -> None:
        """Takes a blocked activity in."""
        self._parked[activity] = parked
        if parked.awaited is not None:
            self._waiters[parked.awaited][activity] = None
        if parked.deadline is not None:
            heapq.heappush(self._deadlines, (parked.deadline, activity))

    def remove(self, activity: str) -> Parked | None:
        """Takes an activity out, and gives what was held; None if it was not blocked."""
        parked = self._parked.pop(activity, None)
        if parked is not None and parked.awaited is not None:
            waiters = self._waiters[parked.awaited]
            del waiters[activity]
            if not waiters:
                del self._waiters[parked.awaited]
        if len(self._deadlines) > 2 * len(self._parked) + _STALE:
            self._deadlines = [entry for entry in self._deadlines if self._holds(entry)]
            heapq.heapify(self._deadlines)
        return parked

    def waiters(self, awaited: str) -> list[str]:
        """The activities that wait for the end of this one."""
        return list(self._waiters.get(awaited, ()))

    def due(self, now: float) -> list[str]:
        """The activities whose deadline has passed, the oldest first; each is given once."""
        found: dict[str, None] = {}
        while self._deadlines and self._deadlines[0][0] <= now:
            entry = heapq.heappop(self._deadlines)
            if self._holds(entry):
                found[entry[1]] = None
        return list(found)

    def next_deadline(self) -> float | None:
        """When the next deadline is, in seconds since 1970; None if there is none."""
        while self._deadlines and not self._holds(self._deadlines[0]):
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def _holds(self, entry: tuple[float, str]) -> bool:
        parked = self._parked.get(entry[1])
        return parked is not None and parked.deadline == entry[0]
