"""What every store promises of records that are changed, removed or all gone through."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from kits.remembered import START, remembered

from coag.errors import RecordStoreError
from coag.schema import (
    Dynamics,
    Event,
    Fact,
    Lineage,
    MemoryKind,
    Provenance,
    Record,
    Trust,
)
from coag.store import DEFAULT_RANKING, RecordStore, Search

EPISODIC, SEMANTIC = MemoryKind.EPISODIC, MemoryKind.SEMANTIC
ORIGIN = Provenance(
    run="run-1", activity="main", cycle=1, source="alice", source_kind="agent", trust=Trust.USER
)


def a_record(text: str, kind: MemoryKind = SEMANTIC, **fields: Any) -> Record:
    return remembered(text, kind=kind, **fields)


async def texts_recalled(store: RecordStore, text: str | None, **search: Any) -> list[str]:
    """The texts of semantic records, found by meaning and by words."""
    asked = Search(text=text, kind=SEMANTIC, ranking=DEFAULT_RANKING, **search)
    return [hit.record.text for hit in await store.search(asked)]


async def scanned_ids(store: RecordStore, **what: Any) -> list[str]:
    return [record.id async for batch in store.scan(**what) for record in batch]


async def test_deleted_records_are_gone_from_every_way_of_finding_them(store: RecordStore) -> None:
    lamp, door = a_record("the lamp is red"), a_record("the door is red")
    event = a_record("the lamp fell", EPISODIC)
    await store.add([lamp, door, event])
    assert set(await texts_recalled(store, "red")) == {"the lamp is red", "the door is red"}
    gone = await store.delete([event.id, "unknown", lamp.id, event.id])
    assert gone == [event.id, lamp.id]
    assert await store.get([lamp.id, event.id]) == []
    assert await texts_recalled(store, "red lamp", min_score=0.0) == ["the door is red"]
    assert await texts_recalled(store, None) == ["the door is red"]
    assert await scanned_ids(store) == [door.id]
    assert [await store.count(kind) for kind in (EPISODIC, SEMANTIC)] == [0, 1]
    assert await store.delete([lamp.id]) == await store.delete([]) == []
    assert await store.add([lamp]) == [lamp.id]
    assert (await texts_recalled(store, "red lamp"))[0] == "the lamp is red"


async def test_update_writes_over_all_but_what_makes_a_record_the_one_it_is(
    store: RecordStore,
) -> None:
    old = a_record("the lamp is red", metadata={"room": "hall", "watts": 40})
    await store.add([old, a_record("the door is red")])
    await texts_recalled(store, "red")  # the words are indexed before the change, too
    new = old.model_copy(
        update={
            "metadata": {"room": "cellar"},
            "type": "observation",
            "created_at": START + timedelta(days=3),
            "provenance": ORIGIN.model_copy(update={"trust": Trust.UNTRUSTED, "source": "mail"}),
            "superseded_by": "another",
            "fact": Fact(subject="Lamp", attribute="colour", value="red"),
            "event": Event(situation="at dusk"),
            "dynamics": Dynamics(importance=0.9, accesses=4),
            "lineage": Lineage(contradicts=("other",), also_from=(ORIGIN,)),
        }
    )

    assert await store.update([new]) == [new]
    assert await store.update([new]) == [new]

    assert await store.get([old.id]) == [new]
    assert await texts_recalled(store, "red lamp") == ["the door is red"]
    for where, found in (
        ({"room": "hall"}, False),
        ({"watts": 40}, False),
        ({"room": "cellar"}, True),
        ({"subject": "lamp", "trust": "untrusted", "source": "mail"}, True),
    ):
        expected = ["the lamp is red"] if found else []
        every: dict[str, Any] = {"where": where, "include_superseded": True}
        assert await texts_recalled(store, None, **every) == expected
        assert await texts_recalled(store, "red lamp cellar", **every) == expected


async def test_record_that_is_made_current_by_an_update_is_found_again(store: RecordStore) -> None:
    old, new = a_record("the lamp is red"), a_record("the lamp is blue")
    await store.add([old])
    await store.supersede(old.id, new)
    assert await texts_recalled(store, "red lamp") == ["the lamp is blue"]
    await store.delete([new.id])
    (marked,) = await store.get([old.id])
    await store.update([marked.model_copy(update={"superseded_by": None})])
    assert await texts_recalled(store, "red lamp") == ["the lamp is red"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"id": "unknown"}, "no record 'unknown' to update"),
        ({"text": "the lamp is blue"}, "Field 'text' of record .* from 'the lamp is red' to"),
        ({"scope": "bob"}, "Field 'scope'"),
        ({"kind": EPISODIC}, "Field 'kind' .* from 'semantic' to 'episodic'"),
    ],
)
async def test_update_that_makes_another_record_is_refused_and_nothing_is_written(
    store: RecordStore, change: Mapping[str, Any], problem: str
) -> None:
    lamp, door = a_record("the lamp is red"), a_record("the door is red")
    await store.add([lamp, door])
    good = door.model_copy(update={"type": "changed"})
    with pytest.raises(RecordStoreError, match=problem):
        await store.update([good, lamp.model_copy(update=change)])
    with pytest.raises(ValueError, match="'key'"):
        await store.update([good, lamp.model_copy(update={"metadata": {"key": float("nan")}})])
    assert await store.update([]) == []
    assert await store.get([lamp.id, door.id]) == [lamp, door]


async def test_scan_gives_everything_once_in_the_order_of_arrival(store: RecordStore) -> None:
    facts = [a_record(f"fact {n}", minutes=-n) for n in range(7)]
    events = [a_record(f"event {n}", EPISODIC, scope=("alice", "bob")[n % 2]) for n in range(5)]
    await store.add(facts)
    await store.add(events)
    newer = a_record("fact 0 is so no more")
    await store.supersede(facts[0].id, newer)
    batches = [[record.id for record in batch] async for batch in store.scan(batch=4)]
    everything = [record.id for record in (*events, *facts, newer)]
    assert [one for batch in batches for one in batch] == everything
    assert all(0 < len(batch) <= 4 for batch in batches)
    assert await scanned_ids(store, kind=EPISODIC, scopes=("bob", "carol")) == [
        events[1].id,
        events[3].id,
    ]
    assert await scanned_ids(store, kind=SEMANTIC) == everything[5:]
    (marked,) = [one async for b in store.scan(kind=SEMANTIC, batch=1) for one in b][:1]
    assert marked.superseded_by == newer.id


async def test_records_removed_during_a_scan_do_not_hide_others(store: RecordStore) -> None:
    facts = [a_record(f"fact {n}") for n in range(6)]
    await store.add(facts)
    seen: list[str] = []
    async for batch in store.scan(batch=2):
        seen += [record.id for record in batch]
        await store.delete([*seen, facts[3].id])
    assert seen == [record.id for record in (facts[0], facts[1], facts[2], facts[4], facts[5])]


@pytest.mark.parametrize(
    ("what", "problem"), [({"batch": 0}, "at least 1, not 0"), ({"scopes": ()}, "is empty")]
)
async def test_impossible_scan_is_refused(
    store: RecordStore, what: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        await scanned_ids(store, **what)


async def test_facts_are_found_by_subject_however_it_is_written(store: RecordStore) -> None:
    colour = Fact(subject="The  Lamp", attribute="COLOUR of it", value="red")
    await store.add(
        [
            a_record("the lamp is red", fact=colour),
            a_record("the lamp is warm", fact=Fact(subject="the lamp")),
            a_record("the lamp is ours"),
        ]
    )

    async def found(**where: Any) -> set[str]:
        return set(await texts_recalled(store, None, where=where))

    assert await found(subject="the lamp") == {"the lamp is red", "the lamp is warm"}
    assert await found(subject=" THE LAMP\n") == {"the lamp is red", "the lamp is warm"}
    assert await found(attribute={"$in": ["Colour OF it", "size"]}) == {"the lamp is red"}
    assert await found(attribute="") == {"the lamp is warm"}
    assert await found(subject="lamp") == set()


async def test_closed_store_refuses_changes(store: RecordStore) -> None:
    await store.close()
    for refused in (store.delete(["x"]), store.update([a_record("x")]), scanned_ids(store)):
        with pytest.raises(RecordStoreError, match="closed"):
            await refused
