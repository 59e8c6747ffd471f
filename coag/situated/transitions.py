"""Which activity is next, who listens, and what is stored when an activity changes its state.

Who waits, for what and until when, is in the store alone.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence

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
from .store import ActivityStore, Woken
from .store_inboxes import Delivery, InboxEntry


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

    def look(self, store: ActivityStore) -> None:
        """Tells those who wait for the end of an activity that another worker has ended."""
        for one in list(self._endings):
            if (activity := store.get(one)) is not None and activity.over:
                self.ended(activity)

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


class Transitions:
    """Stores changes of activities with the percepts of them, and notifies the listeners."""

    def __init__(self, store: ActivityStore, clock: Clock, listeners: Listeners) -> None:
        self._store = store
        self._clock = clock
        self._listeners = listeners
        self._seen: dict[str, int] = {}
        """The numbers of the last entries that were found not to end the waits of the blocked."""

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

    def block(self, activity: Activity, wait: Wait) -> bool:
        """Blocks an activity; makes it ready, and gives False, where what it waits for is there."""
        with self._store.together():  # nothing comes in between, also of other workers
            entries = self._store.inbox(activity.id)
            there = any(ends_wait(wait, entry.percept) for entry in entries)
            if there or self._is_over(activity.id, wait):
                self.to(ActivityState.READY, activity)
                return False
            self.to(ActivityState.BLOCKED, activity, wait)
        self._see(activity.id, entries)
        return True

    def _see(self, activity_id: str, entries: Sequence[InboxEntry]) -> None:
        if entries:
            self._seen[activity_id] = entries[-1].number

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

    def is_met(self, activity_id: str) -> bool:
        """Whether something in its inbox ends the wait of a blocked activity."""
        wait = self._store.wait_of(activity_id)
        if wait is None:
            return False
        entries = self._store.inbox(activity_id, after=self._seen.get(activity_id, 0))
        self._see(activity_id, entries)
        return any(ends_wait(wait, entry.percept) for entry in entries)

    def wake(self, activity_ids: Sequence[str]) -> list[Woken]:
        """Makes those of these activities ready that are blocked, and this worker's."""
        woken = self._store.wake(activity_ids, self._clock.now())
        self._tell(woken)
        return woken

    def time_out(self) -> list[Woken]:
        """Makes ready whose deadline has passed, with a percept that says so."""
        now = self._clock.now()
        if not (late := self._store.due(now)):
            return []
        with self._store.together():
            for one, wait in late:
                number = self._store.count_time_out(one)
                percept = time_out_percept(one, number, wait, now)
                self._store.deliver(None, None, [Delivery(one, percept)])
            woken = self._store.wake([one for one, _ in late], now)
        self._tell(woken)
        return woken

    def finish(
        self, activity: Activity, end: ActivityEnd, result: str
    ) -> tuple[Activity, list[Woken]]:
        """Ends an activity; its parent and those that wait for it perceive that.

        Those of this worker wake at once, others when their worker looks at their inbox.
        """
        with self._store.together():
            over = self.to(ActivityState.TERMINATED, activity, end=end, result=result)
            now = self._clock.now()
            said = end_percept(activity.id, over, now)
            waiters = self._store.waiters(activity.id)
            receivers = dict.fromkeys(filter(None, [activity.parent, *waiters]))
            self._store.deliver(None, None, [Delivery(one, said) for one in receivers])
            woken = self._store.wake(waiters, now)
        self._seen.pop(activity.id, None)
        self._tell(woken)
        return over, woken

    def _tell(self, woken: Sequence[Woken]) -> None:
        for one in woken:
            self._seen.pop(one.activity, None)
        if self._listeners:
            for one in woken:
                self._listeners.changed(self.known(one.activity))
