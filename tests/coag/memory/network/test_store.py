"""A store whose recall follows what ties records."""

from __future__ import annotations

import pytest

from coag.errors import RecordStoreError
from coag.memory import LongTermMemory
from coag.memory.network import Association, AssociativeStore
from coag.schema import Fact, MemoryKind, Provenance, Record, Trust
from coag.store import DEFAULT_RANKING, HashEmbedder, InMemoryStore, Search
from tests.kits.remembered import remembered

QUESTION = "Who is the manager of the owner of Boat 418?"
_ALICE = Provenance(
    run="", activity="", cycle=1, source="alice", source_kind="message", trust=Trust.USER
)


def _store(association: Association | None = None) -> AssociativeStore:
    return AssociativeStore(InMemoryStore(HashEmbedder()), association=association)


def _fact(subject: str, attribute: str, value: str, *, scope: str = "alice") -> Record:
    return remembered(
        f"The {attribute} of {subject} is {value}.",
        kind=MemoryKind.SEMANTIC,
        scope=scope,
        fact=Fact(subject=subject, attribute=attribute, value=value),
    )


OWNER = _fact("Boat 418", "owner", "Nils Hartl")
MANAGER = _fact("Nils Hartl", "manager", "Vera Moss")
OTHERS = [_fact(f"Person N{letter}", "manager", f"Boss B{letter}") for letter in "abcdefghijklmnop"]


def _search(text: str | None = QUESTION, **fields: object) -> Search:
    asked = {"kind": MemoryKind.SEMANTIC, "k": 4, "scopes": ("alice",), "ranking": DEFAULT_RANKING}
    return Search(text=text, **(asked | fields))  # pyright: ignore[reportArgumentType]


async def _found(store: AssociativeStore, search: Search | None = None) -> list[str]:
    return [hit.record.text for hit in await store.search(search or _search())]


async def test_the_second_fact_of_a_question_is_found_by_way_of_the_first() -> None:
    store = _store()
    await store.add([*OTHERS, OWNER, MANAGER])
    plain = [hit.record.text for hit in await store.store.search(_search())]
    assert MANAGER.text not in plain
    assert {OWNER.text, MANAGER.text} <= set(await _found(store))


async def test_a_long_term_memory_over_it_answers_from_two_facts() -> None:
    memory = LongTermMemory(_store(), scope="alice")
    for record in (*OTHERS, OWNER, MANAGER):
        await memory.remember(MemoryKind.SEMANTIC, record.text, provenance=_ALICE, fact=record.fact)
    recall = await memory.recall(QUESTION, kind=MemoryKind.SEMANTIC, k=4)
    assert {OWNER.text, MANAGER.text} <= {hit.record.text for hit in recall.records}
    changed = _fact("Boat 418", "owner", "Edda Carver")
    newer = _fact("Edda Carver", "manager", "Boss Bz")
    for record in (changed, newer):
        await memory.remember(MemoryKind.SEMANTIC, record.text, provenance=_ALICE, fact=record.fact)
    recall = await memory.recall(QUESTION, kind=MemoryKind.SEMANTIC, k=4)
    texts = {hit.record.text for hit in recall.records}
    assert {changed.text, newer.text} <= texts
    assert OWNER.text not in texts


async def test_the_parts_of_a_score_add_up_on_the_way_too() -> None:
    store = _store()
    await store.add([*OTHERS, OWNER, MANAGER])
    for hit in await store.search(_search()):
        assert hit.why is not None
        assert sum(hit.why.model_dump().values()) == pytest.approx(hit.score, abs=1e-3)


async def test_another_scopes_facts_are_no_bridge() -> None:
    store = _store()
    await store.add([_fact("Boat 418", "owner", "Nils Hartl", scope="bob"), MANAGER, *OTHERS])
    assert MANAGER.text not in await _found(store)
    await store.add([OWNER])
    found = await store.search(_search(scopes=None))
    assert MANAGER.id in [hit.record.id for hit in found]
    found = await store.search(_search(scopes=("bob",)))
    assert {hit.record.scope for hit in found} == {"bob"}


async def test_a_filter_holds_on_the_way_too() -> None:
    store = _store()
    await store.add([*OTHERS, OWNER, MANAGER])
    assert MANAGER.text not in await _found(store, _search(where={"subject": "Boat 418"}))


async def test_a_least_score_holds_on_the_way_too() -> None:
    store = _store()
    await store.add([*OTHERS, OWNER, MANAGER])
    scores = {hit.record.id: hit.score for hit in await store.search(_search())}
    least = round(scores[MANAGER.id] + 0.001, 3)
    assert MANAGER.text not in await _found(store, _search(min_score=least))


async def test_a_bridge_weighs_as_much_as_it_is_told_to() -> None:
    store = _store(Association(weight=0.0))
    await store.add([*OTHERS, OWNER, MANAGER])
    assert MANAGER.text not in await _found(store)


async def test_without_ranking_or_text_the_other_store_answers_alone() -> None:
    store = _store()
    await store.add([OWNER, MANAGER])
    for search in (_search(ranking=None), _search(None), _search("  ")):
        assert await store.search(search) == await store.store.search(search)


async def test_every_change_reaches_the_network() -> None:
    store = _store()
    await store.add([OWNER])
    network = await store.network("alice")
    assert network.entities(OWNER.id) == ("boat 418", "nils hartl")
    await store.add([OWNER, MANAGER])
    assert network.ties("Boat 418", "Nils Hartl") == (OWNER.id,)
    moved = _fact("Boat 418", "owner", "Edda Carver")
    await store.supersede(OWNER.id, moved)
    assert network.ties("Boat 418", "Nils Hartl") == ()
    assert network.ties("Boat 418", "Edda Carver") == (moved.id,)
    other = MANAGER.model_copy(update={"fact": Fact(subject="Nils Hartl", value="Kai Orth")})
    await store.update([other])
    assert "kai orth" in network.entities(MANAGER.id)
    assert await store.delete([MANAGER.id]) == [MANAGER.id]
    assert network.entities(MANAGER.id) == ()
    await store.add([_fact("Boat 5", "owner", "Bob Orth", scope="bob")])
    assert await store.forget("alice") == 2
    assert len(await store.network("alice")) == 0
    assert len(await store.network("bob")) == 1


async def test_what_the_store_held_before_is_known_at_the_first_recall() -> None:
    inner = InMemoryStore(HashEmbedder())
    await inner.add([*OTHERS, OWNER, MANAGER])
    store = AssociativeStore(inner)
    assert MANAGER.text in await _found(store)
    assert await store.count(MemoryKind.SEMANTIC) == len(OTHERS) + 2
    assert [record.id for record in await store.get([OWNER.id])] == [OWNER.id]
    scanned = [record.id async for some in store.scan(scopes=["alice"]) for record in some]
    assert MANAGER.id in scanned


async def test_after_a_write_that_failed_the_networks_are_built_anew() -> None:
    store = _store()
    await store.add([OWNER])
    before = await store.network("alice")
    with pytest.raises(RecordStoreError):
        await store.supersede("no such record", MANAGER)
    after = await store.network("alice")
    assert after is not before
    assert after.entities() == before.entities()


async def test_a_closed_store_says_so() -> None:
    store = _store()
    await store.close()
    with pytest.raises(RecordStoreError, match="closed"):
        await store.search(_search())
