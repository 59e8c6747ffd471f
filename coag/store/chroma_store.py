"""A store in Chroma: records in collections, their words in a file beside them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from coag.errors import RecordStoreError

from .chroma import ChromaTable
from .embedders import Embedder
from .indexed import IndexedStore
from .location import parse_location
from .named_embedders import embedder_of

_T = TypeVar("_T")


class ChromaStore(IndexedStore):
    """Records in two collections of one Chroma, episodic and semantic.

    Opens itself at its first use; `await ChromaStore.open(...)` opens at once, so that errors
    come early. The same folder may be opened several times within one process; between
    processes use a server.

    Args:
        location: A folder, made if it is missing, or the address of a Chroma server
            (`http://host:port`).
        embedder: None for `WordLlamaEmbedder`; it may be given by its name, see `embedder_of`.
            Its name and dimension are kept with the collections and compared at opening.
        collection: Beginning of the collections' names.
        timeout: Seconds after which an operation is given up.

    Raises:
        ConfigurationError: If the location is an address, but not of an HTTP server, or there is
            no embedder of that name.
    """

    def __init__(
        self,
        location: Path | str,
        embedder: Embedder | str | None = None,
        *,
        collection: str = "coag",
        timeout: float = 60.0,
    ) -> None:
        self.given_location = location
        """The folder or address as it was given."""
        self.collection = collection
        self.timeout = timeout
        self._location = parse_location(location)
        table = ChromaTable(self._location, embedder_of(embedder), collection)
        super().__init__(table, self.words_file)

    @property
    def words_file(self) -> Path | None:
        """The file of the index of words; None for a server, whose words are kept in RAM."""
        if isinstance(self._location, Path):
            return self._location / f"{self.collection}-words.sqlite3"
        return None

    @property
    def location(self) -> str:
        """Where it is, the same however it was given: an absolute path or an address."""
        return str(self._location)

    @classmethod
    async def open(
        cls,
        location: Path | str,
        embedder: Embedder | str | None = None,
        *,
        collection: str = "coag",
    ) -> ChromaStore:
        """Opens the store now.

        Raises:
            ConfigurationError: As for the class.
            EmbedderMismatchError: If its collections were made with another embedder.
            RecordStoreError: If it cannot be opened.
        """
        store = cls(location, embedder, collection=collection)
        await store._run(store._connect)
        return store

    async def _run(self, work: Callable[..., _T], *arguments: Any, embeds: bool = False) -> _T:
        """Chroma's calls block, so all work runs in a thread, within the time-out."""
        try:
            async with asyncio.timeout(self.timeout):
                return await asyncio.to_thread(work, *arguments)
        except TimeoutError as error:
            raise RecordStoreError(
                f"Chroma at {self._location} did not answer within {self.timeout:g} s."
            ) from error
