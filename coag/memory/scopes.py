"""Whose records a memory reads and writes, who wrote them, and one writer at a time."""

from __future__ import annotations

import asyncio
import threading
from weakref import WeakKeyDictionary, WeakValueDictionary

from coag.errors import ConfigurationError
from coag.schema import Provenance, Trust, Value
from coag.store import ChromaStore, RecordStore, innermost

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

    async def __aexit__(self, *error: object) -> None:
        self._lock.release()


_OF_PLACES: WeakValueDictionary[tuple[str, str], PlaceLock] = WeakValueDictionary()
_OF_STORES: WeakKeyDictionary[RecordStore, PlaceLock] = WeakKeyDictionary()
_FINDING = threading.Lock()


def lock_of(store: RecordStore) -> PlaceLock:
    """The lock that all memories over one place share: a folder or server, or a store in RAM.

    A store around another one is at the place of that one.
    """
    store = innermost(store)
    with _FINDING:
        if isinstance(store, ChromaStore):
            place = (store.location, store.collection)
            lock = _OF_PLACES.get(place) or PlaceLock()
            _OF_PLACES[place] = lock
            return lock
        return _OF_STORES.setdefault(store, PlaceLock())


_USER, _TEAM = "user:", "team:"


def agent_scope(name: str) -> str:
    """The scope of what an agent remembers for itself: its name.

    Raises:
        ValueError: If the name is empty, or would be a user's or a team's scope.
    """
    if name.startswith((_USER, _TEAM)):
        raise ValueError(f"An agent cannot be named {name!r}: that is the scope of a user or team.")
    return _named("agent", name)


def user_scope(user_id: str) -> str:
    """The scope of what is remembered about and for one user.

    Raises:
        ValueError: If the id is empty.
    """
    return _USER + _named("user", user_id)


def is_user_scope(scope: str) -> bool:
    """Whether a scope is that of a user."""
    return scope.startswith(_USER) and bool(scope[len(_USER) :].strip())


def team_scope(team_id: str) -> str:
    """The scope of what the members of a team share.

    Raises:
        ValueError: If the id is empty.
    """
    return _TEAM + _named("team", team_id)


def _named(whose: str, name: str) -> str:
    if not name.strip():
        raise ValueError(f"The {whose}'s id is empty ({name!r}); its scope would be everyone's.")
    return name


async def scopes_in(store: RecordStore) -> tuple[str, ...]:
    """The scopes of all records of a store, each once."""
    found: dict[str, None] = {}
    async for records in store.scan():
        found |= dict.fromkeys(record.scope for record in records)
    return tuple(found)


class Scopes(Value):
    """Whose records a memory may read and write; no others exist for it."""

    own: str
    """Where it writes unless a call names another one."""
    reads: tuple[str, ...] = ()
    """Further scopes that it reads."""
    writes: tuple[str, ...] = ()
    """Further scopes that it reads and, where a call names one, writes."""

    @property
    def readable(self) -> tuple[str, ...]:
        """All of them, each once, its own one first."""
        return tuple(dict.fromkeys((self.own, *self.writes, *self.reads)))

    @property
    def writable(self) -> tuple[str, ...]:
        """Those that it may write, each once, its own one first."""
        return tuple(dict.fromkeys((self.own, *self.writes)))

    def narrowed(self, scope: str) -> Scopes:
        """Those of one person: written is his or her scope alone, read these too."""
        self.check_shared()
        return Scopes(own=scope, reads=self.readable)

    def check_shared(self) -> None:
        """Checks that none of these is a person's, so that everybody's agent may read them.

        Raises:
            ConfigurationError: If one is.
        """
        person = next(filter(is_user_scope, self.readable), None)
        if person is not None:
            raise ConfigurationError(
                "A memory that keeps people apart reads no person's scope by itself, and this one "
                f"reads {person!r}. Give the memory the agent's own scope."
            )

    def to_write(self, scope: str | None) -> str:
        """The scope that a call names, or its own.

        Raises:
            ValueError: If it may not be written.
        """
        if scope is None:
            return self.own
        if scope not in self.writable:
            known = ", ".join(map(repr, self.writable))
            raise ValueError(
                f"Scope {scope!r} may not be written here, only: {known}. "
                "Name it in the `writes` of the memory's Scopes."
            )
        return scope


_PERSON = "person"
"""The kind of source that a person is who writes into a memory."""


def said_by_person(name: str = _PERSON) -> Provenance:
    """The origin of what a person writes into a memory: a user's word, said in no run."""
    return Provenance(
        run="", activity="", cycle=0, source=name, source_kind=_PERSON, trust=Trust.USER
    )
