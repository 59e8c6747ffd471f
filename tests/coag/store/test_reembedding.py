"""Another embedder for the records of a folder: complete, resumable, nothing lost or doubled."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from chromadb.api.client import Client
from chromadb.api.models.Collection import Collection
from kits.chroma_folders import SlowEmbedder, foreign_client
from kits.remembered import remembered

from coag.errors import ConfigurationError, EmbedderMismatchError, RecordStoreError
from coag.schema import Fact, MemoryKind, Record
from coag.store import (
    DEFAULT_RANKING,
    ChromaStore,
    HashEmbedder,
    ReembedProgress,
    Search,
    abandon_reembedding,
    plan_reembedding,
    reembed,
    unfinished_reembedding,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

pytestmark = pytest.mark.timeout(120)
OLD, NEW, THIRD = HashEmbedder(16), HashEmbedder(24), HashEmbedder(8)
COUNT = 21


def seen(number: int) -> Record:
    kind = MemoryKind.SEMANTIC if number % 3 == 0 else MemoryKind.EPISODIC
    fact = Fact(subject="door", attribute=f"a{number}", value="x") if number % 3 == 0 else None
    return remembered(
        f"event number {number} word{number}",
        kind=kind,
        scope="alice" if number % 2 else "bob",
        run="r",
        metadata={"n": number, "even": number % 2 == 0},
        fact=fact,
    )


async def filled(folder: Path) -> dict[str, Record]:
    """A store with records of both kinds, one of them superseded; what it holds."""
    store = await ChromaStore.open(folder, OLD)
    await store.add([seen(number) for number in range(COUNT)])
    await store.supersede(seen(4).id, remembered("event number 4, anew", scope="bob"))
    there = await everything(store)
    await store.close()
    return there


async def everything(store: ChromaStore) -> dict[str, Record]:
    """All records, in their order."""
    return {record.id: record async for batch in store.scan() for record in batch}


async def opened(folder: Path, embedder: HashEmbedder = NEW) -> dict[str, Record]:
    """What a store holds, once it is open; some are looked for by their words and meaning."""
    store = await ChromaStore.open(folder, embedder)
    there = await everything(store)
    current = [one for one in there.values() if one.superseded_by is None]
    for record in current[::6]:
        for ranking in (None, DEFAULT_RANKING):
            search = Search(
                text=record.text,
                kind=record.kind,
                scopes=(record.scope,),
                k=COUNT,
                ranking=ranking,
                min_score=0.0,
            )
            assert record.id in [hit.record.id for hit in await store.search(search)]
    await store.close()
    return there


def collections(folder: Path) -> list[str]:
    """The names of the collections in a folder."""
    client = foreign_client(folder)
    names = sorted(one.name for one in client.list_collections())
    client.close()
    return names


class Stop(Exception):
    """Ends a re-embedding."""


class Tired(HashEmbedder):
    """Makes so many vectors and no more."""

    def __init__(self, vectors: int) -> None:
        super().__init__(NEW.dimension)
        self.left = vectors

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.left -= len(texts)
        if self.left < 0:
            raise Stop
        return super().embed(texts)


async def half_done(folder: Path, vectors: int = 9) -> None:
    with pytest.raises(Stop):
        await reembed(folder, Tired(vectors), batch=4)


async def test_all_records_are_found_as_they_were_with_the_new_embedder(tmp_path: Path) -> None:
    before = await filled(tmp_path)
    reports: list[ReembedProgress] = []
    assert await reembed(tmp_path, NEW, batch=4, progress=reports.append) == len(before)
    after = await opened(tmp_path)
    assert list(after.items()) == list(before.items())  # all fields, and the order of arrival
    assert collections(tmp_path) == ["coag-episodic", "coag-semantic"]
    assert [one.done for one in reports] == sorted(one.done for one in reports)
    assert {one.total for one in reports} == {len(before)}
    assert (reports[-1].stage, reports[-1].done) == ("switched", len(before))
    with pytest.raises(EmbedderMismatchError, match="coag memory reembed"):
        await ChromaStore.open(tmp_path, OLD)


async def test_half_way_only_the_old_embedder_is_served_and_the_way_on_is_named(
    tmp_path: Path,
) -> None:
    before = await filled(tmp_path)
    await half_done(tmp_path)
    assert await opened(tmp_path, OLD) == before
    with pytest.raises(ConfigurationError, match=r"for embedder 'hash-24'.*coag memory reembed"):
        await ChromaStore.open(tmp_path, NEW)
    plan = await plan_reembedding(tmp_path, NEW)
    assert (plan.state, plan.records, plan.left) == ("half_way", len(before), len(before) - 8)
    state = await unfinished_reembedding(tmp_path)
    assert state is not None
    assert (state.embedder, state.left, state.records) == (
        "hash-24",
        len(before) - 8,
        len(before),
    )
    # what is there already is not embedded again
    assert await reembed(tmp_path, Tired(len(before) - 8), batch=4) == len(before)
    assert await opened(tmp_path) == before


async def test_what_was_written_half_way_is_caught_up_in_its_order(tmp_path: Path) -> None:
    await filled(tmp_path)
    await half_done(tmp_path)
    store = await ChromaStore.open(tmp_path, OLD)
    await store.delete([seen(1).id, seen(5).id, seen(20).id])
    await store.add([seen(1), remembered("a thing that came later")])
    await store.update([seen(2).model_copy(update={"type": "other", "metadata": {"n": -2}})])
    await store.supersede(seen(7).id, remembered("event number 7, anew"))
    await store.forget("nobody")
    expected = await everything(store)
    await store.close()
    await reembed(tmp_path, NEW, batch=4)
    assert list((await opened(tmp_path)).items()) == list(expected.items())


async def test_store_that_was_open_meanwhile_refuses_to_write_where_nothing_is_read(
    tmp_path: Path,
) -> None:
    await filled(tmp_path)
    store = await ChromaStore.open(tmp_path, OLD)
    await reembed(tmp_path, NEW)
    with pytest.raises(RecordStoreError, match="re-embedded meanwhile: open the store again"):
        await store.add([seen(100)])
    await store.close()
    assert seen(100).id not in await opened(tmp_path)


async def test_write_into_a_collection_that_was_renamed_is_not_acknowledged(tmp_path: Path) -> None:
    await filled(tmp_path)
    store = await ChromaStore.open(tmp_path, OLD)
    client = foreign_client(tmp_path)
    client.get_collection("coag-episodic", embedding_function=None).modify(name="coag-episodic.old")
    with pytest.raises(RecordStoreError, match="this write may be lost"):
        await store.add([seen(100)])
    with pytest.raises(RecordStoreError, match="this write may be lost"):
        await store.delete([seen(1).id])
    await store.close()
    client.close()


class Breaking:
    """Raises right before the nth change of Chroma's collections."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: int | None = None
        for name in ("add", "update", "delete", "modify"):
            self._count(monkeypatch, Collection, name)
        for name in ("create_collection", "delete_collection"):
            self._count(monkeypatch, Client, name)

    def _count(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def counted(*given: Any, **named: Any) -> Any:
            if self.left is not None:
                self.left -= 1
                if self.left < 0:
                    raise Stop
            return original(*given, **named)

        monkeypatch.setattr(owner, name, counted)


async def test_interrupted_before_any_of_its_changes_it_is_completed_by_repeating_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await filled(tmp_path / "filled")
    breaking = Breaking(monkeypatch)
    done: list[int] = []
    changes = 11  # two are made, three times filled, two and two renamed, two removed
    for number in (1, 5, 7, 9):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "filled", folder)
        breaking.left = number
        with pytest.raises(RecordStoreError) as caught:
            await reembed(folder, NEW, batch=10)
        assert isinstance(caught.value.__cause__, Stop)
        breaking.left = None
        state = await unfinished_reembedding(folder)
        assert state is not None
        assert (state.embedder, state.records) == (NEW.name, len(before))
        done.append(state.records - state.left)
        await either_is_complete_or_refused(folder, before)
        assert await reembed(folder, NEW, batch=10) == len(before)
        assert collections(folder) == ["coag-episodic", "coag-semantic"]
        assert await opened(folder) == before
        assert await unfinished_reembedding(folder) is None
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, len(before))
    breaking.left = changes
    assert await reembed(tmp_path / "filled", NEW, batch=10) == len(before)


async def either_is_complete_or_refused(folder: Path, before: Mapping[str, Record]) -> None:
    """Every embedder that opens the store finds all records."""
    for embedder in (OLD, NEW):
        try:
            store = await ChromaStore.open(folder, embedder)
        except ConfigurationError:  # its text is looked at in other tests
            continue
        assert await everything(store) == before
        await store.close()


async def test_another_embedder_is_refused_until_the_first_is_done_or_abandoned(
    tmp_path: Path,
) -> None:
    before = await filled(tmp_path)
    await half_done(tmp_path)
    with pytest.raises(ConfigurationError, match="for embedder 'hash-24', not 'hash-8'"):
        await reembed(tmp_path, THIRD)
    assert await abandon_reembedding(tmp_path)
    assert not await abandon_reembedding(tmp_path)
    assert collections(tmp_path) == ["coag-episodic", "coag-semantic"]
    assert await reembed(tmp_path, THIRD) == len(before)
    assert await opened(tmp_path, THIRD) == before


async def test_switch_that_has_begun_can_only_be_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await filled(tmp_path)
    with monkeypatch.context() as patches:
        breaking = Breaking(patches)
        breaking.left = 5  # two are made, two are filled, one is renamed
        with pytest.raises(RecordStoreError):
            await reembed(tmp_path, NEW)
    with pytest.raises(RecordStoreError, match=r"has begun to switch.*Complete it"):
        await abandon_reembedding(tmp_path)
    for embedder in (OLD, NEW):
        with pytest.raises(ConfigurationError, match="coag memory reembed"):
            await ChromaStore.open(tmp_path, embedder)
    await reembed(tmp_path, NEW)
    assert await opened(tmp_path) == before


async def test_collections_that_do_not_belong_together_are_left_alone(tmp_path: Path) -> None:
    await filled(tmp_path)
    client = foreign_client(tmp_path)
    client.create_collection("coag-episodic.old", embedding_function=None)
    client.close()
    with pytest.raises(RecordStoreError, match="the one is no copy of the other"):
        await reembed(tmp_path, NEW)
    assert "coag-episodic.old" in collections(tmp_path)


async def test_the_plan_says_what_is_to_be_done_and_changes_nothing(tmp_path: Path) -> None:
    before = await filled(tmp_path)
    plan = await plan_reembedding(tmp_path, NEW)
    assert (plan.state, plan.made_with, plan.embedder) == ("needed", ("hash-16",), "hash-24")
    assert (plan.records, plan.left) == (len(before), len(before))
    assert 0 < plan.seconds < 60
    assert collections(tmp_path) == ["coag-episodic", "coag-semantic"]
    await reembed(tmp_path, NEW)
    plan = await plan_reembedding(tmp_path, NEW)
    assert (plan.state, plan.left, plan.seconds) == ("done", 0, 0.0)
    reports: list[ReembedProgress] = []
    assert await reembed(tmp_path, NEW, progress=reports.append) == len(before)
    assert [one.stage for one in reports] == ["switched"]  # the vectors are right already
    assert await opened(tmp_path) == before


async def test_where_there_is_no_store_none_is_made(tmp_path: Path) -> None:
    for call in (reembed, plan_reembedding):
        with pytest.raises(RecordStoreError, match="There is no store of records at"):
            await call(tmp_path / "nothing", NEW)
    with pytest.raises(RecordStoreError, match="There is no store of records at"):
        await unfinished_reembedding(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    await filled(tmp_path)
    with pytest.raises(RecordStoreError, match="no collections 'other' at"):
        await reembed(tmp_path, NEW, collection="other")
    with pytest.raises(ValueError, match="batch must be at least 1, not 0"):
        await reembed(tmp_path, NEW, batch=0)


async def test_newer_format_is_neither_opened_nor_re_embedded(tmp_path: Path) -> None:
    await filled(tmp_path)
    client = foreign_client(tmp_path)
    collection = client.get_collection("coag-semantic", embedding_function=None)
    assert collection.metadata["format"] == 1
    collection.modify(metadata={**collection.metadata, "format": 2})
    client.close()
    newer = r"'coag-semantic' is of format 2; .* up to 1\. Open it with a newer version"
    with pytest.raises(RecordStoreError, match=newer):
        await ChromaStore.open(tmp_path, OLD)
    with pytest.raises(RecordStoreError, match=newer):
        await reembed(tmp_path, NEW)


async def test_store_without_a_format_is_of_the_first(tmp_path: Path) -> None:
    before = await filled(tmp_path)
    client = foreign_client(tmp_path)
    collection = client.get_collection("coag-semantic", embedding_function=None)
    collection.modify(metadata={"embedder": "hash-16", "dimension": 16})
    client.close()
    assert await opened(tmp_path, OLD) == before


async def test_a_cancelled_call_waits_for_its_step_and_can_continue_later(
    tmp_path: Path,
) -> None:
    before = await filled(tmp_path)
    embedder = SlowEmbedder(NEW.dimension)
    work = asyncio.create_task(reembed(tmp_path, embedder, batch=4))
    await asyncio.to_thread(embedder.started.wait)
    work.cancel()
    await asyncio.sleep(0)
    assert not work.done()
    embedder.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert (await plan_reembedding(tmp_path, NEW)).left == len(before) - 4
    await reembed(tmp_path, NEW)
    assert await opened(tmp_path) == before
