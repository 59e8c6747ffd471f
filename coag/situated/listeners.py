"""Who wants to know how activities go on: those who wait for an end, and those who watch."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable

from coag.errors import CoagError

from .activities import Activity


class SchedulerStoppedError(CoagError):
    """The end of an activity was waited for, and the scheduler stopped before."""

    def __init__(self) -> None:
        super().__init__(
            "The scheduler stopped before the activity ended. It is stored, and goes on with the "
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
