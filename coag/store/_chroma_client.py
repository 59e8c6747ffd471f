"""Clients, collections and embedding functions of Chroma. The one module that knows chromadb.

Importing chromadb takes most of a second, so it is imported at the first use, and everything here
blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from coag.schema import MemoryKind

from ._chroma_names import next_name
from ._chroma_types import Client, Collection
from ._location import Server

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
