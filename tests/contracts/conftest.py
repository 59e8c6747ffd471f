"""What contract kits run on: each implementation, started and stopped here."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from coag.store import ChromaStore, Embedder, HashEmbedder, InMemoryStore, RecordStore

StoreMaker = Callable[[Embedder], Awaitable[RecordStore]]


@pytest.fixture(scope="session")
def chroma_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real Chroma server on the loopback, with a folder of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    beside_python = Path(sys.executable).parent / "chroma"
    command = str(beside_python) if beside_python.exists() else shutil.which("chroma")
    assert command, "the chroma command comes with the chromadb package"
    folder = tmp_path_factory.mktemp("chroma-server")
    arguments = ["run", "--path", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    log = folder / "log.txt"
    with log.open("w") as output:
        server = subprocess.Popen([command, *arguments], stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait_until_it_listens(server, port, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=20)


def _wait_until_it_listens(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            try:
                code = server.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
            pytest.fail(f"The Chroma server ended with {code}: {log.read_text()}")
        return


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
