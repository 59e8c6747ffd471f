"""What we use of Chroma's client, whose own types are partly unknown, and our rows in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from coag.errors import EmbedderMismatchError, RecordStoreError
from coag.schema import Record

from ._fields import flat_fields, from_json, to_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RECORD = "record"
"""Metadata field that holds everything of a record but its text, as JSON."""

ROW_PARTS = ("documents", "metadatas")
"""What has to be fetched of a row to make the record of it again."""

_BYTES_PER_NUMBER = 22


class Collection(Protocol):
    """A collection of rows."""

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


class Client(Protocol):
    """A connection to a folder or a server."""

    def get_collection(self, name: str, *, embedding_function: None) -> Collection:
        """The collection of this name."""
        ...

    def create_collection(self, name: str, **settings: Any) -> Collection:
        """A new collection."""
        ...

    def get_max_batch_size(self) -> int:
        """How many rows one call takes at most."""
        ...


def rows_of(records: Sequence[Record], vectors: NDArray[np.float32]) -> dict[str, Any]:
    """Records as Chroma takes them."""
    return {
        "ids": [record.id for record in records],
        "embeddings": vectors.tolist(),
        "documents": [record.text for record in records],
        "metadatas": [{**flat_fields(record), RECORD: to_json(record)} for record in records],
    }


def batches(
    records: Sequence[Record], most: int, most_bytes: int, dimension: int
) -> Iterator[list[Record]]:
    """Records in calls that Chroma takes: so many at most, and about so many bytes of JSON."""
    batch: list[Record] = []
    filled = 0
    for record in records:
        size = dimension * _BYTES_PER_NUMBER + 2 * len(record.model_dump_json())
        if batch and (len(batch) == most or filled + size > most_bytes):
            yield batch
            batch, filled = [], 0
        batch.append(record)
        filled += size
    if batch:
        yield batch


def records_of(documents: Sequence[str], metadatas: Sequence[Mapping[str, Any]]) -> list[Record]:
    """The records that Chroma's rows were made of."""
    pairs = zip(documents, metadatas, strict=True)
    return [from_json(document, metadata[RECORD]) for document, metadata in pairs]


def check_collection(collection: Collection, name: str, ours: Mapping[str, Any]) -> None:
    """Refuses a collection whose vectors cannot be compared with ours.

    Raises:
        EmbedderMismatchError: If another embedder made it.
        RecordStoreError: If it does not measure by cosine.
    """
    stored = collection.metadata or {}
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


def _described(metadata: Mapping[str, Any]) -> str:
    return f"{metadata.get('embedder')!r} of dimension {metadata.get('dimension')!r}"
