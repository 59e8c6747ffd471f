from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kits.chroma_folders import SlowEmbedder, foreign_client
from kits.remembered import remembered

from coag.errors import EmbedderMismatchError, RecordStoreError
from coag.schema import MemoryKind, Scalar
from coag.store import ChromaStore, HashEmbedder, InMemoryStore, Search

EPISODIC = MemoryKind.EPISODIC


async def test_records_are_there_when_the_folder_is_opened_again(tmp_path: Path) -> None:
    first = await ChromaStore.open(tmp_path / "deep" / "folder", HashEmbedder())
    await first.add([remembered("the lamp is red")])
    await first.close()
    second = ChromaStore(str(tmp_path / "deep" / "folder"), HashEmbedder())
    hits = await second.search(Search(text="red lamp", kind=EPISODIC))
    await second.close()
    assert [hit.record for hit in hits] == [remembered("the lamp is red")]


async def test_one_folder_can_be_opened_twice_at_once(tmp_path: Path) -> None:
    one = await ChromaStore.open(tmp_path, HashEmbedder())
    other = await ChromaStore.open(tmp_path / ".." / tmp_path.name, HashEmbedder())
    await one.add([remembered("seen by both")])
    assert await other.count(EPISODIC) == 1
    await one.close()
    assert await other.add([remembered("seen by both"), remembered("by one")]) == [
        remembered("by one").id
    ]
    await other.close()


async def test_store_opens_itself_once_at_first_use(tmp_path: Path) -> None:
    store = ChromaStore(tmp_path / "folder", HashEmbedder())
    assert not (tmp_path / "folder").exists()
    counts = await asyncio.gather(*(store.count(EPISODIC) for _ in range(6)))
    await store.close()
    assert counts == [0] * 6


async def test_another_embedder_is_refused_and_the_way_out_named(tmp_path: Path) -> None:
    store = await ChromaStore.open(tmp_path, HashEmbedder(64))
    await store.close()
    with pytest.raises(EmbedderMismatchError) as caught:
        await ChromaStore.open(tmp_path, HashEmbedder(32))
    assert str(caught.value) == (
        "Collection 'coag-episodic' was made with embedder 'hash-64' of dimension 64, but "
        "'hash-32' of dimension 32 was given. Open it with 'hash-64' of dimension 64 (one of ours "
        "by its name: `open_store(LOCATION, embedder='hash-64')`), or make new vectors for its "
        "records: `coag memory reembed`."
    )


async def test_folder_that_is_not_ours_is_reported(tmp_path: Path) -> None:
    l2, other, file = tmp_path / "l2", tmp_path / "other", tmp_path / "file"
    client = foreign_client(l2)
    ours = {"embedder": "hash-8", "dimension": 8}
    client.create_collection("coag-episodic", metadata=ours, embedding_function=None)
    elsewhere = foreign_client(other, allow_reset=True)
    file.write_text("not a folder")
    for path, problem in (
        (l2, "measures 'l2', not 'cosine'"),
        (other, "different settings"),
        (file, "file"),
    ):
        with pytest.raises(RecordStoreError, match=problem):
            await ChromaStore.open(path, HashEmbedder(8))
    client.close()
    elsewhere.close()


async def test_a_name_that_chroma_refuses_is_reported_as_that(tmp_path: Path) -> None:
    with pytest.raises(RecordStoreError, match=r"(?i)expected a name") as refused:
        await ChromaStore.open(tmp_path, HashEmbedder(), collection="../lamp")
    assert "removed" not in str(refused.value)


async def test_a_folder_that_cannot_be_looked_into_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RecordStoreError, match=r"cannot be read: .*too long"):
        await ChromaStore.open(tmp_path / ("x" * 300), HashEmbedder())


async def test_server_that_does_not_answer_is_reported() -> None:
    with pytest.raises(RecordStoreError, match="Could not connect to a Chroma server"):
        await ChromaStore.open("http://127.0.0.1:9", HashEmbedder())


async def test_operation_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    embedder = SlowEmbedder()
    store = ChromaStore(tmp_path, embedder)
    await store.count(EPISODIC)
    impatient = ChromaStore(tmp_path, embedder, timeout=0.05)
    with pytest.raises(RecordStoreError, match=r"did not answer within 0\.05 s"):
        await impatient.add([remembered("slow")])
    embedder.go_on.set()
    await store.close()


async def test_the_event_loop_runs_while_a_record_is_stored(tmp_path: Path) -> None:
    embedder = SlowEmbedder()
    store = await ChromaStore.open(tmp_path, embedder)
    adding = asyncio.create_task(store.add([remembered("slow")]))
    await asyncio.to_thread(embedder.started.wait)
    assert not adding.done()  # we run although the add does not
    embedder.go_on.set()
    assert await adding == [remembered("slow").id]
    await store.close()


async def test_large_vectors_are_stored_in_several_calls(tmp_path: Path) -> None:
    store = await ChromaStore.open(tmp_path, HashEmbedder(20_000))
    records = [remembered(f"event {n}", minutes=n) for n in range(40)]
    assert len(await store.add(records)) == 40
    assert await store.count(EPISODIC) == 40
    await store.close()


async def test_matching_records_behind_many_others_are_found(tmp_path: Path) -> None:
    store = await ChromaStore.open(tmp_path, HashEmbedder())
    crowd = [remembered(f"apple {'x ' * n}", metadata={"n": n}) for n in range(60)]
    await store.add([*crowd, remembered("apple and many other words here", metadata={"n": -1})])
    hits = await store.search(Search(text="apple", kind=EPISODIC, k=3, where={"n": -1}))
    assert [hit.record.metadata["n"] for hit in hits] == [-1]
    await store.close()


VALUES = st.one_of(
    st.sampled_from(["a", "b", "1", ""]), st.sampled_from([0, 1, 2, 1.0, 0.5]), st.booleans()
)
KEYS = st.sampled_from(["x", "y"])
RANGES = st.dictionaries(
    st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), st.integers(0, 2), min_size=1
)
LEAVES = st.dictionaries(
    KEYS,
    VALUES | RANGES | st.fixed_dictionaries({"$in": st.lists(VALUES, min_size=1, max_size=3)}),
    max_size=2,
)
FILTERS = st.recursive(
    LEAVES,
    lambda parts: st.dictionaries(
        st.sampled_from(["$and", "$or"]), st.lists(parts, min_size=1, max_size=3), min_size=1
    ),
    max_leaves=5,
)


@given(
    metadatas=st.lists(st.dictionaries(KEYS, VALUES), min_size=4, max_size=4),
    filters=st.lists(FILTERS, min_size=5, max_size=5),
)
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_filters_mean_the_same_in_chroma_and_in_memory(
    tmp_path_factory: pytest.TempPathFactory,
    metadatas: list[dict[str, Scalar]],
    filters: list[dict[str, Any]],
) -> None:
    records = [remembered(f"thing {n}", metadata=metadata) for n, metadata in enumerate(metadatas)]

    async def compare() -> None:
        memory = InMemoryStore(HashEmbedder(8))
        chroma = await ChromaStore.open(tmp_path_factory.mktemp("filters"), HashEmbedder(8))
        await memory.add(records)
        await chroma.add(records)
        for where in filters:
            search = Search(text=None, kind=EPISODIC, k=10, where=where)
            assert await memory.search(search) == await chroma.search(search), where
        await chroma.close()

    asyncio.run(compare())
