"""A store around another, for those that change a part of what it does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from coag.schema import MemoryKind, RecalledRecord, Record

from ._protocol import RecordStore
from ._search import Search


class Wrapping(Protocol):
    """Puts a store around another one."""

    def __call__(self, store: RecordStore, /) -> WrappedStore:
        """The store around this one."""
        ...


class WrappedStore:
    """Hands everything on to another store; what shall differ is overridden.

    Args:
        store: The other one; closed by `close`.
    """

    def __init__(self, store: RecordStore) -> None:
        self.store = store

    def wrapping(self) -> Wrapping | None:
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
