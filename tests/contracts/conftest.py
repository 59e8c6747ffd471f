"""What contract kits run on: each implementation, started and stopped here."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from kits.chroma_servers import ChromaServer, running_chroma

from coag.store import ChromaStore, Embedder, HashEmbedder, InMemoryStore, RecordStore

StoreMaker = Callable[[Embedder], Awaitable[RecordStore]]


@pytest.fixture(scope="session")
def chroma_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with a folder of its own."""
    with running_chroma(tmp_path_factory.mktemp("chroma-server")) as made:
        yield made.address


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ChromaServer]:
    """A server for one test."""
    with running_chroma(tmp_path) as made:
        yield made


@pytest.fixture(params=["memory", "folder", pytest.param("server", marks=pytest.mark.slow)])
async def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[StoreMaker]:
    """Makes empty stores of one implementation, and closes them."""
    made: list[RecordStore] = []

    async def make(embedder: Embedder) -> RecordStore:
        if request.param == "memory":
            store: RecordStore = InMemoryStore(embedder)
        elif request.param == "folder":
            store = await ChromaStore.open(tmp_path / "records", embedder)
        else:
            address = request.getfixturevalue("chroma_server")
            name = f"test-{uuid.uuid4().hex[:12]}"
            store = await ChromaStore.open(address, embedder, collection=name)
        made.append(store)
        return store

    yield make
    for store in made:
        await store.close()


@pytest.fixture
async def store(make_store: StoreMaker) -> RecordStore:
    """An empty store that counts words."""
    return await make_store(HashEmbedder())
