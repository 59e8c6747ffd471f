"""The records as whoever writes them sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from coag.schema import MemoryKind, Record, record_id
from coag.store import RecordStore, Search, folded

from ._facts import is_matter

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
