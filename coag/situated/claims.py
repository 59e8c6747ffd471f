"""What a scheduler takes from its store: all that is there, or its share among several workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from .listeners import Listeners
from .queues import Parked, ReadyQueue, WaitIndex
from .store import ActivityStore


class Claims:
    """Takes activities from a store into a scheduler's queue and index.

    Args:
        store: The store.
        ready: Where ready ones go.
        waits: Where blocked ones go.
        claimed: Called with activities that other workers may have pursued before.
    """

    def __init__(
        self,
        store: ActivityStore,
        ready: ReadyQueue,
        waits: WaitIndex,
        claimed: Callable[[Sequence[str]], None],
    ) -> None:
        self._store = store
        self._ready = ready
        self._waits = waits
        self._claimed = claimed

    def take_in(self, only: Set[str] | None = None) -> list[str]:
        """Takes in this worker's activities, those named or all; gives those with full inboxes."""
        for one in self._store.waiting():
            if only is None or one.activity in only:
                self._waits.add(one.activity, Parked(one.priority, one.awaited, one.deadline))
        for activity, priority in self._store.ready():
            if only is None or activity in only:
                self._ready.push(activity, priority)
        return [one for one in self._store.with_inbox() if only is None or one in only]

    def take_share(self, free: int) -> list[str]:
        """Takes what nobody pursues, and renews this worker's lease.

        Args:
            free: How many activities that are ready may be taken.

        Returns:
            Whose inboxes are to be looked at: those of new ones, and those that others filled.
        """
        if not self._store.shared:
            return []
        filled: list[str] = []
        if claimed := self._store.claim(max(0, free)):
            self._claimed(claimed)
            filled = self.take_in(set(claimed))
        return filled + self._store.arrivals()

    def tell_ends(self, listeners: Listeners) -> None:
        """Tells those who wait for the end of an activity that another worker has ended."""
        for one in listeners.awaited if self._store.shared else ():
            if (activity := self._store.get(one)) is not None and activity.over:
                listeners.ended(activity)
