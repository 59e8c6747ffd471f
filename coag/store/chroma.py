"""Records in a real Chroma: a folder on disk, or a server.

Chroma's calls block in native code and importing it takes most of a second, so it is imported at
the first use, and everything here runs in worker threads; `ChromaStore` sees to that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coag.errors import ConfigurationError, EmbedderMismatchError, RecordStoreError
from coag.schema import MemoryKind, RecalledRecord, Record

from .embedders import Embedder, QueryVectors, score_of, text_vectors
from .filters import Condition
from .indexed import WRITTEN, Vectors
from .location import Server, check_folder
from .records import StoredRow, flat_fields, from_json
from .search import Search

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Client = Any
"""Chroma's client; its own types are partly unknown."""
Collection = Any
"""Chroma's collection."""

# ---- Clients, and collections that we can read ----


RECORD = "record"
"""Metadata field that holds everything of a record but its text, as JSON."""
FORMAT = "format"
"""Key of a collection's metadata with the number of the format of its rows; absent means 1."""
KNOWN_FORMAT = 1
"""The format that is written, and the newest that is read."""
ROW_PARTS = ("documents", "metadatas")
"""What has to be fetched of a row to make the record of it again."""
_INDEX = {"hnsw": {"space": "cosine", "ef_search": 200}}
"""Frozen when a collection is made. It looks at twice as many neighbours as Chroma does by default:
of 100,000 records 99.4 % of the nearest ten are found then. A denser index finds 99.8 %, but takes
in a quarter fewer records a second and answers half as fast."""


def client_at(location: Path | Server) -> Client:
    """A client for a folder, which is made if it is missing, or a server."""
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
    return client


def collection_named(client: Client, name: str) -> Collection | None:
    """The collection of this name, if there is one."""
    from chromadb.errors import NotFoundError

    try:
        return client.get_collection(name, embedding_function=None)
    except NotFoundError:
        return None


def make_collection(client: Client, name: str, metadata: dict[str, Any]) -> Collection:
    """A new collection, or the one that another process made between our look and our try."""
    from chromadb.errors import ChromaError

    try:
        return client.create_collection(
            name, configuration=_INDEX, metadata=metadata, embedding_function=None
        )
    except ChromaError:
        return client.get_collection(name, embedding_function=None)


def known_functions() -> Mapping[str, Callable[..., Any]]:
    """The classes of the embedding functions that Chroma knows by name; sparse ones are left out.

    What somebody registered with Chroma in this process is among them.
    """
    from chromadb.utils import embedding_functions

    known: Any = embedding_functions.known_embedding_functions  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # Chroma's own types are partly unknown
    return dict(known)


def metadata_of(collection: Collection | None) -> Mapping[str, Any]:
    """The metadata of a collection; empty where there is no collection."""
    found: Mapping[str, Any] | None = None if collection is None else collection.metadata
    return found or {}


def made_with(embedder: Embedder) -> dict[str, Any]:
    """What a collection's metadata say of the embedder that made its vectors."""
    return {"embedder": embedder.name, "dimension": embedder.dimension}


def check_collection(collection: Collection, embedder: Embedder) -> None:
    """Refuses a collection that we cannot read, or whose vectors cannot be compared with ours.

    Raises:
        EmbedderMismatchError: If another embedder made it.
        RecordStoreError: If its format is newer, or it does not measure by cosine.
    """
    check_format(collection)
    name, ours, stored = collection.name, made_with(embedder), metadata_of(collection)
    if {key: stored.get(key) for key in ours} != ours:
        raise EmbedderMismatchError(
            collection=name, stored=_described(stored), given=_described(ours)
        )
    space = collection.configuration_json.get("hnsw", {}).get("space")
    if space != "cosine":
        raise RecordStoreError(
            f"Collection {name!r} measures {space!r}, not 'cosine'; "
            "choose another folder or collection name and add the records again."
        )


def check_format(collection: Collection) -> None:
    """Refuses a collection whose rows a newer version of this package wrote.

    Raises:
        RecordStoreError: If its format is newer.
    """
    found = metadata_of(collection).get(FORMAT, 1)
    if found not in range(1, KNOWN_FORMAT + 1):
        raise RecordStoreError(
            f"Collection {collection.name!r} is of format {found!r}; this version of coag knows "
            f"formats up to {KNOWN_FORMAT}. Open it with a newer version. Nothing was changed."
        )


def _described(metadata: Mapping[str, Any]) -> str:
    return f"{metadata.get('embedder')!r} of dimension {metadata.get('dimension')!r}"


@cache
def write_lock(_location: Path | Server) -> threading.RLock:
    """One lock per place for all stores of this process, which may share its client."""
    return threading.RLock()


def close_client(client: Client) -> None:
    """Closes the client and, for a server, the connections that Chroma leaves open (1.5.9).

    Older clients (1.5.0) cannot be closed; their files go with the process.
    """
    halves = (client, getattr(client, "_admin_client", None))
    servers = [getattr(half, "_server", None) for half in halves]
    getattr(client, "close", lambda: None)()
    for session in (getattr(server, "_session", None) for server in servers):
        if session is not None:
            session.close()


@contextmanager
def chroma_errors(location: Path | Server) -> Generator[None]:
    """Turns whatever Chroma, its server or the disk raise into our error.

    Chroma's client raises ChromaError, ValueError, httpx errors and, for an answer that it does
    not understand, a bare Exception.
    """
    try:
        yield
    except Exception as error:
        gone = type(error).__name__ == "NotFoundError"
        hint = " It was removed or re-embedded meanwhile: open the store again." if gone else ""
        raise RecordStoreError(f"Chroma at {location}: {error}{hint}") from error


# ---- The names of the collections of a store, while it is used and while it is re-embedded ----


def live_name(collection: str, kind: MemoryKind) -> str:
    """The collection that is read and written."""
    return f"{collection}-{kind.value}"


def next_name(collection: str, kind: MemoryKind) -> str:
    """The one that a re-embedding fills, until it takes the place of the live one."""
    return f"{collection}-{kind.value}.next"


def old_name(collection: str, kind: MemoryKind) -> str:
    """The one whose place was taken, until it is removed."""
    return f"{collection}-{kind.value}.old"


def new_metadata(embedder: Embedder) -> dict[str, Any]:
    """The metadata of a collection that is made now."""
    return {**made_with(embedder), FORMAT: KNOWN_FORMAT}


def is_made_with(collection: Collection | None, embedder: Embedder) -> bool:
    """Whether there is a collection, and this embedder made its vectors."""
    return made_with(embedder).items() <= metadata_of(collection).items()


def slices(ids: Sequence[str], size: int) -> Iterator[list[str]]:
    """Ids, each once, so many at a time."""
    unique = list(dict.fromkeys(ids))
    for start in range(0, len(unique), size):
        yield unique[start : start + size]


# ---- The two collections of one Chroma as a table of records ----


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


class ChromaTable:
    """Records in two collections, episodic and semantic; a `RecordTable`."""

    def __init__(self, location: Path | Server, embedder: Embedder, collection: str) -> None:
        self.embedder = embedder
        self.shared = isinstance(location, Server)
        self.writing = write_lock(location)
        """Held while something is written, by all stores of this process at this place."""
        self._location = location
        self._queries = QueryVectors(embedder)
        self._collection = collection
        self._client: Client | None = None
        self._collections: dict[MemoryKind, Collection] = {}
        self._closed = False

    def connect(self) -> Client:
        """Opens client and collections unless they are open."""
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
        """Those of these ids of which there are records."""
        found: set[str] = set()
        for batch in slices(ids, _BATCH):
            for kind in MemoryKind:
                with chroma_errors(self._location):
                    found.update(self._collections[kind].get(ids=batch, include=[])["ids"])
        return found

    def add(self, rows: Sequence[StoredRow], vectors: Vectors) -> None:
        """Stores records whose ids are new, in batches."""
        for kind, batch in self._batches(rows):
            self._write(self._collections[kind].add, batch)
            self._check_current(kind)

    def upsert(self, rows: Sequence[StoredRow], vectors: Vectors) -> None:
        """Writes a few records of one kind in one call, which Chroma takes whole or not at all."""
        kind = rows[0].record.kind
        self._write(self._collections[kind].upsert, rows)
        self._check_current(kind)

    def update(self, rows: Sequence[StoredRow], stored: Mapping[str, Record]) -> None:
        """Writes over all of records but their texts and vectors; `stored` is what there is.

        Chroma keeps metadata keys that are not given, so those to be removed are named.
        """
        for kind, batch in self._batches(rows):
            gone = [dict.fromkeys(flat_fields(stored[row.record.id])) for row in batch]
            new = [{**old, **_metadata(row)} for old, row in zip(gone, batch, strict=True)]
            with chroma_errors(self._location):
                ids = [row.record.id for row in batch]
                self._collections[kind].update(ids=ids, metadatas=new)
            self._check_current(kind)

    def get(self, ids: Sequence[str], kind: MemoryKind | None = None) -> dict[str, Record]:
        """The records with these ids, by id; from both collections unless a kind is named."""
        found: dict[str, Record] = {}
        for batch in slices(ids, _BATCH):
            for one in (kind,) if kind is not None else MemoryKind:
                found.update({record.id: record for record in self._got(one, ids=batch)})
        return found

    def all(self, kind: MemoryKind, condition: Condition) -> list[Record]:
        """Every record that passes."""
        return self._got(kind, where=condition.where)

    def ids(self, kind: MemoryKind, condition: Condition | None = None) -> list[str]:
        """The ids of all records that pass."""
        where = None if condition is None else condition.where
        with chroma_errors(self._location):
            return self._collections[kind].get(where=where, include=[])["ids"]

    def similar(self, search: Search, condition: Condition, minimum: float) -> list[RecalledRecord]:
        """At least the k nearest records that pass, with their scores.

        Chroma's own filters take time in proportion to the collection, so the nearest of all
        are asked for first, and the filter is left to Chroma only if too few of them pass.
        """
        vector = self._queries.of(search.text or "")
        if vector is None:
            return []
        wanted = search.k + _SPARE
        nearest = self._recalled(search.kind, vector, n_results=2 * wanted)
        passing = [hit for hit in nearest if condition.matches(flat_fields(hit.record))]
        all_seen = len(nearest) < 2 * wanted or nearest[-1].score < minimum
        where = condition.where
        if where is not None and len(passing) < wanted and not all_seen:
            passing = self._recalled(search.kind, vector, n_results=wanted, where=where)
        return [hit for hit in passing if hit.score >= minimum]

    def nearest(
        self, kind: MemoryKind, text: str, count: int, condition: Condition | None = None
    ) -> dict[str, float]:
        """The ids of the records nearest in meaning, of those that pass, with their scores."""
        vector = self._queries.of(text)
        if vector is None:
            return {}
        where = None if condition is None else condition.where
        answer = self._query(kind, vector, n_results=count, where=where, include=["distances"])
        scored = zip(answer["ids"][0], answer["distances"][0], strict=True)
        return {one: score_of(1.0 - distance) for one, distance in scored}

    def count(self, kind: MemoryKind) -> int:
        """How many records the collection holds."""
        with chroma_errors(self._location):
            return self._collections[kind].count()

    def delete(self, ids: Sequence[str]) -> None:
        """Removes records for good, in batches; unknown ids do no harm."""
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
            # looked for after what it may replace
            filled = (collection_named(client, next_name(self._collection, k)) for k in MemoryKind)
            begun = next(filter(None, filled), None)
        if begun is not None and not is_made_with(found, self.embedder):
            by = metadata_of(begun).get("embedder")
            raise ConfigurationError(
                f"The store at {self._location} is being re-embedded for embedder {by!r}, and that "
                "was not completed. Go on where it stopped, with this embedder: "
                "`coag memory reembed`."
            )
        if found is None:
            with chroma_errors(self._location):
                found = make_collection(client, name, new_metadata(self.embedder))
        check_collection(found, self.embedder)
        return found

    def _check_current(self, kind: MemoryKind) -> None:
        """Called after a write: one into a collection that was replaced is not acknowledged."""
        client = self.connect()
        with chroma_errors(self._location):
            current = collection_named(client, live_name(self._collection, kind))
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
        for kind in MemoryKind:
            batch, filled = list[StoredRow](), 0
            for row in (row for row in rows if row.record.kind is kind):
                size = vector + 2 * (len(row.record.text) + len(row.rest))
                if batch and (len(batch) == most or filled + size > _BATCH_BYTES):
                    yield kind, batch
                    batch, filled = [], 0
                batch.append(row)
                filled += size
            if batch:
                yield kind, batch

    def _write(self, call: Callable[..., None], rows: Sequence[StoredRow]) -> None:
        texts = [row.record.text for row in rows]
        vectors = text_vectors(self.embedder, texts)
        with chroma_errors(self._location):
            call(
                ids=[row.record.id for row in rows],
                embeddings=vectors.tolist(),
                documents=texts,
                metadatas=[_metadata(row) for row in rows],
            )

    def _got(self, kind: MemoryKind, **what: Any) -> list[Record]:
        with chroma_errors(self._location):
            rows = self._collections[kind].get(**what, include=list(ROW_PARTS))
        return _records(rows["documents"], rows["metadatas"])

    def _recalled(
        self, kind: MemoryKind, vector: NDArray[np.float32], **what: Any
    ) -> list[RecalledRecord]:
        answer = self._query(kind, vector, include=[*ROW_PARTS, "distances"], **what)
        records = _records(answer["documents"][0], answer["metadatas"][0])
        return [
            RecalledRecord(record=record, score=score_of(1.0 - distance))
            for record, distance in zip(records, answer["distances"][0], strict=True)
        ]

    def _query(self, kind: MemoryKind, vector: NDArray[np.float32], **what: Any) -> Any:
        with chroma_errors(self._location):
            return self._collections[kind].query(query_embeddings=[vector.tolist()], **what)


def _metadata(row: StoredRow) -> dict[str, Any]:
    """A row's metadata as Chroma keeps it."""
    return {**row.flat, RECORD: row.rest, WRITTEN: time.time()}


def _records(documents: Sequence[str], metadatas: Sequence[Mapping[str, Any]]) -> list[Record]:
    """The records that Chroma's rows were made of."""
    pairs = zip(documents, metadatas, strict=True)
    return [from_json(document, metadata[RECORD]) for document, metadata in pairs]
