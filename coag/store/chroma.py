"""Chroma: clients, collections, names and filters."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from coag.errors import ConfigurationError, EmbedderMismatchError, RecordStoreError
from coag.schema import MemoryKind, RecalledRecord, Record

from .embedders import Embedder, QueryVectors, score_of, text_vectors
from .location import Server, check_folder
from .search import AllOf, AnyOf, Condition, InRange, OneOf, Row, Search, flat_fields, from_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# ---- What we use of Chroma's client, whose own types are partly unknown, and our rows in it ----


RECORD = "record"
"""Metadata field that holds everything of a record but its text, as JSON."""

WRITTEN = "written"
"""Metadata field with the time of writing, in seconds since 1970."""

FORMAT = "format"
"""Key of a collection's metadata with the number of the format of its rows; absent means 1."""

KNOWN_FORMAT = 1
"""The format that is written, and the newest that is read."""

ROW_PARTS = ("documents", "metadatas")
"""What has to be fetched of a row to make the record of it again."""

HIT_PARTS = (*ROW_PARTS, "distances")
"""What has to be asked for to have records with their scores."""

_BYTES_PER_NUMBER = 22


class Collection(Protocol):
    """A collection of rows."""

    @property
    def id(self) -> object:
        """What it is known by, whatever it is named."""
        ...

    @property
    def name(self) -> str:
        """What it is named now, as far as this process knows."""
        ...

    @property
    def metadata(self) -> Mapping[str, Any] | None:
        """What we said of the collection when we made it."""
        ...

    @property
    def configuration_json(self) -> Mapping[str, Any]:
        """How its index was made."""
        ...

    def add(self, **rows: Any) -> None:
        """Stores rows whose ids are new."""
        ...

    def upsert(self, **rows: Any) -> None:
        """Stores rows, or writes over them."""
        ...

    def update(self, **rows: Any) -> None:
        """Writes over parts of rows that are there; metadata keys that are None are removed."""
        ...

    def delete(self, *, ids: list[str]) -> object:
        """Removes rows by id."""
        ...

    def get(self, **what: Any) -> Mapping[str, Any]:
        """Rows by id or filter."""
        ...

    def query(self, **what: Any) -> Mapping[str, Any]:
        """Rows by nearness."""
        ...

    def count(self) -> int:
        """How many rows there are."""
        ...

    def modify(self, *, name: str) -> None:
        """Gives it another name."""
        ...


class Client(Protocol):
    """A connection to a folder or a server."""

    def get_collection(self, name: str, *, embedding_function: None) -> Collection:
        """The collection of this name."""
        ...

    def create_collection(self, name: str, **settings: Any) -> Collection:
        """A new collection."""
        ...

    def delete_collection(self, name: str) -> None:
        """Removes a collection with its rows."""
        ...

    def get_max_batch_size(self) -> int:
        """How many rows one call takes at most."""
        ...


def rows_of(rows: Sequence[Row], vectors: NDArray[np.float32]) -> dict[str, Any]:
    """Records as Chroma takes them."""
    now = time.time()
    return {
        "ids": [row.record.id for row in rows],
        "embeddings": vectors.tolist(),
        "documents": [row.record.text for row in rows],
        "metadatas": [{**row.flat, RECORD: row.rest, WRITTEN: now} for row in rows],
    }


def rewritten(rows: Sequence[Row], stored: Mapping[str, Record]) -> dict[str, Any]:
    """Records as Chroma takes them in place of what is stored, their texts and vectors kept.

    Chroma keeps metadata keys of which nothing is said, so those that went are named.
    """
    now = time.time()
    return {
        "ids": [row.record.id for row in rows],
        "metadatas": [
            {
                **dict.fromkeys(flat_fields(stored[row.record.id])),
                **row.flat,
                RECORD: row.rest,
                WRITTEN: now,
            }
            for row in rows
        ],
    }


def slices(ids: Sequence[str], size: int) -> Iterator[list[str]]:
    """Ids, each once, so many at a time."""
    unique = list(dict.fromkeys(ids))
    for start in range(0, len(unique), size):
        yield unique[start : start + size]


def batches(rows: Iterable[Row], most: int, most_bytes: int, dimension: int) -> Iterator[list[Row]]:
    """Records in calls that Chroma takes: so many at most, and about so many bytes of JSON."""
    batch: list[Row] = []
    filled = 0
    for row in rows:
        size = dimension * _BYTES_PER_NUMBER + 2 * (len(row.record.text) + len(row.rest))
        if batch and (len(batch) == most or filled + size > most_bytes):
            yield batch
            batch, filled = [], 0
        batch.append(row)
        filled += size
    if batch:
        yield batch


def records_of(documents: Sequence[str], metadatas: Sequence[Mapping[str, Any]]) -> list[Record]:
    """The records that Chroma's rows were made of."""
    pairs = zip(documents, metadatas, strict=True)
    return [from_json(document, metadata[RECORD]) for document, metadata in pairs]


def recalled_of(answer: Mapping[str, Any]) -> list[RecalledRecord]:
    """The records that answer a query by one vector, with their scores."""
    records = records_of(answer["documents"][0], answer["metadatas"][0])
    return [
        RecalledRecord(record=record, score=score_of(1.0 - distance))
        for record, distance in zip(records, answer["distances"][0], strict=True)
    ]


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
    name, ours, stored = collection.name, made_with(embedder), collection.metadata or {}
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
    found = (collection.metadata or {}).get(FORMAT, 1)
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
    stored = {} if collection is None else collection.metadata or {}
    return made_with(embedder).items() <= stored.items()


def half_way(location: Path | Server, begun: Collection) -> ConfigurationError:
    """The error of one who opens a store that is being re-embedded, as it cannot be opened now."""
    embedder = (begun.metadata or {}).get("embedder")
    return ConfigurationError(
        f"The store at {location} is being re-embedded for embedder {embedder!r}, and that was not "
        f"completed. Go on where it stopped, with this embedder: `coag memory reembed`."
    )


def replaced(location: Path | Server) -> RecordStoreError:
    """The error of one who wrote into a collection whose place another one had taken."""
    return RecordStoreError(
        f"The store at {location} was re-embedded while it was open here, so that this write may "
        "be lost. Open it again, with the new embedder, and repeat the write."
    )


#
# Importing chromadb takes most of a second, so it is imported at the first use, and everything
# here blocks.
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
    return cast("Client", client)


def collection_named(client: Client, name: str) -> Collection | None:
    """The collection of this name, if there is one."""
    from chromadb.errors import NotFoundError

    try:
        return client.get_collection(name, embedding_function=None)
    except NotFoundError:
        return None


def filling(client: Client, collection: str) -> Collection | None:
    """A collection that an unfinished re-embedding fills, of any kind."""
    named = (collection_named(client, next_name(collection, kind)) for kind in MemoryKind)
    return next(filter(None, named), None)


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
    """The classes of the embedding functions that Chroma knows by name; sparse ones are not told.

    What somebody registered with Chroma in this process is among them.
    """
    from chromadb.utils import embedding_functions

    known: Any = embedding_functions.known_embedding_functions  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # Chroma's own types are partly unknown
    return dict(known)


# ---- Our filters in Chroma's language ----


ChromaWhere = dict[str, Any]


def chroma_where(condition: Condition) -> ChromaWhere | None:
    """The filter; None stands for one that everything meets, which Chroma cannot write."""
    match condition:
        case OneOf(field=field, values=values):
            return _one_of(field, values)
        case InRange(field=field, operator=operator, bound=bound):
            return {field: {operator: bound}}
        case AllOf(parts=parts):
            return _joined("$and", [w for w in map(chroma_where, parts) if w is not None])
        case AnyOf(parts=parts):
            wheres = [chroma_where(part) for part in parts]
            some = [where for where in wheres if where is not None]
            return _joined("$or", some) if len(some) == len(wheres) else None


def _one_of(field: str, values: Sequence[str | float | bool]) -> ChromaWhere | None:
    """Chroma wants the values of one `$in` to be of one type."""
    by_type: dict[type, list[str | float | bool]] = {}
    for value in values:
        by_type.setdefault(type(value), []).append(value)
    return _joined("$or", [{field: {"$in": group}} for group in by_type.values()])


def _joined(operator: str, parts: list[ChromaWhere]) -> ChromaWhere | None:
    """Chroma wants at least two parts to combine."""
    if len(parts) <= 1:
        return parts[0] if parts else None
    return {operator: parts}


# ---- Records in a real Chroma: a folder on disk, or a server ----
#
# Chroma's calls block in native code and importing it takes most of a second, so everything here
# runs in worker threads, from the first use on; `ChromaStore` sees to that.


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
