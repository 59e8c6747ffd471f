"""What we use of Chroma's client, whose own types are partly unknown, and our rows in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from coag.errors import EmbedderMismatchError, RecordStoreError
from coag.schema import RecalledRecord, Record

from ._embedders import Embedder
from ._fields import Row, flat_fields, from_json
from ._location import Server
from ._vectors import score_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
