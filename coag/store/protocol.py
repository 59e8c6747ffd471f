"""The protocol of record stores, and a store around a store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from coag.schema import MemoryKind, RecalledRecord, Record

from .embedders import Embedder
from .records import SHORT_ID_LENGTH, short_id
from .search import Search


class RecordStore(Protocol):
    """A place where records are stored and found again by similarity.

    The text of a record never changes: another text is another record, which may supersede it.
    What else is known of a record can be updated. Every method raises `RecordStoreError` if the
    store cannot be reached or was closed.
    """

    async def add(self, records: Sequence[Record]) -> list[str]:
        """Stores records; what is acknowledged survives the death of this process, if on disk.

        A record whose id is known already is left as it is, so that adding twice does no harm.

        Returns:
            The ids that were newly stored, in the order given.

        Raises:
            ValueError: If a record's metadata cannot be stored exactly.
        """
        ...

    async def supersede(self, old_id: str, new: Record) -> Record:
        """Stores `new` in the place of an older record, which stays and is marked, at once.

        If `new` was known and itself superseded, it becomes current again: its text holds again.
        Doing the same twice does no harm.

        Returns:
            The new record as it is stored, with `supersedes` set.

        Raises:
            RecordStoreError: If there is no such old record, or another one superseded it before,
                or the two differ in kind or scope.
        """
        ...

    async def update(self, records: Sequence[Record]) -> list[Record]:
        """Writes over everything of records but id, kind, scope and text.

        If one of them is refused, none is written. Of several with one id the last counts.

        Returns:
            The records as they are stored, in the order given.

        Raises:
            RecordStoreError: If there is no such record, or its kind, scope or text differ.
            ValueError: If a record's metadata cannot be stored exactly.
        """
        ...

    async def get(self, ids: Sequence[str]) -> list[Record]:
        """The records with these ids, in this order; unknown ids are left out."""
        ...

    async def search(self, search: Search) -> list[RecalledRecord]:
        """The most similar records, best first; equal scores newest first, then by id.

        Raises:
            ValueError: If the filter is malformed.
        """
        ...

    async def count(self, kind: MemoryKind) -> int:
        """How many records of this kind there are, superseded ones included."""
        ...

    def scan(
        self,
        *,
        kind: MemoryKind | None = None,
        scopes: Sequence[str] | None = None,
        batch: int = 500,
    ) -> AsyncIterator[list[Record]]:
        """Everything there is, superseded records too, some at a time.

        Episodic records come first, then semantic ones, each in the order in which they were
        first stored. Records that are written or removed meanwhile may come or not; no record
        comes twice. Only one batch of records, and the ids of all, are held in memory.

        Args:
            kind: None for both.
            scopes: Whose records; None for everyone's.
            batch: How many come at once, at most.

        Raises:
            ValueError: If `batch` is below 1, or `scopes` is empty.
        """
        ...

    async def delete(self, ids: Sequence[str]) -> list[str]:
        """Removes records for good, from every index; other records that name them stay so.

        Returns:
            The ids of those that were there, each once, in the order given.
        """
        ...

    async def forget(self, scope: str) -> int:
        """Removes every record of a scope for good, superseded ones too.

        Returns:
            How many there were.
        """
        ...

    async def close(self) -> None:
        """Releases files and connections; closing twice does no harm."""
        ...


class WrappedStore:
    """Passes everything on to another store; override what is to differ.

    Args:
        store: The other one; closed by `close`.
    """

    def __init__(self, store: RecordStore) -> None:
        self.store = store

    def wrapping(self) -> Callable[[RecordStore], WrappedStore] | None:
        """What puts such a store around another one, so that it can be written down.

        A class or function of a module, or an object of a pydantic model or a dataclass that can
        be called; see `coag.schema.Imported`. None where there is no such thing.
        """
        return None

    async def add(self, records: Sequence[Record]) -> list[str]:
        """See `RecordStore.add`."""
        return await self.store.add(records)

    async def supersede(self, old_id: str, new: Record) -> Record:
        """See `RecordStore.supersede`."""
        return await self.store.supersede(old_id, new)

    async def update(self, records: Sequence[Record]) -> list[Record]:
        """See `RecordStore.update`."""
        return await self.store.update(records)

    async def get(self, ids: Sequence[str]) -> list[Record]:
        """See `RecordStore.get`."""
        return await self.store.get(ids)

    async def search(self, search: Search) -> list[RecalledRecord]:
        """See `RecordStore.search`."""
        return await self.store.search(search)

    async def count(self, kind: MemoryKind) -> int:
        """See `RecordStore.count`."""
        return await self.store.count(kind)

    def scan(
        self,
        *,
        kind: MemoryKind | None = None,
        scopes: Sequence[str] | None = None,
        batch: int = 500,
    ) -> AsyncIterator[list[Record]]:
        """See `RecordStore.scan`."""
        return self.store.scan(kind=kind, scopes=scopes, batch=batch)

    async def delete(self, ids: Sequence[str]) -> list[str]:
        """See `RecordStore.delete`."""
        return await self.store.delete(ids)

    async def forget(self, scope: str) -> int:
        """See `RecordStore.forget`."""
        return await self.store.forget(scope)

    async def close(self) -> None:
        """See `RecordStore.close`."""
        await self.store.close()


def innermost(store: RecordStore) -> RecordStore:
    """The store that holds the records, through all the stores around it."""
    while isinstance(store, WrappedStore):
        store = store.store
    return store


def embedder_within(store: RecordStore) -> Embedder | None:
    """The embedder of a store, through the stores around it; None where it has none of ours."""
    return getattr(innermost(store), "embedder", None)


async def found_by_id(
    store: RecordStore, scopes: tuple[str, ...] | None, kinds: Sequence[MemoryKind], name: str
) -> list[Record]:
    """The records of these scopes whose id begins with a short id or a longer part of one."""
    if len(name) < SHORT_ID_LENGTH:
        return []
    where, found = {"short_id": short_id(name)}, list[Record]()
    for kind in kinds:
        search = Search(
            text=None, kind=kind, k=10, scopes=scopes, where=where, include_superseded=True
        )
        hits = await store.search(search)
        found += [hit.record for hit in hits if hit.record.id.startswith(name)]
    return found
