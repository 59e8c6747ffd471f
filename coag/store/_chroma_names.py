"""The names of the collections of a store, while it is used and while it is re-embedded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coag.errors import ConfigurationError, RecordStoreError
from coag.schema import MemoryKind

from ._chroma_types import FORMAT, KNOWN_FORMAT, Collection, made_with
from ._embedders import Embedder
from ._location import Server


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
