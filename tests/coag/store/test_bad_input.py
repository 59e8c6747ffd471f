"""Bad records, texts and files: an error, or the answer that is described."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kits.remembered import remembered

from coag.errors import RecordStoreError
from coag.schema import Event, Fact, MemoryKind, Record
from coag.store import (
    DEFAULT_RANKING,
    ChromaStore,
    HashEmbedder,
    InMemoryStore,
    RecordStore,
    Search,
    WordLlamaEmbedder,
    parse_where,
)
from coag.store.lexical import Lexicon
from coag.store.records import from_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EPISODIC = MemoryKind.EPISODIC


class Counting(HashEmbedder):
    """Counts the texts that it is given."""

    texts = 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += len(texts)
        return super().embed(texts)


@pytest.fixture(params=["memory", "folder"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RecordStore]:
    embedder = Counting(64)
    made = InMemoryStore(embedder) if request.param == "memory" else ChromaStore(tmp_path, embedder)
    yield made
    await made.close()


async def found(store: RecordStore, text: str, **how: Any) -> list[str]:
    search = Search(text=text, kind=EPISODIC, k=3, min_score=0.1, **how)
    return [hit.record.text for hit in await store.search(search)]


async def test_ten_thousand_times_the_same_is_one_record_and_one_vector(store: RecordStore) -> None:
    same = remembered("said again and again")
    assert await store.add([same] * 10_000) == [same.id]
    assert await store.add([same] * 10_000) == []
    assert await store.count(EPISODIC) == 1
    assert isinstance(store, ChromaStore | InMemoryStore)
    assert isinstance(store.embedder, Counting)
    assert store.embedder.texts == 1
    assert await found(store, "said again", ranking=DEFAULT_RANKING) == [same.text]


async def test_text_of_a_megabyte_is_kept_and_found(store: RecordStore) -> None:
    large = remembered("elephant " + "and so it goes on " * 58_000)
    await store.add([large, remembered("a small mouse")])
    assert await store.get([large.id]) == [large]
    assert await found(store, "elephant", ranking=DEFAULT_RANKING) == [large.text]
    assert (await found(store, large.text))[0] == large.text


async def test_control_and_invisible_characters_are_kept_as_they_are_and_hide_no_words(
    store: RecordStore,
) -> None:
    texts = {
        "zebra": "before\0after zebra",
        "tapir": "bell\x07 and escape \x1b[31m tapir",
        "camel": "\u200b\u200e\u202e turned \u202c camel",
        "moose": "\ufeffmarked moose",
        "otter": "otter\r\n\x0b\x0c\x85\u2028end",
    }
    records = [remembered(text) for text in texts.values()]
    await store.add(records)
    assert await store.get([record.id for record in records]) == records
    for word, text in texts.items():
        assert await found(store, word) == [text]
        assert await found(store, word, ranking=DEFAULT_RANKING) == [text]


def spoiled() -> list[Record]:
    good = remembered("a wolf", event=Event(), fact=Fact(subject="wolf"))
    lone = "\ud800"
    return [
        good.model_copy(update={"text": f"a wolf {lone}"}),
        good.model_copy(update={"type": lone}),
        good.model_copy(update={"metadata": {"a": lone}}),
        good.model_copy(update={"event": Event().model_copy(update={"outcome": lone})}),
        good.model_copy(update={"fact": Fact(subject="wolf").model_copy(update={"value": lone})}),
    ]


async def test_what_is_no_unicode_is_refused_with_all_that_came_with_it(store: RecordStore) -> None:
    for number, record in enumerate(spoiled()):
        good = remembered(f"good {number}")
        with pytest.raises(ValueError, match="no valid Unicode text"):
            await store.add([good, record])
        assert await store.count(EPISODIC) == 0


async def test_strange_queries_find_nothing_and_break_nothing(store: RecordStore) -> None:
    await store.add([remembered("an old oak")])
    for ranking in (None, DEFAULT_RANKING):
        for query in ("\ud800", "\0", "a\0b", "'\"; DROP TABLE words", "NEAR(a b)*"):
            assert await found(store, query, ranking=ranking) == []
        assert await found(store, "old oak", ranking=ranking) == ["an old oak"]


async def opened(folder: Path) -> ChromaStore:
    return await ChromaStore.open(folder, HashEmbedder(8))


@pytest.mark.parametrize("how", ["rubbish", "cut"])
async def test_a_broken_database_of_chroma_is_reported_and_left_as_it_is(
    tmp_path: Path, how: str
) -> None:
    store = await opened(tmp_path)
    await store.add([remembered(f"event {number}") for number in range(20)])
    await store.close()
    database = tmp_path / "chroma.sqlite3"
    sound, words = database.read_bytes(), (tmp_path / "coag-words.sqlite3").read_bytes()
    broken = b"This is no database. " * 500 if how == "rubbish" else sound[: len(sound) // 2]
    database.write_bytes(broken)
    with pytest.raises(RecordStoreError, match=f"Chroma at {tmp_path}: .*(malformed|not a data)"):
        await opened(tmp_path)
    assert database.read_bytes()[:1000] == broken[:1000]
    assert (tmp_path / "coag-words.sqlite3").read_bytes() == words


@pytest.mark.parametrize("how", ["removed", "emptied"])
async def test_words_of_records_that_chroma_lost_are_not_thrown_away(
    tmp_path: Path, how: str
) -> None:
    store = await opened(tmp_path)
    await store.add([remembered(f"event {number}") for number in range(20)])
    await store.close()
    database, words = tmp_path / "chroma.sqlite3", tmp_path / "coag-words.sqlite3"
    sound = database.read_bytes()
    database.unlink() if how == "removed" else database.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(RecordStoreError, match=r"knows 20 record\(s\), but Chroma has none"):
            await opened(tmp_path)
    database.write_bytes(sound)
    with closing(Lexicon(words)) as lexicon:
        assert lexicon.count() == 20


async def test_memory_that_was_emptied_on_purpose_is_opened_again(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    await store.add([remembered("event")])
    await store.forget("alice")
    await store.close()
    again = await opened(tmp_path)
    assert await again.count(EPISODIC) == 0
    await again.close()


def test_a_row_that_is_no_record_is_named() -> None:
    with pytest.raises(RecordStoreError, match="'the lamp' cannot be read"):
        from_json("the lamp", '{"id": "1", "dynamics": {"strength": null}}')


@pytest.mark.parametrize("value", [10**400, -(10**400), float("nan"), float("inf")])
async def test_a_number_that_no_store_keeps_is_refused_in_filters(value: float) -> None:
    with pytest.raises(ValueError, match="as text"):
        parse_where({"n": value})


async def test_a_query_that_is_no_valid_unicode_is_answered() -> None:
    store = InMemoryStore(WordLlamaEmbedder())
    await store.add([remembered("The code is 4711.")])
    search = Search(text="code \ud800", kind=EPISODIC, k=5, ranking=DEFAULT_RANKING)
    assert len(await store.search(search)) == 1
