"""A store in Chroma: records in collections, their words in a file beside them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from coag.errors import ConfigurationError, RecordStoreError
from coag.schema import MemoryKind, RecalledRecord, Record

from .chroma_client import (
    ROW_PARTS,
    Client,
    Collection,
    check_collection,
    chroma_errors,
    client_at,
    close_client,
    collection_name,
    collection_named,
    is_made_with,
    make_collection,
    metadata_of,
    write_lock,
)
from .embedders import Embedder, QueryVectors, score_of, text_vectors
from .embedders_by_name import embedder_of
from .filters import EVERYTHING, Condition
from .indexed import WRITTEN, IndexedStore, Vectors
from .location import Server, check_folder, parse_location
from .records import StoredRow, flat_fields, from_json, portions, slices
from .search import Search

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_T = TypeVar("_T")
_RECORD = "record"
"""Metadata field that holds everything of a record but its text, as JSON."""
_SPARE = 10
"""How many more neighbours than k are asked for, so that ties at the end break as they should."""
_BATCH = 1000
"""At most this many records are read or removed in one call."""
_WRITTEN_AT_ONCE = 250
"""At most this many records are written in one call; Chroma's own limit may be lower.

An embedded Chroma (1.5.9) keeps all of Python waiting while it writes, the event loop too: some
0.2 s for so many. More in a call make it no faster.
"""
_BATCH_BYTES = 8_000_000
"""About the largest request; a Chroma server refuses 40 MB (as it is set up by default)."""
_BYTES_PER_NUMBER = 22


class ChromaStore(IndexedStore):
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
        self._location = parse_location(location)
        table = _ChromaTable(self._location, embedder_of(embedder), collection, timeout)
        super().__init__(table, self.words_file)

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
        await store._do(store._open_words)
        return store

    async def _run(self, work: Callable[[], _T], *, embeds: bool = False) -> _T:
        """Chroma's calls block, so all work runs in a thread, within the time-out."""
        try:
            async with asyncio.timeout(self.timeout):
                return await asyncio.to_thread(work)
        except TimeoutError as error:
            raise RecordStoreError(
                f"Chroma at {self._location} did not answer within {self.timeout:g} s."
            ) from error


class _ChromaTable:
    """Records in two collections, episodic and semantic; as `IndexedStore` wants it."""

    def __init__(
        self, location: Path | Server, embedder: Embedder, collection: str, seconds: float
    ) -> None:
        self.embedder = embedder
        self.shared = isinstance(location, Server)
        self.writing = write_lock(location)
        """Held while something is written, by all stores of this process at this place."""
        self._location = location
        self._queries = QueryVectors(embedder)
        self._collection = collection
        self._seconds = seconds
        self._client: Client | None = None
        self._collections: dict[MemoryKind, Collection] = {}
        self._closed = False

    def connect(self) -> Client:
        with self.writing:
            if self._closed:
                raise RecordStoreError(f"The store at {self._location} was closed.")
            if self._client is None:
                self._client = self._opened()
            return self._client

    def vectors(self, rows: Sequence[StoredRow]) -> Vectors:
        """None: they are made batch by batch, while the rows are written."""
        return {}

    def known(self, ids: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for batch in slices(ids, _BATCH):
            for kind in MemoryKind:
                found.update(self._call(kind, "get", ids=batch, include=[])["ids"])
        return found

    def add(self, rows: Sequence[StoredRow], vectors: Vectors) -> None:
        for kind, batch in self._batches(rows):
            self._write(kind, "add", batch)

    def upsert(self, rows: Sequence[StoredRow], vectors: Vectors) -> None:
        """In one call, which Chroma takes whole or not at all."""
        self._write(rows[0].record.kind, "upsert", rows)

    def update(self, rows: Sequence[StoredRow], stored: Mapping[str, Record]) -> None:
        """Chroma keeps metadata keys that are not given, so those to be removed are named."""
        for kind, batch in self._batches(rows):
            gone = [dict.fromkeys(flat_fields(stored[row.record.id])) for row in batch]
            new = [{**old, **_metadata(row)} for old, row in zip(gone, batch, strict=True)]
            self._call(kind, "update", ids=[row.record.id for row in batch], metadatas=new)
            self._check_current(kind)

    def get(self, ids: Sequence[str], kind: MemoryKind | None = None) -> dict[str, Record]:
        found: dict[str, Record] = {}
        for batch in slices(ids, _BATCH):
            for one in MemoryKind if kind is None else (kind,):
                found.update({record.id: record for record in self._got(one, ids=batch)})
        return found

    def all(self, kind: MemoryKind, condition: Condition) -> list[Record]:
        return self._got(kind, where=condition.where)

    def ids(self, kind: MemoryKind, condition: Condition = EVERYTHING) -> list[str]:
        return self._call(kind, "get", where=condition.where, include=[])["ids"]

    def similar(self, search: Search, condition: Condition, minimum: float) -> list[RecalledRecord]:
        """Chroma's own filters take time in proportion to the collection.

        So the nearest of all are asked for first, and the filter is left to Chroma only if too
        few of them pass.
        """
        vector = self._queries.of(search.text or "")
        if vector is None:
            return []
        wanted = search.k + _SPARE
        nearest = self._recalled(search.kind, vector, 2 * wanted)
        passing = [hit for hit in nearest if condition.matches(flat_fields(hit.record))]
        all_seen = len(nearest) < 2 * wanted or nearest[-1].score < minimum
        if condition.where is not None and len(passing) < wanted and not all_seen:
            passing = self._recalled(search.kind, vector, wanted, condition)
        return [hit for hit in passing if hit.score >= minimum]

    def nearest(
        self, kind: MemoryKind, text: str, count: int, condition: Condition = EVERYTHING
    ) -> dict[str, float]:
        vector = self._queries.of(text)
        if vector is None:
            return {}
        answer = self._query(kind, vector, count, condition, ["distances"])
        scored = zip(answer["ids"][0], answer["distances"][0], strict=True)
        return {one: score_of(1.0 - distance) for one, distance in scored}

    def count(self, kind: MemoryKind) -> int:
        return self._call(kind, "count")

    def delete(self, ids: Sequence[str]) -> None:
        for batch in slices(ids, _BATCH):
            for kind in MemoryKind:
                self._call(kind, "delete", ids=batch)
                self._check_current(kind)

    def close(self) -> None:
        """The last one of a folder closes its files."""
        with self.writing:
            client, self._client, self._closed = self._client, None, True
            if client is not None:
                close_client(client)

    def _opened(self) -> Client:
        check_folder(self._location)
        with chroma_errors(self._location):
            client = client_at(self._location, self._seconds)
        try:
            self._collections = {kind: self._open_collection(client, kind) for kind in MemoryKind}
        except (RecordStoreError, ConfigurationError):
            close_client(client)
            raise
        return client

    def _open_collection(self, client: Client, kind: MemoryKind) -> Collection:
        name = collection_name(self._collection, kind)
        with chroma_errors(self._location):
            found = collection_named(client, name)
            # looked for after what it may replace
            names = (collection_name(self._collection, one, ".next") for one in MemoryKind)
            begun = next(filter(None, (collection_named(client, one) for one in names)), None)
        if begun is not None and not is_made_with(found, self.embedder):
            raise ConfigurationError(
                f"The store at {self._location} is being re-embedded for embedder "
                f"{metadata_of(begun).get('embedder')!r}, and that was not completed. "
                "Complete it with this embedder: `coag memory reembed`."
            )
        if found is None:
            with chroma_errors(self._location):
                found = make_collection(client, name, self.embedder)
        check_collection(found, self.embedder)
        return found

    def _check_current(self, kind: MemoryKind) -> None:
        """Called after a write: one into a collection that was replaced is not acknowledged."""
        client = self.connect()
        with chroma_errors(self._location):
            current = collection_named(client, collection_name(self._collection, kind))
        if current is None or current.id != self._collections[kind].id:
            raise RecordStoreError(
                f"The store at {self._location} was re-embedded while it was open here, so that "
                "this write may be lost. Open it again, with the new embedder, and repeat the "
                "write."
            )

    def _batches(self, rows: Sequence[StoredRow]) -> Iterator[tuple[MemoryKind, list[StoredRow]]]:
        """Records in calls that Chroma takes: so many at most, and about so many bytes of JSON."""
        with chroma_errors(self._location):
            most = min(_WRITTEN_AT_ONCE, self.connect().get_max_batch_size())
        vector = self.embedder.dimension * _BYTES_PER_NUMBER

        def size(row: StoredRow) -> int:
            return vector + 2 * (len(row.record.text) + len(row.rest))

        for kind in MemoryKind:
            of_kind = (row for row in rows if row.record.kind is kind)
            for batch in portions(of_kind, size, most=most, room=_BATCH_BYTES):
                yield kind, batch

    def _write(self, kind: MemoryKind, method: str, rows: Sequence[StoredRow]) -> None:
        texts = [row.record.text for row in rows]
        self._call(
            kind,
            method,
            ids=[row.record.id for row in rows],
            embeddings=text_vectors(self.embedder, texts).tolist(),
            documents=texts,
            metadatas=list(map(_metadata, rows)),
        )
        self._check_current(kind)

    def _got(self, kind: MemoryKind, **what: Any) -> list[Record]:
        rows = self._call(kind, "get", **what, include=ROW_PARTS)
        return _records(rows["documents"], rows["metadatas"])

    def _recalled(
        self,
        kind: MemoryKind,
        vector: NDArray[np.float32],
        count: int,
        condition: Condition = EVERYTHING,
    ) -> list[RecalledRecord]:
        answer = self._query(kind, vector, count, condition, [*ROW_PARTS, "distances"])
        records = _records(answer["documents"][0], answer["metadatas"][0])
        return [
            RecalledRecord(record=record, score=score_of(1.0 - distance))
            for record, distance in zip(records, answer["distances"][0], strict=True)
        ]

    def _query(
        self,
        kind: MemoryKind,
        vector: NDArray[np.float32],
        count: int,
        condition: Condition,
        include: list[str],
    ) -> Any:
        return self._call(
            kind,
            "query",
            query_embeddings=[vector.tolist()],
            n_results=count,
            where=condition.where,
            include=include,
        )

    def _call(self, kind: MemoryKind, method: str, **arguments: Any) -> Any:
        with chroma_errors(self._location):
            return getattr(self._collections[kind], method)(**arguments)


def _metadata(row: StoredRow) -> dict[str, Any]:
    """A row's metadata as Chroma keeps it."""
    return {**row.flat, _RECORD: row.rest, WRITTEN: time.time()}


def _records(documents: Sequence[str], metadatas: Sequence[Mapping[str, Any]]) -> list[Record]:
    """The records that Chroma's rows were made of."""
    pairs = zip(documents, metadatas, strict=True)
    return [from_json(document, metadata[_RECORD]) for document, metadata in pairs]
