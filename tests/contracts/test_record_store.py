"""What every store of records promises; run on each implementation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from kits.remembered import START, remembered
from numpy.typing import NDArray

from coag.errors import RecordStoreError
from coag.schema import MemoryKind, Record, Scalar, Trust, record_id
from coag.store import Embedder, HashEmbedder, RecordStore, Search, WordLlamaEmbedder

EPISODIC, SEMANTIC = MemoryKind.EPISODIC, MemoryKind.SEMANTIC


async def texts_found(store: RecordStore, **search: Any) -> list[str]:
    return [hit.record.text for hit in await store.search(Search(kind=EPISODIC, **search))]


async def test_record_comes_back_as_it_was_given(store: RecordStore) -> None:
    values: dict[str, Scalar] = {"x": 2, "share": 0.1, "whole": 3.0, "blocked": True}
    zone = timezone(timedelta(hours=2))
    record = remembered(
        'Line one\n\tline "two" \x00 ünïcödé 🤖',
        metadata={**values, "": "empty", "#document": "d"},
        type="obstacle",
        supersedes="an-older-one",
    ).model_copy(update={"created_at": datetime(2026, 3, 1, 12, 0, 0, 123456, zone)})
    before = record.model_dump()
    assert await store.add([record]) == [record.id]
    (found,) = await store.get([record.id])
    assert found == record
    assert record.model_dump() == before
    assert [type(value) for value in found.metadata.values()] == [int, float, float, bool, str, str]
    (hit,) = await store.search(Search(text=record.text, kind=EPISODIC))
    assert hit.record == record


async def test_adding_twice_stores_once_and_says_which_were_new(store: RecordStore) -> None:
    first, second = remembered("The door is open."), remembered("The door is shut.")
    later = first.model_copy(update={"created_at": START + timedelta(days=1)})
    assert await store.add([first]) == [first.id]
    assert await store.add([later, second, second]) == [second.id]
    assert await store.get([second.id, "no such id", first.id, second.id]) == [
        second,
        first,
        second,
    ]
    assert await store.count(EPISODIC) == 2


async def test_kinds_and_scopes_are_kept_apart(store: RecordStore) -> None:
    event, fact = remembered("the lamp"), remembered("the lamp", kind=SEMANTIC)
    other = remembered("the lamp", scope="bob")
    assert await store.add([event, fact, other]) == [event.id, fact.id, other.id]
    assert await texts_found(store, text="lamp", scopes=("carol",)) == []
    found = await store.search(Search(text="lamp", kind=EPISODIC, scopes=("alice",)))
    assert [hit.record.id for hit in found] == [event.id]
    everyone = await store.search(Search(text="lamp", kind=EPISODIC, scopes=("alice", "bob")))
    assert {hit.record.id for hit in everyone} == {event.id, other.id}
    assert [await store.count(kind) for kind in (EPISODIC, SEMANTIC)] == [2, 1]


async def test_a_scope_that_is_forgotten_is_gone_and_others_stay(store: RecordStore) -> None:
    event, fact = remembered("the lamp"), remembered("the lamp", kind=SEMANTIC)
    other = remembered("the lamp", scope="bob")
    await store.add([event, fact, other])
    await store.supersede(fact.id, remembered("the lamp is broken", kind=SEMANTIC))
    assert await store.forget("alice") == 3
    assert await store.get([event.id, fact.id]) == []
    assert await texts_found(store, text="lamp", scopes=("alice",)) == []
    assert await texts_found(store, text="lamp", scopes=("bob",)) == ["the lamp"]
    assert [await store.count(kind) for kind in (EPISODIC, SEMANTIC)] == [1, 0]
    assert await store.forget("alice") == 0
    assert await store.add([event]) == [event.id]
    assert await texts_found(store, text="lamp", scopes=("alice",)) == ["the lamp"]


async def test_best_match_comes_first_with_a_score_in_range(store: RecordStore) -> None:
    await store.add([remembered("red apple"), remembered("red apple pie tin"), remembered("sky")])
    hits = await store.search(Search(text="red apple", kind=EPISODIC))
    assert [hit.record.text for hit in hits] == ["red apple", "red apple pie tin"]
    assert hits[0].score == pytest.approx(1.0, abs=1e-5)
    assert hits[1].score == pytest.approx(2**-0.5, abs=1e-5)


async def test_ties_break_by_newness_even_at_the_end_of_the_list(store: RecordStore) -> None:
    texts = ["Apple!", "apple.", "APPLE", "apple?", "(apple)"]
    await store.add([remembered(text, minutes=n) for n, text in enumerate(texts)])
    assert await texts_found(store, text="apple", k=2) == ["(apple)", "apple?"]


async def test_minimum_score_is_the_embedders_unless_given(store: RecordStore) -> None:
    await store.add([remembered("red apple pie in the old tin box on a high shelf near it")])
    assert await texts_found(store, text="apple", min_score=0.9) == []
    assert await texts_found(store, text="apple and nothing else of what it says up there") == []
    assert len(await texts_found(store, text="apple and nothing else of it", min_score=0.01)) == 1


async def test_opposite_vectors_score_zero(
    make_store: Callable[[Embedder], Awaitable[RecordStore]],
) -> None:
    store = await make_store(SignEmbedder())
    await store.add([remembered("plus"), remembered("minus")])
    hits = await store.search(Search(text="plus", kind=EPISODIC, min_score=0.0))
    assert [(hit.record.text, hit.score) for hit in hits] == [("plus", 1.0), ("minus", 0.0)]


@pytest.mark.parametrize("text", ["", "  \n", "!?"])
async def test_query_without_content_finds_nothing(store: RecordStore, text: str) -> None:
    await store.add([remembered("anything"), remembered("???")])
    assert await texts_found(store, text=text, min_score=0.0) == []


async def test_listing_gives_the_newest_first(store: RecordStore) -> None:
    await store.add([remembered(f"event {n}", minutes=n) for n in range(4)])
    assert await texts_found(store, text=None, k=2) == ["event 3", "event 2"]
    assert await texts_found(store, text=None, where={"created_at": {"$lt": START}}) == []


WHERE_CASES: list[tuple[Mapping[str, Any] | None, Sequence[str]]] = [
    (None, "abc"),
    ({}, "abc"),
    ({"x": 1}, "a"),
    ({"x": 1.0}, "a"),
    ({"x": True}, ""),
    ({"x": "1"}, ""),
    ({"x": {"$eq": 2}}, "b"),
    ({"x": {"$in": [1, 3, "zwei"]}}, "a"),
    ({"x": {"$in": [2, True]}, "flag": {"$in": [True, "yes"]}}, "b"),
    ({"x": {"$gte": 1, "$lt": 2}}, "a"),
    ({"x": {"$gt": 1}}, "b"),
    ({"x": {"$lte": 1.5}}, "a"),
    ({"flag": True}, "ab"),
    ({"flag": 1}, ""),
    ({"missing": "x"}, ""),
    ({"x": 1, "flag": True}, "a"),
    ({"$and": [{"x": 1}, {"flag": False}]}, ""),
    ({"$and": [{"flag": True}]}, "ab"),
    ({"$or": [{"x": 2}, {"name": "c"}]}, "bc"),
    ({"$or": [{"x": 2}, {"x": 1, "flag": False}]}, "b"),
    ({"$or": [{}, {"x": 2}]}, "abc"),
    ({"$or": [{"$and": [{"x": {"$gt": 0}}, {"flag": True}]}, {"name": "c"}]}, "abc"),
    ({"type": "obstacle"}, "b"),
    ({"type": {"$in": ["note", "obstacle"]}}, "abc"),
    ({"scope": "alice", "source": "sensor"}, "c"),
    ({"trust": "untrusted"}, "c"),
    ({"cycle": {"$gte": 2}}, "bc"),
    ({"created_at": {"$gte": START + timedelta(minutes=1)}}, "bc"),
    ({"created_at": START.timestamp()}, "a"),
    ({"short_id": record_id(EPISODIC, "alice", "thing b")[:8]}, "b"),
]


async def test_filter_lets_through_what_it_says(store: RecordStore) -> None:
    one, two = {"x": 1, "flag": True}, {"x": 2.0, "flag": True}
    sensed: dict[str, Any] = {"source": "sensor", "trust": Trust.UNTRUSTED}
    await store.add(
        [
            remembered("thing a", metadata=one),
            remembered("thing b", metadata=two, type="obstacle", cycle=2, minutes=1),
            remembered("thing c", metadata={"name": "c"}, cycle=3, minutes=2, **sensed),
        ]
    )
    for where, expected in WHERE_CASES:
        found = await texts_found(store, text="thing", where=where, min_score=0.0)
        assert sorted(text[-1] for text in found) == list(expected), where
        assert sorted(await texts_found(store, text=None, where=where)) == sorted(found)


async def test_superseded_record_stays_but_is_not_found(store: RecordStore) -> None:
    old, new = remembered("door open"), remembered("door shut", minutes=1)
    await store.add([old])
    stored = await store.supersede(old.id, new)
    assert stored == new.model_copy(update={"supersedes": old.id})
    marked = old.model_copy(update={"superseded_by": new.id})
    assert await store.get([old.id, new.id]) == [marked, stored]
    assert await texts_found(store, text="door") == ["door shut"]
    assert await texts_found(store, text=None) == ["door shut"]
    everything = await texts_found(store, text="door", include_superseded=True)
    assert sorted(everything) == ["door open", "door shut"]


async def test_text_that_holds_again_becomes_current_again(store: RecordStore) -> None:
    opened, shut = remembered("door open"), remembered("door shut")
    await store.add([opened])
    await store.supersede(opened.id, shut)
    assert (await store.add([opened])) == []
    assert await texts_found(store, text="door") == ["door shut"]
    await store.supersede(shut.id, opened)
    assert await texts_found(store, text="door") == ["door open"]
    (shut_now,) = await store.get([shut.id])
    assert shut_now.superseded_by == opened.id


@pytest.mark.parametrize(
    ("old_text", "new", "problem"),
    [
        ("never stored", remembered("new"), "no record"),
        ("old", remembered("old"), "cannot supersede itself"),
        ("old", remembered("new", kind=SEMANTIC), "cannot supersede it"),
        ("old", remembered("new", scope="bob"), "cannot supersede it"),
        ("oldest", remembered("new"), "was superseded by"),
    ],
)
async def test_impossible_supersession_is_refused(
    store: RecordStore, old_text: str, new: Record, problem: str
) -> None:
    oldest, old = remembered("oldest"), remembered("old")
    await store.add([oldest])
    await store.supersede(oldest.id, old)
    with pytest.raises(RecordStoreError, match=problem):
        await store.supersede(record_id(EPISODIC, "alice", old_text), new)
    assert await store.count(EPISODIC) == 2


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**60, "\ud800"])
async def test_metadata_that_cannot_be_kept_exactly_is_refused(
    store: RecordStore, value: Scalar
) -> None:
    bad = remembered("bad").model_copy(update={"metadata": {"key": value}})
    with pytest.raises(ValueError, match="'key'"):
        await store.add([remembered("good"), bad])
    with pytest.raises(ValueError, match="'key'"):
        await store.supersede("whatever", bad)
    assert await store.count(EPISODIC) == 0


async def test_concurrent_adds_of_the_same_records_store_each_once(store: RecordStore) -> None:
    records = [remembered(f"event {n}") for n in range(20)]
    stored = await asyncio.gather(*(store.add(records) for _ in range(5)))
    assert sorted(one for ids in stored for one in ids) == sorted(r.id for r in records)
    assert await store.count(EPISODIC) == 20


async def test_many_records_go_in_at_once(
    make_store: Callable[[Embedder], Awaitable[RecordStore]],
) -> None:
    store = await make_store(WordLlamaEmbedder())
    records = [remembered(f"event number {n}", minutes=n) for n in range(1100)]
    assert len(await store.add(records)) == 1100
    assert await store.count(EPISODIC) == 1100
    assert await texts_found(store, text="event number 777", k=1) == ["event number 777"]
    assert len(await store.get([record.id for record in records])) == 1100


async def test_embedder_that_gives_the_wrong_shape_is_reported(
    make_store: Callable[[Embedder], Awaitable[RecordStore]],
) -> None:
    store = await make_store(LyingEmbedder(dimension=8, gives=[1.0, 2.0]))
    with pytest.raises(RecordStoreError, match=r"'lying' gave vectors of shape \(1, 2\)"):
        await store.add([remembered("text")])


async def test_closed_store_refuses_everything(store: RecordStore) -> None:
    await store.close()
    await store.close()
    with pytest.raises(RecordStoreError, match="closed"):
        await store.add([remembered("late")])
    with pytest.raises(RecordStoreError, match="closed"):
        await store.search(Search(text="late", kind=EPISODIC))


async def test_the_same_question_is_embedded_once(
    make_store: Callable[[Embedder], Awaitable[RecordStore]],
) -> None:
    embedder = CountingEmbedder(8)
    store = await make_store(embedder)
    await store.add([remembered("red apple")])
    for _ in range(3):
        assert await texts_found(store, text="apple") == ["red apple"]
    assert embedder.asked == ["apple"]
    for number in range(40):
        await texts_found(store, text=f"apple {number}")
    await texts_found(store, text="apple")
    assert embedder.asked.count("apple") == 2


class CountingEmbedder(HashEmbedder):
    """Notes what is asked."""

    def __init__(self, dimension: int) -> None:
        super().__init__(dimension)
        self.asked: list[str] = []

    def embed_query(self, text: str) -> NDArray[np.float32]:
        self.asked.append(text)
        return super().embed_query(text)


class SignEmbedder(HashEmbedder):
    """Two opposite vectors."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        rows[:, 0] = [5.0 if text == "plus" else -0.5 for text in texts]
        return rows


class LyingEmbedder:
    """Gives the same row for everything, whatever it said about itself."""

    name = "lying"
    minimum_similarity = 0.0

    def __init__(self, *, dimension: int, gives: Sequence[float]) -> None:
        self.dimension = dimension
        self._gives = gives

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([self._gives for _ in texts], dtype=np.float32)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        return self.embed([text])
