"""Those who watch the world change, each with a bounded queue."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

from vacuum_world.world import WorldEvent

from ._views import Scene

_WAITING = 256
_RECENT = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A world and what just happened in it."""

    number: int
    """Counts the changes since the server started."""
    scene: Scene
    """What there is to be seen afterwards."""
    events: tuple[WorldEvent, ...]
    """What happened."""


class Watchers:
    """Passes every moment on; who falls too far behind is let go and may come back."""

    def __init__(self) -> None:
        self._queues: set[asyncio.Queue[Moment | None]] = set()
        self._recent: deque[WorldEvent] = deque(maxlen=_RECENT)
        self._number = 0
        self._closed = False

    def publish(self, scene: Scene, events: Iterable[WorldEvent] = ()) -> None:
        """Tell everybody."""
        moment = Moment(number=self._number + 1, scene=scene, events=tuple(events))
        self._number = moment.number
        self._recent.extend(moment.events)
        for queue in tuple(self._queues):
            if queue.qsize() >= _WAITING:
                self._queues.discard(queue)
                queue.put_nowait(None)
            else:
                queue.put_nowait(moment)

    def open(self) -> None:
        """Let streams begin (again, after `close`)."""
        self._closed = False

    def close(self) -> None:
        """End every stream, now and later; only in the event loop that serves them."""
        self._closed = True
        for queue in self._queues:
            queue.put_nowait(None)

    async def watch(self, now: Scene) -> AsyncIterator[Moment]:
        """The present with the latest events, then every change until `close`."""
        if self._closed:
            return
        queue: asyncio.Queue[Moment | None] = asyncio.Queue()
        self._queues.add(queue)
        try:
            yield Moment(number=self._number, scene=now, events=tuple(self._recent))
            while (moment := await queue.get()) is not None:
                yield moment
        finally:
            self._queues.discard(queue)
