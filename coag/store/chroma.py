"""Records in a real Chroma: a folder on disk, or a server. The one module that knows chromadb.

Chroma's calls block in native code and importing it takes most of a second, so everything here
runs in worker threads, from the first use on; `ChromaStore` sees to that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from coag.errors import ConfigurationError, RecordStoreError
from coag.schema import MemoryKind, RecalledRecord, Record

from ._chroma_types import (
    ROW_PARTS,
    Client,
    Collection,
    batches,
    check_collection,
    records_of,
    rows_of,
)
from ._chroma_where import ChromaWhere, chroma_where
from ._embedders import Embedder
from ._fields import flat_fields
from ._filters import Condition
from ._location import Server
from ._search import Search
from ._supersession import superseded_pair
from ._vectors import QueryVectors, score_of, text_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_SPARE = 10
"""How many more neighbours than k are asked for, so that ties at the end break as they should."""

_BATCH = 1000
"""At most this many records in one call; Chroma's own limit may be lower."""

_BATCH_BYTES = 8_000_000
"""About the largest request; a Chroma server refuses 40 MB (as it is set up by default)."""

_INDEX = {
    "hnsw": {"space": "cosine", "max_neighbors": 32, "ef_construction": 200, "ef_search": 200}
}
"""Frozen when a collection is made; denser than Chroma's default, to miss fewer neighbours."""


class ChromaCollections:
    """The two collections of one Chroma. Every method blocks: call it in a worker thread."""

    def __init__(self, location: Path | Server, embedder: Embedder, collection: str) -> None:
        self._location = location
        self._embedder = embedder
        self._queries = QueryVectors(embedder)
        self._collection = collection
        self._client: Client | None = None
        self._collections: dict[MemoryKind, Collection] = {}
        self._closed = False
        self._writing = _write_lock(location)

    def connect(self) -> Client:
        """Opens client and collections unless they are open."""
        with self._writing:
            if self._closed:
                raise RecordStoreError(f"The store at {self._location} was closed.")
            if self._client is None:
                self._client = self._opened()
            return self._client

    def _opened(self) -> Client:
        with _chroma_errors(self._location):
            client = _client(self._location)
        try:
            self._collections = {kind: self._open_collection(client, kind) for kind in MemoryKind}
        except (RecordStoreError, ConfigurationError):
            _close(client)
            raise
        return client

    def _open_collection(self, client: Client, kind: MemoryKind) -> Collection:
        name = f"{self._collection}-{kind.value}"
        ours = {"embedder": self._embedder.name, "dimension": self._embedder.dimension}
        with _chroma_errors(self._location):
            collection = _get_or_create(client, name, ours)
        check_collection(collection, name, ours)
        return collection

    def add(self, records: Sequence[Record]) -> list[str]:
        """Stores the records that are not there yet, in batches; gives their ids."""
        client = self.connect()
        with self._writing:
            known = self.get([record.id for record in records])
            new = [record for record in records if record.id not in known]
            with _chroma_errors(self._location):
                size = min(_BATCH, client.get_max_batch_size())
            for kind in MemoryKind:
                rows = [record for record in new if record.kind is kind]
                for batch in batches(rows, size, _BATCH_BYTES, self._embedder.dimension):
                    self._write(self._collections[kind].add, batch)
        return [record.id for record in new]

    def supersede(self, old_id: str, new: Record) -> Record:
        """Writes both records in one call, which Chroma takes as a whole or not at all."""
        self.connect()
        with self._writing:
            known = self.get([old_id, new.id])
            pair = superseded_pair(old_id, known.get(old_id), new, known.get(new.id))
            if pair != (known.get(old_id), known.get(new.id)):
                self._write(self._collections[new.kind].upsert, pair)
        return pair[1]

    def get(self, ids: Sequence[str]) -> dict[str, Record]:
        """The records with these ids, by id, from both collections."""
        self.connect()
        found: dict[str, Record] = {}
        unique = list(dict.fromkeys(ids))
        for start in range(0, len(unique), _BATCH):
            batch = unique[start : start + _BATCH]
            for kind in MemoryKind:
                found.update({record.id: record for record in self._got(kind, ids=batch)})
        return found

    def all(self, kind: MemoryKind, where: ChromaWhere | None) -> list[Record]:
        """Every record that passes."""
        self.connect()
        return self._got(kind, where=where)

    def similar(self, search: Search, condition: Condition, minimum: float) -> list[RecalledRecord]:
        """At least the k nearest records that pass, with their scores.

        Chroma's own filters take time in proportion to the collection, so the nearest of all
        are asked for first, and the filter is left to Chroma only if too few of them pass.
        """
        self.connect()
        vector = self._queries.of(cast("str", search.text))
        if vector is None:
            return []
        wanted = search.k + _SPARE
        nearest = self._nearest(search.kind, vector, 2 * wanted, None)
        passing = [hit for hit in nearest if condition.matches(flat_fields(hit.record))]
        all_seen = len(nearest) < 2 * wanted or nearest[-1].score < minimum
        where = chroma_where(condition)
        if where is not None and len(passing) < wanted and not all_seen:
            passing = self._nearest(search.kind, vector, wanted, where)
        return [hit for hit in passing if hit.score >= minimum]

    def _nearest(
        self, kind: MemoryKind, vector: NDArray[np.float32], count: int, where: ChromaWhere | None
    ) -> list[RecalledRecord]:
        with _chroma_errors(self._location):
            answer = self._collections[kind].query(
                query_embeddings=[vector.tolist()],
                n_results=count,
                where=where,
                include=[*ROW_PARTS, "distances"],
            )
        records = records_of(answer["documents"][0], answer["metadatas"][0])
        return [
            RecalledRecord(record=record, score=score_of(1.0 - distance))
            for record, distance in zip(records, answer["distances"][0], strict=True)
        ]

    def count(self, kind: MemoryKind) -> int:
        """How many records the collection holds."""
        self.connect()
        with _chroma_errors(self._location):
            return self._collections[kind].count()

    def forget(self, scope: str) -> int:
        """Deletes the records of a scope from both collections, in batches."""
        self.connect()
        gone = 0
        with self._writing:
            for kind in MemoryKind:
                ids = [record.id for record in self._got(kind, where={"scope": scope})]
                for start in range(0, len(ids), _BATCH):
                    with _chroma_errors(self._location):
                        self._collections[kind].delete(ids=ids[start : start + _BATCH])
                gone += len(ids)
        return gone

    def close(self) -> None:
        """Closes the client; the last one of a folder lets go of its files."""
        with self._writing:
            client, self._client, self._closed = self._client, None, True
            if client is not None:
                _close(client)

    def _got(self, kind: MemoryKind, **what: Any) -> list[Record]:
        with _chroma_errors(self._location):
            rows = self._collections[kind].get(**what, include=list(ROW_PARTS))
        return records_of(rows["documents"], rows["metadatas"])

    def _write(self, call: Callable[..., None], records: Sequence[Record]) -> None:
        vectors = text_vectors(self._embedder, [record.text for record in records])
        with _chroma_errors(self._location):
            call(**rows_of(records, vectors))


@cache
def _write_lock(_location: Path | Server) -> threading.RLock:
    """One lock per place for all stores of this process, which may share its client."""
    return threading.RLock()


def _client(location: Path | Server) -> Client:
    import chromadb
    from chromadb.config import Settings

    settings = Settings(anonymized_telemetry=False)
    if isinstance(location, Server):
        client = chromadb.HttpClient(
            host=location.host, port=location.port, ssl=location.secure, settings=settings
        )
    else:
        location.mkdir(parents=True, exist_ok=True)
        client = chromadb.PersistentClient(path=location, settings=settings)
    return cast("Client", client)


def _close(client: Client) -> None:
    """Closes the client and, for a server, the connections that Chroma leaves open (1.5.9).

    Older clients (1.5.0) cannot be closed; their files go with the process.
    """
    halves = (client, getattr(client, "_admin_client", None))
    servers = [getattr(half, "_server", None) for half in halves]
    getattr(client, "close", lambda: None)()
    for session in (getattr(server, "_session", None) for server in servers):
        if session is not None:
            session.close()


def _get_or_create(client: Client, name: str, metadata: dict[str, Any]) -> Collection:
    """The collection; another process may make it between our look and our try."""
    from chromadb.errors import ChromaError, NotFoundError

    try:
        return client.get_collection(name, embedding_function=None)
    except NotFoundError:
        pass
    try:
        return client.create_collection(
            name, configuration=_INDEX, metadata=metadata, embedding_function=None
        )
    except ChromaError:
        return client.get_collection(name, embedding_function=None)


@contextmanager
def _chroma_errors(location: Path | Server) -> Generator[None]:
    """Turns whatever Chroma, its server or the disk raise into our error.

    Chroma's client raises ChromaError, ValueError, httpx errors and, for an answer that it does
    not understand, a bare Exception.
    """
    try:
        yield
    except Exception as error:
        raise RecordStoreError(f"Chroma at {location}: {error}") from error
