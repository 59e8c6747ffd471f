"""Chroma's clients and collections: a folder on disk, or a server.

Chroma's calls block in native code and importing it takes most of a second, so it is imported at
the first use, and everything here runs in worker threads; `ChromaStore` sees to that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal

from coag.errors import EmbedderMismatchError, RecordStoreError
from coag.schema import MemoryKind

from .embedders import Embedder
from .location import Server

Client = Any
"""Chroma's client; its own types are partly unknown."""
Collection = Any
"""Chroma's collection."""

FORMAT = "format"
"""Key of a collection's metadata with the number of the format of its rows; absent means 1."""
KNOWN_FORMAT = 1
"""The format that is written, and the newest that is read."""
ROW_PARTS = ["documents", "metadatas"]
"""What has to be fetched of a row to make the record of it again."""
_INDEX = {"hnsw": {"space": "cosine", "ef_search": 200}}
"""Frozen when a collection is made. It looks at twice as many neighbours as Chroma does by default:
of 100,000 records 99.4 % of the nearest ten are found then. A denser index finds 99.8 %, but takes
in a quarter fewer records a second and answers half as fast."""


@contextmanager
def chroma_errors(location: Path | Server) -> Generator[None]:
    """Turns any error of Chroma, its server or the disk into ours.

    Chroma's client raises ChromaError, ValueError, httpx errors and, for an answer that it does
    not understand, a bare Exception.
    """
    try:
        yield
    except Exception as error:
        gone = type(error).__name__ == "NotFoundError"
        hint = " It was removed or re-embedded meanwhile: open the store again." if gone else ""
        raise RecordStoreError(f"Chroma at {location}: {error}{hint}") from error


def client_at(location: Path | Server, seconds: float = 600.0) -> Client:
    """A client for a folder, which is made if it is missing, or a server.

    A request to a server that says nothing for so many seconds fails. Chroma's client (1.5.9)
    would wait for ever, in a thread that nothing can end and that the process waits for.
    """
    import chromadb
    import httpx
    from chromadb.config import Settings

    settings = Settings(anonymized_telemetry=False)
    if isinstance(location, Server):
        with suppress(httpx.NetworkError):  # which Chroma puts into words
            httpx.get(f"{location}/api/v2/heartbeat", timeout=seconds)
        client = chromadb.HttpClient(
            host=location.host, port=location.port, ssl=location.secure, settings=settings
        )
        for session in _sessions(client):
            session.timeout = seconds
        return client
    location.mkdir(parents=True, exist_ok=True)
    return chromadb.PersistentClient(path=location, settings=settings)


def close_client(client: Client) -> None:
    """Closes the client and, for a server, the connections that Chroma leaves open (1.5.9).

    Older clients (1.5.0) cannot be closed; their files go with the process.
    """
    sessions = _sessions(client)
    getattr(client, "close", lambda: None)()
    for session in sessions:
        session.close()


def _sessions(client: Client) -> list[Any]:
    """The HTTP sessions of a client and of the half of it that Chroma keeps for itself."""
    halves = (client, getattr(client, "_admin_client", None))
    servers = (getattr(half, "_server", None) for half in halves)
    return [one for server in servers if (one := getattr(server, "_session", None)) is not None]


@cache
def write_lock(_location: Path | Server) -> threading.RLock:
    """One lock per place for all stores of this process, which may share its client."""
    return threading.RLock()


def known_functions() -> Mapping[str, Callable[..., Any]]:
    """The classes of the embedding functions that Chroma knows by name; sparse ones are left out.

    What somebody registered with Chroma in this process is among them.
    """
    from chromadb.utils import embedding_functions

    known: Any = embedding_functions.known_embedding_functions  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # Chroma's own types are partly unknown
    return dict(known)


def collection_name(
    collection: str, kind: MemoryKind, role: Literal["", ".next", ".old"] = ""
) -> str:
    """The collection that is read and written.

    With `.next` the one that a re-embedding fills, until it takes the place of the other; with
    `.old` the one whose place was taken, until it is removed.
    """
    return f"{collection}-{kind.value}{role}"


def collection_named(client: Client, name: str) -> Collection | None:
    """The collection of this name, if there is one."""
    from chromadb.errors import NotFoundError

    try:
        return client.get_collection(name, embedding_function=None)
    except NotFoundError:
        return None


def make_collection(client: Client, name: str, embedder: Embedder, **more: str) -> Collection:
    """A new collection, or the one that another process made between our look and our try."""
    from chromadb.errors import ChromaError

    metadata = {**made_with(embedder), FORMAT: KNOWN_FORMAT, **more}
    try:
        return client.create_collection(
            name, configuration=_INDEX, metadata=metadata, embedding_function=None
        )
    except ChromaError:
        if (found := collection_named(client, name)) is None:
            raise
        return found


def metadata_of(collection: Collection | None) -> Mapping[str, Any]:
    """The metadata of a collection; empty where there is no collection."""
    found: Mapping[str, Any] | None = None if collection is None else collection.metadata
    return found or {}


def made_with(embedder: Embedder) -> dict[str, Any]:
    """What a collection's metadata say of the embedder that made its vectors."""
    return {"embedder": embedder.name, "dimension": embedder.dimension}


def is_made_with(collection: Collection | None, embedder: Embedder) -> bool:
    """Whether there is a collection, and this embedder made its vectors."""
    return made_with(embedder).items() <= metadata_of(collection).items()


def check_collection(collection: Collection, embedder: Embedder) -> None:
    """Refuses a collection that we cannot read, or whose vectors cannot be compared with ours."""
    check_format(collection)
    if not is_made_with(collection, embedder):
        stored, given = (
            f"{one.get('embedder')!r} of dimension {one.get('dimension')!r}"
            for one in (metadata_of(collection), made_with(embedder))
        )
        raise EmbedderMismatchError(collection=collection.name, stored=stored, given=given)
    space = collection.configuration_json.get("hnsw", {}).get("space")
    if space != "cosine":
        raise RecordStoreError(
            f"Collection {collection.name!r} measures {space!r}, not 'cosine'; "
            "choose another folder or collection name and add the records again."
        )


def check_format(collection: Collection) -> None:
    """Refuses a collection whose rows a newer version of this package wrote."""
    found = metadata_of(collection).get(FORMAT, 1)
    if found not in range(1, KNOWN_FORMAT + 1):
        raise RecordStoreError(
            f"Collection {collection.name!r} is of format {found!r}; this version of coag knows "
            f"formats up to {KNOWN_FORMAT}. Open it with a newer version. Nothing was changed."
        )
