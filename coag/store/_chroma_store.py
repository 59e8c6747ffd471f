"""The face of records in Chroma: async, over calls that block."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from coag.errors import RecordStoreError
from coag.schema import MemoryKind, RecalledRecord, Record

from ._changes import scanned
from ._chroma_where import chroma_where
from ._embedders import Embedder
from ._fields import flat_fields
from ._filters import condition_of
from ._indexed import IndexedChroma
from ._location import parse_location
from ._named import embedder_of
from ._order import listed, ranked
from ._search import Search
from .chroma import ChromaCollections

_T = TypeVar("_T")


class ChromaStore:
    """Records in two collections of one Chroma, episodic and semantic.

    Opens itself at its first use; `await ChromaStore.open(...)` opens at once, so that errors
    come early. The same folder may be opened several times within one process; between
    processes use a server.

    Args:
        location: A folder, made if it is missing, or the address of a Chroma server
            (`http://host:port`).
        embedder: None for `WordLlamaEmbedder`; it may be given by its name, see `embedder_of`.
            Its name and dimension are kept with the collections and compared at opening.
        collection: Beginning of the collections' names.
        timeout: Seconds after which an operation is given up.

    Raises:
        ConfigurationError: If the location is an address, but not of an HTTP server, or there is
            no embedder of that name.
    """

    def __init__(
        self,
        location: Path | str,
        embedder: Embedder | str | None = None,
        *,
        collection: str = "coag",
        timeout: float = 60.0,
    ) -> None:
        self.given_location = location
        """The folder or address as it was given."""
        self.collection = collection
        self.timeout = timeout
        self.embedder: Embedder = embedder_of(embedder)
        self._location = parse_location(location)
        chroma = ChromaCollections(self._location, self.embedder, collection)
        words = self.words_file
        self._indexed = IndexedChroma(chroma, words, shared=words is None)

    @property
    def words_file(self) -> Path | None:
        """The file of the index of words; None for a server, whose words are kept in RAM."""
        if isinstance(self._location, Path):
            return self._location / f"{self.collection}-words.sqlite3"
        return None

    @property
    def location(self) -> str:
        """Where it is, the same however it was given: an absolute path or an address."""
        return str(self._location)

    @classmethod
    async def open(
        cls,
        location: Path | str,
        embedder: Embedder | str | None = None,
        *,
        collection: str = "coag",
    ) -> ChromaStore:
        """Opens the store now.

        Raises:
            ConfigurationError: As for the class.
            EmbedderMismatchError: If its collections were made with another embedder.
            RecordStoreError: If it cannot be opened.
        """
        store = cls(location, embedder, collection=collection)
        await store._in_thread(store._indexed.connect)
        return store

    async def add(self, records: Sequence[Record]) -> list[str]:
        """See `RecordStore.add`."""
        return await self._in_thread(self._indexed.add, list(records))

    async def supersede(self, old_id: str, new: Record) -> Record:
        """See `RecordStore.supersede`."""
        flat_fields(new)
        return await self._in_thread(self._indexed.supersede, old_id, new)

    async def update(self, records: Sequence[Record]) -> list[Record]:
        """See `RecordStore.update`."""
        return await self._in_thread(self._indexed.update, list(records))

    async def get(self, ids: Sequence[str]) -> list[Record]:
        """See `RecordStore.get`."""
        found = await self._in_thread(self._indexed.chroma.get, list(ids))
        return [found[record_id] for record_id in ids if record_id in found]

    async def search(self, search: Search) -> list[RecalledRecord]:
        """See `RecordStore.search`."""
        condition = condition_of(search)
        if search.is_empty:
            return []
        if search.text is None:
            where = chroma_where(condition)
            return listed(
                await self._in_thread(self._indexed.chroma.all, search.kind, where), search.k
            )
        if search.ranking is not None:
            least = self.embedder.minimum_similarity
            return await self._in_thread(
                self._indexed.recall, search, search.ranking, condition, least
            )
        hits = await self._in_thread(
            self._indexed.chroma.similar, search, condition, self._minimum(search)
        )
        return ranked(hits, search.k)

    async def count(self, kind: MemoryKind) -> int:
        """See `RecordStore.count`."""
        return await self._in_thread(self._indexed.chroma.count, kind)

    async def scan(
        self,
        *,
        kind: MemoryKind | None = None,
        scopes: Sequence[str] | None = None,
        batch: int = 500,
    ) -> AsyncIterator[list[Record]]:
        """See `RecordStore.scan`."""
        kinds, condition = scanned(kind, scopes, batch)
        for one in kinds:
            ids = await self._in_thread(self._indexed.chroma.ids, one, condition)
            for start in range(0, len(ids), batch):
                if records := await self.get(ids[start : start + batch]):
                    yield records

    async def delete(self, ids: Sequence[str]) -> list[str]:
        """See `RecordStore.delete`."""
        return await self._in_thread(self._indexed.delete, list(ids))

    async def forget(self, scope: str) -> int:
        """See `RecordStore.forget`."""
        return await self._in_thread(self._indexed.forget, scope)

    async def close(self) -> None:
        """See `RecordStore.close`."""
        await self._in_thread(self._indexed.close)

    def _minimum(self, search: Search) -> float:
        if search.min_score is None:
            return self.embedder.minimum_similarity
        return search.min_score

    async def _in_thread(self, work: Callable[..., _T], *arguments: Any) -> _T:
        try:
            async with asyncio.timeout(self.timeout):
                return await asyncio.to_thread(work, *arguments)
        except TimeoutError as error:
            raise RecordStoreError(
                f"Chroma at {self._location} did not answer within {self.timeout:g} s."
            ) from error
