"""How to open a store again: where its records rest, never what they say."""

from __future__ import annotations

from coag.errors import ConfigurationError
from coag.schema import Imported, Value

from ._chroma_store import ChromaStore
from ._embedders import Embedder, HashEmbedder
from ._in_memory import InMemoryStore
from ._location import public_location
from ._protocol import RecordStore
from ._wordllama import WordLlamaEmbedder
from .minilm import MiniLmEmbedder

_HASH = "hash-"


class StoreConfig(Value):
    """The declarative form of a store that comes with `coag`."""

    location: str | None = None
    """The folder or address as it was given; None for a store in RAM."""
    embedder: str | Imported = WordLlamaEmbedder.name
    """The name of one of ours, or how to import another one."""
    collection: str = "coag"
    """Beginning of the collections' names; without meaning in RAM."""
    timeout: float = 60.0
    """Seconds after which an operation is given up; without meaning in RAM."""

    @classmethod
    def of(cls, store: RecordStore) -> StoreConfig:
        """How to open a store again; one in RAM will be empty then.

        Raises:
            ConfigurationError: It is no store of ours, its address may hold a secret, or its
                embedder cannot be imported.
        """
        if isinstance(store, InMemoryStore) and type(store) is InMemoryStore:
            return cls(embedder=_embedder_name(store.embedder))
        if isinstance(store, ChromaStore) and type(store) is ChromaStore:
            return cls(
                location=public_location(store.given_location),
                embedder=_embedder_name(store.embedder),
                collection=store.collection,
                timeout=store.timeout,
            )
        raise ConfigurationError(
            f"A {type(store).__name__} cannot be written down. Give a store of coag.store, or "
            "build the memory in code and hand it to the loaded agent."
        )

    def open(self) -> RecordStore:
        """The store; nothing is read or reached until its first use.

        Raises:
            ConfigurationError: There is no such embedder, its package is not installed, or the
                location is no proper address.
        """
        embedder = embedder_of(self.embedder)
        if self.location is None:
            return InMemoryStore(embedder)
        return ChromaStore(
            self.location, embedder, collection=self.collection, timeout=self.timeout
        )


def _embedder_name(embedder: Embedder) -> str | Imported:
    if type(embedder) in (WordLlamaEmbedder, MiniLmEmbedder, HashEmbedder):
        return embedder.name
    try:
        return Imported.of(embedder)
    except ConfigurationError as error:
        raise ConfigurationError(f"Embedder {embedder.name!r}: {error}") from error


def embedder_of(given: str | Imported) -> Embedder:
    """The embedder of this name, or the one to be imported.

    Raises:
        ConfigurationError: There is none.
    """
    if isinstance(given, Imported):
        return given.get()
    if given == WordLlamaEmbedder.name:
        return WordLlamaEmbedder()
    if given == MiniLmEmbedder.name:
        return MiniLmEmbedder()
    size = given.removeprefix(_HASH)
    if given.startswith(_HASH) and size.isdecimal():
        return HashEmbedder(int(size))
    raise ConfigurationError(
        f"There is no embedder named {given!r} in coag. Known: {WordLlamaEmbedder.name}, "
        f"{MiniLmEmbedder.name}, {_HASH}DIMENSION. Another one is given by import name."
    )
