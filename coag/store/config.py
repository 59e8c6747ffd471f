"""A store as configuration, and the store that a place names."""

from __future__ import annotations

from pathlib import Path

from coag.errors import ConfigurationError
from coag.schema import Imported, Value

from .chroma_store import ChromaStore
from .embedders import Embedder, WordLlamaEmbedder
from .embedders_by_name import embedder_of, name_of_embedder
from .in_memory import InMemoryStore
from .location import public_location
from .protocol import RecordStore, WrappedStore


class StoreConfig(Value):
    """The declarative form of a store that comes with `coag`."""

    location: str | None = None
    """The folder or address as it was given; None for a store in RAM."""
    embedder: str | Imported = WordLlamaEmbedder.name
    """Its name, see `embedder_of`, or how to import another one."""
    collection: str = "coag"
    """Beginning of the collections' names; without meaning in RAM."""
    timeout: float = 60.0
    """Seconds after which an operation is given up; without meaning in RAM."""
    wrapped: tuple[Imported, ...] = ()
    """The stores wrapped around it, the innermost first; see `WrappedStore.wrapping`."""

    @classmethod
    def of(cls, store: RecordStore) -> StoreConfig:
        """How to open a store again; one in RAM will be empty then.

        Raises:
            ConfigurationError: It is no store of ours, its address may hold a secret, or its
                embedder or what is put around it cannot be imported.
        """
        if isinstance(store, WrappedStore):
            how, kind, inner = store.wrapping(), type(store).__name__, cls.of(store.store)
            if how is None:
                raise ConfigurationError(
                    f"A {kind} cannot be written down: its wrapping() gives None. Let it give what "
                    f"puts a {kind} around another store (a class of a module will do), or build "
                    "the memory in code and hand it to the loaded agent as memory=."
                )
            return inner.model_copy(update={"wrapped": (*inner.wrapped, Imported.of(how))})
        if type(store) is InMemoryStore:
            return cls(embedder=name_of_embedder(store.embedder))
        if type(store) is ChromaStore:
            return cls(
                location=public_location(store.given_location),
                embedder=name_of_embedder(store.embedder),
                collection=store.collection,
                timeout=store.timeout,
            )
        raise ConfigurationError(
            f"A {type(store).__name__} cannot be written down. Give a store of coag.store, a "
            "WrappedStore around one that gives its wrapping(), or build the memory in code and "
            "hand it to the loaded agent as memory=."
        )

    def open(self) -> RecordStore:
        """The store; nothing is read or reached until its first use.

        Raises:
            ConfigurationError: There is no such embedder, its package is not installed, the
                location is no proper address, or what shall be put around it makes no store.
        """
        embedder = embedder_of(self.embedder)
        store: RecordStore = InMemoryStore(embedder)
        if self.location is not None:
            store = ChromaStore(
                self.location, embedder, collection=self.collection, timeout=self.timeout
            )
        for how in self.wrapped:
            wrapping: object = how.get()
            try:
                around: object = wrapping(store) if callable(wrapping) else None
            except TypeError:
                around = None
            if not isinstance(around, WrappedStore):
                raise ConfigurationError(
                    f"{how.name!r} puts no store around another one. An entry of `wrapped` is "
                    "what WrappedStore.wrapping() gives."
                )
            store = around
        return store


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
