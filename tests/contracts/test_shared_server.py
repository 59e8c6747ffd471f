"""Two clients of one Chroma server, as in two processes: each finds what the other wrote."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kits.remembered import remembered

from coag.schema import Dynamics, MemoryKind
from coag.store import DEFAULT_RANKING, ChromaStore, HashEmbedder, Search

pytestmark = pytest.mark.slow


@pytest.fixture
async def two(
    chroma_server: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[ChromaStore, ChromaStore]]:
    """Two stores over the same records, that ask for news at every recall."""
    monkeypatch.setattr("coag.store.indexed._LOOK_AGAIN", 0.0)
    name = f"shared-{uuid.uuid4().hex[:12]}"
    stores = [
        await ChromaStore.open(chroma_server, HashEmbedder(), collection=name) for _ in range(2)
    ]
    yield stores[0], stores[1]
    for store in stores:
        await store.close()


async def recalled(store: ChromaStore, text: str, k: int = 5) -> list[str]:
    search = Search(
        text=text, kind=MemoryKind.EPISODIC, k=k, ranking=DEFAULT_RANKING, min_score=0.1
    )
    return [hit.record.text for hit in await store.search(search)]


async def test_each_finds_what_the_other_wrote(two: tuple[ChromaStore, ChromaStore]) -> None:
    one, other = two
    lamp, tree = remembered("a red lamp"), remembered("an old tree")
    assert await recalled(one, "lamp") == await recalled(other, "lamp") == []
    await one.add([lamp])
    await other.add([tree])
    assert await recalled(other, "lamp") == ["a red lamp"]
    assert await recalled(one, "tree") == ["an old tree"]
    await other.supersede(lamp.id, remembered("a blue lamp"))
    assert await recalled(one, "lamp") == ["a blue lamp"]
    await one.update([tree.model_copy(update={"dynamics": Dynamics(importance=1.0)})])
    (hit,) = await other.search(
        Search(text="tree", kind=MemoryKind.EPISODIC, k=1, ranking=DEFAULT_RANKING)
    )
    assert hit.why is not None
    assert hit.why.importance > 0


async def test_what_the_other_removed_vanishes_and_hides_nothing(
    two: tuple[ChromaStore, ChromaStore],
) -> None:
    one, other = two
    many = [remembered(f"lamp number {n}", minutes=n) for n in range(60)]
    await one.add([*many, remembered("a lamp like any other of its kind", scope="bob")])
    assert len(await recalled(other, "lamp", k=30)) == 30
    assert await one.forget("alice") == 60
    assert await recalled(other, "lamp") == ["a lamp like any other of its kind"]
    assert await recalled(other, "lamp number 7") == ["a lamp like any other of its kind"]


WRITER = """
import asyncio, sys
from kits.remembered import remembered
from coag.schema import MemoryKind
from coag.store import ChromaStore, HashEmbedder, Ranking, Search
from coag.store import indexed
indexed._LOOK_AGAIN = 0.0  # ask for news at every recall
WORDS_ONLY = Ranking(dense=0.0, lexical=1.0)

async def main(address, collection, name):
    store = await ChromaStore.open(address, HashEmbedder(), collection=collection)
    print("open", flush=True)
    sys.stdin.readline()
    for number in range(15):
        seen = [f"{name} saw thing {number}", f"both saw {number}"]
        await store.add([remembered(text) for text in seen])
    print("written", flush=True)
    question = sys.stdin.readline().strip()  # when the other has written, too
    for ranking in (None, WORDS_ONLY):
        search = Search(text=question, kind=MemoryKind.EPISODIC, k=1, ranking=ranking)
        print([hit.record.text for hit in await store.search(search)], flush=True)
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_two_processes_write_at_once_and_find_what_the_other_wrote_and_nothing_is_doubled(
    two: tuple[ChromaStore, ChromaStore], chroma_server: str
) -> None:
    reader, _ = two
    await recalled(reader, "anything")
    command = [sys.executable, "-c", WRITER, chroma_server, reader.collection]

    def write() -> None:
        writers = [
            subprocess.Popen(
                [*command, name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=Path(__file__).parents[1],
            )
            for name in ("ann", "ben")
        ]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "open\n"
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("go\n")
            writer.stdin.flush()
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "written\n"
        for writer, of_the_other in zip(
            writers, ("ben saw thing 14", "ann saw thing 14"), strict=True
        ):
            said, _ = writer.communicate(f"{of_the_other}\n")
            assert writer.returncode == 0
            assert said.splitlines() == [f"['{of_the_other}']"] * 2  # by meaning, by words

    await asyncio.to_thread(write)

    texts = sorted([record.text async for batch in reader.scan() for record in batch])
    expected = [f"{name} saw thing {n}" for name in ("ann", "ben") for n in range(15)]
    assert texts == sorted([*expected, *(f"both saw {n}" for n in range(15))])
    assert (await recalled(reader, "ann thing 11"))[0] == "ann saw thing 11"
    assert (await recalled(reader, "ben thing 4"))[0] == "ben saw thing 4"
