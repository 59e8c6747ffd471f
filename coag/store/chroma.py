"""Records in a real Chroma: a folder on disk, or a server.

Chroma's calls block in native code and importing it takes most of a second, so everything here
runs in worker threads, from the first use on; `ChromaStore` sees to that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from coag.errors import ConfigurationError, RecordStoreError
from coag.schema import MemoryKind, RecalledRecord, Record

from ._chroma_client import client_at, collection_named, filling, make_collection
from ._chroma_names import half_way, is_made_with, live_name, new_metadata, replaced
from ._chroma_types import (
    HIT_PARTS,
    ROW_PARTS,
    Client,
    Collection,
    batches,
    check_collection,
    chroma_errors,
    close_client,
    recalled_of,
    records_of,
    rewritten,
    rows_of,
    slices,
    write_lock,
)
from ._chroma_where import ChromaWhere, chroma_where
from ._embedders import Embedder
from ._fields import Row, flat_fields
from ._filters import Condition
from ._location import Server, check_folder
from ._search import Search
from ._vectors import QueryVectors, score_of, text_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
        self.writing = write_lock(location)
        """Held while something is written, by all stores of this process at this place."""

    def connect(self) -> Client:
        """Opens client and collections unless they are open."""
        with self.writing:
            if self._closed:
                raise RecordStoreError(f"The store at {self._location} was closed.")
            if self._client is None:
                self._client = self._opened()
            return self._client

    def _opened(self) -> Client:
        check_folder(self._location)
        with chroma_errors(self._location):
            client = client_at(self._location)
        try:
            self._collections = {kind: self._open_collection(client, kind) for kind in MemoryKind}
        except (RecordStoreError, ConfigurationError):
            close_client(client)
            raise
        return client

    def _open_collection(self, client: Client, kind: MemoryKind) -> Collection:
        name = live_name(self._collection, kind)
        with chroma_errors(self._location):
            found = collection_named(client, name)
            begun = filling(client, self._collection)  # looked for after what it may replace
        if begun is not None and not is_made_with(found, self._embedder):
            raise half_way(self._location, begun)
        with chroma_errors(self._location):
            metadata = new_metadata(self._embedder)
            collection = make_collection(client, name, metadata) if found is None else found
        check_collection(collection, self._embedder)
        return collection

    def _check_current(self, kind: MemoryKind) -> None:
        """Called after a write: one into a collection that was replaced is not acknowledged."""
        client = self.connect()
        with chroma_errors(self._location):
            current = collection_named(client, live_name(self._collection, kind))
        if current is None or current.id != self._collections[kind].id:
            raise replaced(self._location)

    def known(self, ids: Sequence[str]) -> set[str]:
        """Those of these ids of which there are records."""
        self.connect()
        found: set[str] = set()
        for batch in slices(ids, _BATCH):
            for kind in MemoryKind:
                with chroma_errors(self._location):
                    found.update(self._collections[kind].get(ids=batch, include=[])["ids"])
        return found

    def add(self, rows: Sequence[Row]) -> None:
        """Stores records whose ids are new, in batches."""
        with self.writing:
            for kind, batch in self._batches(rows):
                self._write(self._collections[kind].add, batch)
                self._check_current(kind)

    def update(self, rows: Sequence[Row], stored: Mapping[str, Record]) -> None:
        """Writes over all of records but their texts and vectors; `stored` is what there is."""
        with self.writing:
            for kind, batch in self._batches(rows):
                with chroma_errors(self._location):
                    self._collections[kind].update(**rewritten(batch, stored))
                self._check_current(kind)

    def _batches(self, rows: Sequence[Row]) -> Iterator[tuple[MemoryKind, list[Row]]]:
        client = self.connect()
        with chroma_errors(self._location):
            size = min(_WRITTEN_AT_ONCE, client.get_max_batch_size())
        for kind in MemoryKind:
            of_kind = (row for row in rows if row.record.kind is kind)
            for batch in batches(of_kind, size, _BATCH_BYTES, self._embedder.dimension):
                yield kind, batch

    def upsert(self, rows: Sequence[Row]) -> None:
        """Writes a few records of one kind in one call, which Chroma takes whole or not at all."""
        self.connect()
        kind = rows[0].record.kind
        with self.writing:
            self._write(self._collections[kind].upsert, rows)
            self._check_current(kind)

    def get(self, ids: Sequence[str], kind: MemoryKind | None = None) -> dict[str, Record]:
        """The records with these ids, by id; from both collections unless a kind is named."""
        self.connect()
        found: dict[str, Record] = {}
        for batch in slices(ids, _BATCH):
            for one in (kind,) if kind is not None else MemoryKind:
                found.update({record.id: record for record in self._got(one, ids=batch)})
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
        nearest = recalled_of(self._asked(search.kind, vector, n_results=2 * wanted))
        passing = [hit for hit in nearest if condition.matches(flat_fields(hit.record))]
        all_seen = len(nearest) < 2 * wanted or nearest[-1].score < minimum
        where = chroma_where(condition)
        if where is not None and len(passing) < wanted and not all_seen:
            passing = recalled_of(self._asked(search.kind, vector, n_results=wanted, where=where))
        return [hit for hit in passing if hit.score >= minimum]

    def nearest(
        self, kind: MemoryKind, text: str, count: int, condition: Condition | None = None
    ) -> dict[str, float]:
        """The ids of the records nearest in meaning, of those that pass, with their scores."""
        self.connect()
        vector = self._queries.of(text)
        if vector is None:
            return {}
        where = None if condition is None else chroma_where(condition)
        answer = self._asked(kind, vector, n_results=count, where=where, include=["distances"])
        scored = zip(answer["ids"][0], answer["distances"][0], strict=True)
        return {one: score_of(1.0 - distance) for one, distance in scored}

    def _asked(self, kind: MemoryKind, vector: NDArray[np.float32], **what: Any) -> Any:
        asked = {"include": list(HIT_PARTS), **what}
        with chroma_errors(self._location):
            return self._collections[kind].query(query_embeddings=[vector.tolist()], **asked)

    def ids(self, kind: MemoryKind, condition: Condition | None = None) -> list[str]:
        """The ids of all records that pass."""
        self.connect()
        where = None if condition is None else chroma_where(condition)
        with chroma_errors(self._location):
            return self._collections[kind].get(where=where, include=[])["ids"]

    def count(self, kind: MemoryKind) -> int:
        """How many records the collection holds."""
        self.connect()
        with chroma_errors(self._location):
            return self._collections[kind].count()

    def delete(self, ids: Sequence[str]) -> None:
        """Removes records for good, in batches; unknown ids do no harm."""
        self.connect()
        with self.writing:
            for batch in slices(ids, _BATCH):
                for kind in MemoryKind:
                    with chroma_errors(self._location):
                        self._collections[kind].delete(ids=batch)
                    self._check_current(kind)

    def close(self) -> None:
        """Closes the client; the last one of a folder lets go of its files."""
        with self.writing:
            client, self._client, self._closed = self._client, None, True
            if client is not None:
                close_client(client)

    def _got(self, kind: MemoryKind, **what: Any) -> list[Record]:
        with chroma_errors(self._location):
            rows = self._collections[kind].get(**what, include=list(ROW_PARTS))
        return records_of(rows["documents"], rows["metadatas"])

    def _write(self, call: Callable[..., None], rows: Sequence[Row]) -> None:
        vectors = text_vectors(self._embedder, [row.record.text for row in rows])
        with chroma_errors(self._location):
            call(**rows_of(rows, vectors))
