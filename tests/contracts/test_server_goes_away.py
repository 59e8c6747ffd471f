"""A Chroma server that ends in the middle of a write, and comes back."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from kits.chroma_servers import ChromaServer
from kits.remembered import remembered

from coag.errors import ConfigurationError, EmbedderMismatchError, RecordStoreError
from coag.schema import MemoryKind, Record
from coag.store import DEFAULT_RANKING, ChromaStore, HashEmbedder, Search, reembed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
LATER = HashEmbedder(32)


async def opened(server: ChromaServer, embedder: HashEmbedder | None = None) -> ChromaStore:
    return await ChromaStore.open(server.address, embedder or HashEmbedder())


async def everything(store: ChromaStore) -> list[Record]:
    return [record async for batch in store.scan() for record in batch]


async def found(store: ChromaStore, text: str, *, by_words: bool) -> list[str]:
    ranking = DEFAULT_RANKING if by_words else None
    search = Search(text=text, kind=MemoryKind.EPISODIC, k=3, ranking=ranking, min_score=0.1)
    return [hit.record.text for hit in await store.search(search)]


async def test_nothing_acknowledged_is_lost_nothing_is_doubled_and_the_retry_completes(
    server: ChromaServer,
) -> None:
    store = await opened(server)
    acknowledged: list[Record] = []
    enough = asyncio.Event()

    async def write() -> list[Record]:
        """Writes until a write fails; gives the one that failed."""
        number = 0
        while True:
            number += 1
            batch = [remembered(f"event {number} part{number}x{part}") for part in range(20)]
            try:
                await store.add(batch)
            except RecordStoreError:
                return batch
            acknowledged.extend(batch)
            if number == 5:
                enough.set()

    writing = asyncio.create_task(write())
    await enough.wait()
    await asyncio.to_thread(server.kill)
    failed = await writing
    for call in (store.get([failed[0].id]), found(store, "event", by_words=True)):
        with pytest.raises(RecordStoreError, match="Chroma at http:"):
            await call
    await asyncio.to_thread(server.start)

    there = {record.id for record in await everything(store)}
    assert {record.id for record in acknowledged} <= there
    assert there <= {record.id for record in [*acknowledged, *failed]}
    await store.add(failed)

    expected = sorted(record.text for record in [*acknowledged, *failed])
    assert sorted(record.text for record in await everything(store)) == expected
    for record in (acknowledged[0], acknowledged[-1], failed[-1]):
        for by_words in (True, False):
            assert (await found(store, record.text, by_words=by_words))[0] == record.text
    await store.close()


async def test_no_thread_waits_for_ever_for_a_server_that_hangs(server: ChromaServer) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    store, late = (ChromaStore(server.address, HashEmbedder(), timeout=2) for _ in range(2))
    store.timeout = late.timeout = 60  # that of all requests of a call; one has two seconds
    await store.add([remembered("before")])
    server.hang()
    for one in (store, late):
        with pytest.raises(RecordStoreError, match=r"Chroma at http:.*(did not answer|timed out)"):
            await one.count(MemoryKind.EPISODIC)
        await asyncio.to_thread(lambda: None)  # the only thread is free again

    server.wake()
    await store.add([remembered("after")])
    assert [record.text for record in await everything(late)] == ["before", "after"]
    await store.close()
    await late.close()


async def test_re_embedding_continues_when_the_server_is_back(server: ChromaServer) -> None:
    store = await opened(server)
    records = [remembered(f"event {number} word{number}") for number in range(60)]
    await store.add(records)

    with pytest.raises(RecordStoreError, match="Chroma at"):
        await reembed(server.address, LATER, batch=10, progress=lambda _: server.kill())
    await asyncio.to_thread(server.start)

    with pytest.raises(ConfigurationError, match="coag memory reembed"):
        await opened(server, LATER)
    late = remembered("written by one who has it open")
    await store.add([late])
    assert await reembed(server.address, LATER, batch=10) == 61
    with pytest.raises(RecordStoreError, match="re-embedded"):
        await store.add([remembered("written too late")])
    with pytest.raises(EmbedderMismatchError):
        await opened(server)
    await store.close()

    after = await opened(server, LATER)
    assert [one.text for one in await everything(after)] == [one.text for one in [*records, late]]
    for by_words in (True, False):
        assert (await found(after, "event 7 word7", by_words=by_words))[0] == "event 7 word7"
    await after.close()


async def test_those_who_write_to_a_server_while_it_is_re_embedded_lose_nothing(
    server: ChromaServer,
) -> None:
    store = await opened(server)
    await store.add([remembered(f"event {number}") for number in range(40)])
    acknowledged: list[str] = []
    elsewhere = server.address.replace("127.0.0.1", "localhost")  # shares no lock with us
    other = await ChromaStore.open(elsewhere, HashEmbedder())
    begun = asyncio.Event()

    async def write() -> None:
        number = 0
        while True:
            number += 1
            record = remembered(f"meanwhile {number}")
            try:
                await other.add([record])
            except RecordStoreError:
                return
            acknowledged.append(record.text)
            begun.set()

    writing = asyncio.create_task(write())
    await begun.wait()
    await reembed(server.address, LATER, batch=10)
    await writing
    await other.close()
    await store.close()

    after = await opened(server, LATER)
    texts = [record.text for record in await everything(after)]
    assert len(texts) == len(set(texts))
    assert {*acknowledged, *(f"event {number}" for number in range(40))} <= set(texts)
    await after.close()
