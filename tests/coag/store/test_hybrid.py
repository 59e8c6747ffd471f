from __future__ import annotations

from typing import Any

import pytest
from kits.remembered import remembered

from coag.schema import Event, MemoryKind, RecalledRecord, Record, Trust
from coag.store import HashEmbedder, InMemoryStore, Ranking, Search

KIND = MemoryKind.EPISODIC


async def holding(*records: Record) -> InMemoryStore:
    store = InMemoryStore(HashEmbedder())
    await store.add(records)
    return store


async def hits(store: InMemoryStore, text: str, **search: Any) -> list[RecalledRecord]:
    ranking = search.pop("ranking", Ranking())
    return await store.search(Search(text=text, kind=KIND, ranking=ranking, **search))


async def texts(store: InMemoryStore, text: str, **search: Any) -> list[str]:
    return [hit.record.text for hit in await hits(store, text, **search)]


async def test_records_of_the_source_that_a_query_names_come_first() -> None:
    store = await holding(
        remembered("I bought a dog", source="Ann"),
        remembered("I bought a dog, Ann", source="Ben"),
        remembered("The weather is fine", source="Ann"),
    )
    best, second, *_ = await hits(store, "Which dog did Ann buy?")
    assert best.record.provenance.source == "Ann"
    assert [hit.why.source > 0 for hit in (best, second) if hit.why] == [True, False]


async def test_a_name_is_a_word_where_all_records_stem_from_one_source() -> None:
    others = [remembered(f"Dog {n} barked", source="Ann") for n in range(6)]
    for source, counts in (("Ben", False), ("Ann", True)):
        store = await holding(*others, remembered("Ann barked", source=source))
        found = await hits(store, "Did Ann have an aquarium?", min_score=0.0)
        share = sum(hit.why.lexical for hit in found if hit.why and "Ann" in hit.record.text)
        assert (share > 0) is counts


async def test_other_scopes_do_not_affect_a_score() -> None:
    mine = [remembered(f"the lamp in room {n}", scope="alice") for n in range(5)]
    theirs = [
        remembered(f"the lamp in room {n} of mine", scope="bob", minutes=9_999) for n in range(50)
    ]
    together, alone = await holding(*mine, *theirs), await holding(*mine)

    def parts(found: list[RecalledRecord]) -> list[object]:
        return [(hit.record, hit.why.recency, hit.why.dense) for hit in found if hit.why]

    own: dict[str, Any] = {"scopes": ("alice",)}
    assert parts(await hits(together, "room lamp", **own)) == parts(await hits(alone, "room lamp"))
    assert await texts(together, "room lamp", scopes=("carol",)) == []


async def test_records_of_a_small_scope_are_found_by_meaning_among_many_others() -> None:
    crowd = [remembered(f"lamp lamp {n}", scope="bob") for n in range(200)]
    mine = remembered("lamp and " + "many other words " * 4, scope="alice")
    store = await holding(*crowd, mine, *(remembered(f"lamp-{n} x") for n in range(30)))
    found = await hits(store, "lamp", scopes=("alice",), k=31, ranking=Ranking(alike=2.0))
    by_text = {hit.record.text: hit.why for hit in found}
    assert len(by_text) == 31
    dense = [why.dense for why in by_text.values() if why is not None]
    assert min(dense) < max(dense)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"room": "hall"}, ["the lamp in the hall"]),
        ({"watts": {"$gt": 30}}, ["the lamp in the hall"]),
        ({"trust": "untrusted"}, ["the lamp upstairs"]),
        ({"room": "nowhere"}, []),
    ],
)
async def test_filters_hold_in_recall_too(where: dict[str, Any], expected: list[str]) -> None:
    store = await holding(
        remembered("the lamp in the hall", metadata={"room": "hall", "watts": 40}),
        remembered("the lamp upstairs", trust=Trust.UNTRUSTED),
        *(remembered(f"the lamp number {n}") for n in range(100)),
    )
    assert await texts(store, "lamp", where=where) == expected


async def test_records_below_the_minimum_score_are_left_out() -> None:
    store = await holding(remembered("red lamp"), remembered("red sky over a far and wide sea"))
    (best, worse) = await hits(store, "red lamp", min_score=0.0)
    between = (best.score + worse.score) / 2
    assert await texts(store, "red lamp", min_score=between) == ["red lamp"]


LONG = "on the way from the station to the old town hall we met a man who sold apples near the"
"""So many words that one other among them is a small part."""


@pytest.mark.parametrize(
    ("one", "other", "shown"),
    [
        (f"{LONG} bridge today", f"{LONG.upper()}  bridge, today!", 1),
        (f"{LONG} bridge today", f"{LONG} bridge", 1),
        (f"{LONG} bridge 12", f"{LONG} bridge 13", 2),
        (f"{LONG} bridge", f"not {LONG} bridge", 2),
        (f"{LONG} bridge (1, 2) to (2, 1)", f"{LONG} bridge (2, 1) to (1, 2)", 2),
        ("Ann owes Ben", "Ben owes Ann", 2),
        ("many apples!?", "many apples ...", 1),
        (f"{LONG} bridge", LONG.replace("apples", "eggs") + " wood", 2),
    ],
)
async def test_texts_that_say_much_the_same_come_last(one: str, other: str, shown: int) -> None:
    third = remembered("a word of another kind")
    store = await holding(remembered(one), remembered(other), third)
    best_two = await texts(store, one, k=2, min_score=0.0)
    assert (third.text in best_two) == (shown == 1)
    assert len(await texts(store, one, k=3, min_score=0.0)) == 3  # none is hidden
    as_they_rank = await texts(store, one, k=2, ranking=Ranking(alike=2.0), min_score=0.0)
    assert set(as_they_rank) == {one, other}


async def test_a_trusted_text_does_not_come_after_an_untrusted_one() -> None:
    untrusted = remembered(f"{LONG} bridge left", source="burning building", trust=Trust.UNTRUSTED)
    trusted = remembered(f"{LONG} bridge right")
    store = await holding(untrusted, trusted, remembered("a word of another kind"))
    found = await texts(store, f"{LONG} bridge left", k=2, min_score=0.0)
    assert set(found) == {untrusted.text, trusted.text}


async def test_a_source_of_which_nothing_is_trusted_is_no_name() -> None:
    charger = remembered("The charger stands in the hall.", source="ann")
    store = await holding(
        charger,
        *(remembered(f"Where the cup is, {n} knows", source="ann") for n in range(20)),
        remembered("Hand over the keys first.", source="charger", trust=Trust.UNTRUSTED),
    )
    best, *_ = await texts(store, "Where is the charger?")
    assert best == charger.text


async def test_an_answer_is_found_beside_the_question_that_shares_its_words() -> None:
    talk = ["Where did you buy the aquarium?", "At Miller's.", "Nice weather.", "I am tired."]
    store = await holding(
        *(remembered(text, event=Event(episode="e", order=n)) for n, text in enumerate(talk)),
        *(remembered(f"nothing of note {n}") for n in range(20)),
    )
    found = await texts(store, "aquarium bought where", k=3, min_score=0.0)
    assert "At Miller's." in found


@pytest.mark.parametrize("text", ["!?", "the of and", "\u200b\u200b", "aquarium"])
async def test_query_of_which_no_word_is_known_finds_nothing_and_breaks_nothing(text: str) -> None:
    store = await holding(remembered("a red lamp"))
    assert await texts(store, text) == []
