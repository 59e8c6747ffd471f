"""Records of a memory: whose they are, which are on one matter, and drafts of several."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from types import TracebackType
from typing import Protocol
from weakref import WeakKeyDictionary, WeakValueDictionary

from pydantic import Field

from coag.errors import ConfigurationError
from coag.schema import MemoryKind, Provenance, Record, Trust, Value, record_id
from coag.store import ChromaStore, RecordStore, Search, WrappedStore, folded, superseded_pair

from .facts import is_matter

# ---- One writer at a time for each place where records rest ----


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


# ---- Whose memories one memory reads and writes ----


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
    """The scopes of all records of a store, each once.

    Raises:
        RecordStoreError: If the store cannot be reached.
    """
    found: dict[str, None] = {}
    async for records in store.scan():
        found |= dict.fromkeys(record.scope for record in records)
    return tuple(found)


class Scopes(Value):
    """Whose records a memory may read and write; no others exist for it."""

    own: str
    """Where it writes unless told otherwise."""
    reads: tuple[str, ...] = Field(default=())
    """Further scopes that it reads."""
    writes: tuple[str, ...] = Field(default=())
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
        """Those of one person: written is his or her scope alone, read these too.

        Raises:
            ConfigurationError: If a person's scope is among these.
        """
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
        """The scope that a call means.

        Args:
            scope: The one that it names; None for its own.

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


# ---- The origin of what a person says ----


_PERSON = "person"
"""The kind of source that a person is who writes into a memory."""


def said_by_person(name: str = _PERSON) -> Provenance:
    """The origin of what a person writes into a memory: a user's word, said in no run.

    Args:
        name: Who it is.
    """
    return Provenance(
        run="", activity="", cycle=0, source=name, source_kind=_PERSON, trust=Trust.USER
    )


# ---- The records as whoever writes them sees them ----


_NEAREST = 3
_ALIKE = 0.5
"""Similarity that two texts which differ in nothing but form surely have."""
_ON_MATTER = 200
"""Current facts on one matter that are looked at; there is one, or a few that contradict."""

EVERYTHING = 1_000_000_000
"""More records than there are."""

Matter = tuple[MemoryKind, str, str, str]
"""Kind, scope, subject and attribute, the last two folded."""


class Records(Protocol):
    """What the rules of writing ask for and change."""

    async def get(self, ids: Sequence[str]) -> list[Record]:
        """Those of these that there are."""
        ...

    async def add(self, records: Sequence[Record]) -> object:
        """Stores records whose ids are new."""
        ...

    async def supersede(self, old_id: str, new: Record) -> Record:
        """Stores a record in the place of another."""
        ...

    async def update(self, records: Sequence[Record]) -> object:
        """Writes over all but id, kind, scope and text."""
        ...

    async def on_matter(self, record: Record) -> list[Record]:
        """The other current facts of the scope on the matter of a record."""
        ...

    async def all_on_matter(self, record: Record) -> list[Record]:
        """The same, and those that were superseded."""
        ...

    async def nearest(self, record: Record) -> list[Record]:
        """The current records of the scope that are most similar to it, a few."""
        ...


class StoredRecords:
    """The records of a store, each asked for and changed at once.

    Args:
        store: Where they rest.
    """

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self.get = store.get
        self.add = store.add
        self.supersede = store.supersede
        self.update = store.update

    async def on_matter(self, record: Record) -> list[Record]:
        """The other current facts of the scope on the matter of a record."""
        return await self._on_matter(record, _ON_MATTER, every=False)

    async def all_on_matter(self, record: Record) -> list[Record]:
        """The same, and those that were superseded."""
        return await self._on_matter(record, EVERYTHING, every=True)

    async def _on_matter(self, record: Record, k: int, *, every: bool) -> list[Record]:
        matter = matter_asked(record)
        if matter is None:
            return []
        kind, scope, subject, attribute = matter
        search = Search(
            text=None,
            kind=kind,
            k=k,
            scopes=(scope,),
            where={"subject": subject, "attribute": attribute},
            include_superseded=every,
        )
        hits = await self._store.search(search)
        return [hit.record for hit in hits if hit.record.id != record.id]

    async def nearest(self, record: Record) -> list[Record]:
        """The current records of the scope that are most similar to it, a few."""
        search = Search(
            text=record.text,
            kind=record.kind,
            k=_NEAREST,
            scopes=(record.scope,),
            min_score=_ALIKE,
        )
        return [hit.record for hit in await self._store.search(search)]


def matter_of(record: Record) -> Matter | None:
    """On what a record's fact is; None for a record without one, or of no property."""
    fact = record.fact
    attribute = "" if fact is None else folded(fact.attribute)
    if fact is None or not attribute:
        return None
    return (record.kind, record.scope, folded(fact.subject), attribute)


def matter_asked(record: Record) -> Matter | None:
    """On what others may say otherwise than a record; None if nothing can."""
    asks = record.kind is MemoryKind.SEMANTIC and is_matter(record.fact)
    return matter_of(record) if asks else None


def in_other_memory(record: Record) -> str:
    """The id that a record's text has as an event if it is a fact, and as a fact otherwise."""
    (kind,) = set(MemoryKind) - {record.kind}
    return record_id(kind, record.scope, record.text)


# ---- Many writes drafted over what is stored, then carried out at once ----


_MATTERS = 100
"""So many matters are asked for at once."""


class Draft:
    """The records as they will stand; nothing is stored before `carry_out`.

    Whatever is asked for and was not looked up before is looked up then.

    Args:
        store: Where the records rest.
    """

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._stored: dict[str, Record] = {}
        self._now: dict[str, Record | None] = {}
        """Each record that was looked up or written; None for one that is not there."""
        self._asked: set[Matter] = set()
        """The matters on which all current records are known."""
        self._on: dict[Matter, dict[str, None]] = {}
        """Ids of the records that are known, by their matter."""

    async def look_up(self, ids: Iterable[str]) -> None:
        """Learns which of these records there are, in one question."""
        wanted = [one for one in dict.fromkeys(ids) if one not in self._now]
        if not wanted:
            return
        found = {record.id: record for record in await self._store.get(wanted)}
        for one in wanted:
            self._now[one] = None
            if one in found:
                self._learn(found[one])

    async def look_up_matters(self, records: Iterable[Record]) -> None:
        """Learns what holds on the matters of these records, in few questions."""
        asked = {matter for record in records if (matter := matter_asked(record)) is not None}
        for some in _together(asked - self._asked):
            kind, scope, _, _ = some[0]
            search = Search(
                text=None,
                kind=kind,
                k=EVERYTHING,
                scopes=(scope,),
                where={
                    "subject": {"$in": sorted({subject for _, _, subject, _ in some})},
                    "attribute": {"$in": sorted({attribute for *_, attribute in some})},
                },
            )
            hits = await self._store.search(search)
            for hit in hits:
                self._learn(hit.record)
            self._asked.update(some)

    async def get(self, ids: Sequence[str]) -> list[Record]:
        """See `Records.get`."""
        await self.look_up(ids)
        found = (self._now[one] for one in ids)
        return [record for record in found if record is not None]

    async def add(self, records: Sequence[Record]) -> None:
        """See `Records.add`."""
        await self.look_up(record.id for record in records)
        for record in records:
            if self._now[record.id] is None:
                self._put(record)

    async def supersede(self, old_id: str, new: Record) -> Record:
        """See `Records.supersede`."""
        await self.look_up((old_id, new.id))
        pair = superseded_pair(old_id, self._now[old_id], new, self._now[new.id])
        for record in pair:
            self._put(record)
        return pair[1]

    async def update(self, records: Sequence[Record]) -> None:
        """See `Records.update`."""
        for record in records:
            self._put(record)

    async def on_matter(self, record: Record) -> list[Record]:
        """See `Records.on_matter`."""
        matter = matter_asked(record)
        if matter is None:
            return []
        await self.look_up_matters([record])
        found = (self._now[name] for name in self._on.get(matter, {}) if name != record.id)
        return [one for one in found if one is not None and one.superseded_by is None]

    async def all_on_matter(self, record: Record) -> list[Record]:
        """See `Records.all_on_matter`."""
        matter = matter_asked(record)
        if matter is None:
            return []
        for one in await StoredRecords(self._store).all_on_matter(record):
            self._learn(one)
        found = (self._now[name] for name in self._on.get(matter, {}) if name != record.id)
        return [one for one in found if one is not None]

    async def nearest(self, record: Record) -> list[Record]:
        """None: in a draft, records are not compared by their likeness."""
        del record
        return []

    async def carry_out(self) -> None:
        """Stores what is new, then what changed of what was there.

        Raises:
            RecordStoreError: If the store refuses or cannot be reached; a part may be stored.
        """
        held = [record for record in self._now.values() if record is not None]
        new = [record for record in held if record.id not in self._stored]
        changed = [r for r in held if r.id in self._stored and r != self._stored[r.id]]
        if new:
            await self._store.add(new)
        if changed:
            await self._store.update(changed)

    def _learn(self, record: Record) -> None:
        """Takes in a record as it is stored, unless it was changed here."""
        self._stored.setdefault(record.id, record)
        if self._now.get(record.id) is None:
            self._put(record)

    def _put(self, record: Record) -> None:
        if record.id in self._now and self._now[record.id] is None:
            del self._now[record.id]  # in the order in which they came
        self._now[record.id] = record
        matter = matter_of(record)
        if matter is not None:
            self._on.setdefault(matter, {})[record.id] = None


def _together(matters: Iterable[Matter]) -> Iterator[list[Matter]]:
    """Matters of one kind and scope, those of one attribute beside each other."""
    ordered = sorted(matters, key=lambda one: (one[0], one[1], one[3], one[2]))
    for _, group in groupby(ordered, key=lambda one: one[:2]):
        same = list(group)
        for start in range(0, len(same), _MATTERS):
            yield same[start : start + _MATTERS]
