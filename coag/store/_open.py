"""The store that a location stands for."""

from __future__ import annotations

from pathlib import Path

from ._chroma_store import ChromaStore
from ._embedders import Embedder
from ._in_memory import InMemoryStore
from ._protocol import RecordStore


def open_store(
    location: Path | str | None = None, *, embedder: Embedder | str | None = None
) -> RecordStore:
    """A store of records; nothing is imported, read or reached until its first use.

    Args:
        location: None keeps records in memory only; a path is a folder for Chroma, made if it is
            missing; `http://host:port` is a Chroma server.
        embedder: None for `WordLlamaEmbedder`; it may be given by its name, see `embedder_of`.

    Raises:
        ConfigurationError: If the location is an address, but not of an HTTP server, or there is
            no embedder of that name.
    """
    if location is None:
        return InMemoryStore(embedder)
    return ChromaStore(location, embedder)
