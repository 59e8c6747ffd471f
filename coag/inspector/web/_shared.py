"""What all that follow the runs of a desk have in common."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from weakref import WeakKeyDictionary, WeakSet

from ._desk import Desk

MOST = 64
"""Streams of events at a time."""
_KEPT = 256
"""Pieces of HTML that are kept for the next one that asks."""


class Seat:
    """The place of one stream; it is free again when it is given back or forgotten."""

    __slots__ = ("__weakref__",)


class Shared:
    """Pieces that are made once for all followers of a run, and the places there are for them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._pieces: OrderedDict[Hashable, str] = OrderedDict()
        self._taken: WeakSet[Seat] = WeakSet()

    def once(self, key: Hashable, make: Callable[[], str]) -> str:
        """The piece of a key, made where nobody has asked for it of late."""
        with self._lock:
            found = self._pieces.get(key)
            if found is None:
                found = self._pieces[key] = make()
                while len(self._pieces) > _KEPT:
                    self._pieces.popitem(last=False)
            return found

    def seat(self) -> Seat | None:
        """A place for a stream; None where all are taken."""
        if len(self._taken) >= MOST:
            return None
        seat = Seat()
        self._taken.add(seat)
        return seat

    def leave(self, seat: Seat) -> None:
        """Gives a place back."""
        self._taken.discard(seat)


_OF: WeakKeyDictionary[Desk, Shared] = WeakKeyDictionary()


def shared_of(desk: Desk) -> Shared:
    """What the followers of a desk's runs share."""
    return _OF.setdefault(desk, Shared())
