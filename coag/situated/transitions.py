"""What a scheduler holds of activities, and what is stored when one changes its state.

It holds which is next, who waits for whom and until when, and who listens to their changes.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from coag._util.text import well_formed
from coag.errors import CoagError
from coag.schema import Clock

from .activities import (
    Activity,
    ActivityEnd,
    ActivityState,
    OnActivity,
    Wait,
    end_percept,
    ends_wait,
    time_out_percept,
)
from .store import ActivityStore
from .store_inboxes import Delivery


class SchedulerStoppedError(CoagError):
    """The end of an activity was waited for, and the scheduler stopped before."""

    def __init__(self) -> None:
        super().__init__(
            "The scheduler stopped before the activity ended. It is stored, and continues with the "
            "next scheduler of this store."
        )


class Listeners:
    """Those who wait for the end of an activity, and those who watch all activities."""

    def __init__(self) -> None:
        self._endings: defaultdict[str, list[asyncio.Future[Activity]]] = defaultdict(list)
        self._watchers: list[Callable[[Activity], None]] = []
        self._closed: Exception | None = None

    def __bool__(self) -> bool:
        return bool(self._watchers)

    def watch(self, callback: Callable[[Activity], None]) -> Callable[[], None]:
        """Calls back with each activity that has changed, until what is returned is called."""
        self._watchers.append(callback)
        return lambda: self._watchers.remove(callback)

    def changed(self, activity: Activity) -> None:
        """Tells those who watch, in the next turn of the loop: they may call the scheduler."""
        for callback in self._watchers:
            asyncio.get_running_loop().call_soon(callback, activity)

    @property
    def awaited(self) -> list[str]:
        """The activities whose end is waited for."""
        return list(self._endings)

    async def end_of(self, activity_id: str) -> Activity:
        """Waits for the end of an activity."""
        if self._closed is not None:
            raise self._closed
        future: asyncio.Future[Activity] = asyncio.get_running_loop().create_future()
        self._endings[activity_id].append(future)
        return await future

    def ended(self, activity: Activity) -> None:
        """Tells those who wait for the end of this activity."""
        for future in self._endings.pop(activity.id, ()):
            if not future.done():
                future.set_result(activity)

    def close(self, error: Exception) -> None:
        """Tells all who wait for an end, now or later, that there will be none."""
        self._closed = error
        for futures in self._endings.values():
            for future in futures:
                if not future.done():
                    future.set_exception(error)
        self._endings.clear()


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


class Transitions:
    """Stores changes of activities with the percepts of them, and notifies the listeners."""

    def __init__(self, store: ActivityStore, clock: Clock, listeners: Listeners) -> None:
        self._store = store
        self._clock = clock
        self._listeners = listeners

    def known(self, activity_id: str) -> Activity:
        """The activity as it is stored; `ValueError` where there is none with this id."""
        if (activity := self._store.get(activity_id)) is None:
            raise ValueError(f"There is no activity {activity_id!r}.")
        return activity

    def to(
        self,
        state: ActivityState,
        activity: Activity,
        wait: Wait | None = None,
        end: ActivityEnd | None = None,
        result: str = "",
    ) -> Activity:
        """The activity in another state."""
        changes = {"state": state, "wait": wait, "end": end, "result": well_formed(result)}
        activity = activity.model_copy(update={**changes, "updated": self._clock.now()})
        self._store.save(activity)
        self._listeners.changed(activity)
        return activity

    def block(self, activity: Activity, wait: Wait) -> Parked | None:
        """Blocks an activity; makes it ready, and gives None, where what it waits for is there."""
        with self._store.together():  # nothing comes in between, also of other workers
            entries = self._store.inbox(activity.id)
            there = any(ends_wait(wait, entry.percept) for entry in entries)
            if there or self._is_over(activity.id, wait):
                self.to(ActivityState.READY, activity)
                return None
            self.to(ActivityState.BLOCKED, activity, wait)
        return Parked(
            activity.priority,
            wait.condition.activity if isinstance(wait.condition, OnActivity) else None,
            wait.deadline.timestamp() if wait.deadline is not None else None,
            entries[-1].number if entries else 0,
        )

    def _is_over(self, waiter: str, wait: Wait) -> bool:
        """Whether the activity that is waited for has ended or never was; if so, delivers that."""
        if not isinstance(wait.condition, OnActivity):
            return False
        awaited = wait.condition.activity
        activity = self._store.get(awaited)
        if activity is not None and not activity.over:
            return False
        said = end_percept(awaited, activity, self._clock.now())
        self._store.deliver(None, None, [Delivery(waiter, said)])
        return True

    def is_met(self, activity_id: str, parked: Parked) -> bool:
        """Whether something that came into its inbox ends the wait of a blocked activity."""
        entries = self._store.inbox(activity_id, after=parked.seen)
        if not entries:
            return False
        parked.seen = entries[-1].number
        wait = self._store.wait_of(activity_id)
        return wait is not None and any(ends_wait(wait, entry.percept) for entry in entries)

    def wake(self, activity_ids: Sequence[str]) -> None:
        """Makes blocked activities ready."""
        self._store.wake(activity_ids, self._clock.now())
        self._woken(activity_ids)

    def time_out(self, activity_ids: Sequence[str]) -> None:
        """Makes blocked activities ready, with a percept that says that their deadline passed."""
        now = self._clock.now()
        with self._store.together():
            for one in activity_ids:
                if (wait := self._store.wait_of(one)) is not None:
                    number = self._store.count_time_out(one)
                    late = Delivery(one, time_out_percept(one, number, wait, now))
                    self._store.deliver(None, None, [late])
            self._store.wake(activity_ids, now)
        self._woken(activity_ids)

    def finish(
        self, activity: Activity, end: ActivityEnd, result: str, waiters: Sequence[str]
    ) -> Activity:
        """Ends an activity; its parent and those that wait for it perceive that.

        Those of this worker wake at once, others when their worker looks at their inbox.
        """
        with self._store.together():
            over = self.to(ActivityState.TERMINATED, activity, end=end, result=result)
            now = self._clock.now()
            said = end_percept(activity.id, over, now)
            others = self._store.waiters(activity.id)
            receivers = dict.fromkeys(filter(None, [activity.parent, *others]))
            self._store.deliver(None, None, [Delivery(one, said) for one in receivers])
            self._store.wake(waiters, now)
        self._woken(waiters)
        return over

    def _woken(self, activity_ids: Sequence[str]) -> None:
        if self._listeners:
            for one in activity_ids:
                self._listeners.changed(self.known(one))
