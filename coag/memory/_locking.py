"""One writer at a time for each place where records rest."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from weakref import WeakKeyDictionary, WeakValueDictionary

from coag.store import ChromaStore, RecordStore, WrappedStore

_LOOK_AGAIN = 0.002
"""Seconds between two looks at a lock that somebody holds."""


class PlaceLock:
    """A lock for tasks of any event loop, in any thread, of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    async def __aenter__(self) -> None:
        """Waits without holding up the loop; a task that is cancelled meanwhile holds nothing."""
        # asyncio's own locks belong to one loop, and waiting in a thread could outlive the task.
        while not self._lock.acquire(blocking=False):  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_AGAIN)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Lets the next one in."""
        self._lock.release()


_OF_PLACES: WeakValueDictionary[tuple[str, str], PlaceLock] = WeakValueDictionary()
_OF_STORES: WeakKeyDictionary[RecordStore, PlaceLock] = WeakKeyDictionary()
_FINDING = threading.Lock()


def lock_of(store: RecordStore) -> PlaceLock:
    """The lock that all memories over one place share: a folder or server, or a store in RAM.

    A store around another one is at the place of that one.
    """
    while isinstance(store, WrappedStore):
        store = store.store
    with _FINDING:
        if isinstance(store, ChromaStore):
            place = (store.location, store.collection)
            lock = _OF_PLACES.get(place) or PlaceLock()
            _OF_PLACES[place] = lock
            return lock
        return _OF_STORES.setdefault(store, PlaceLock())
