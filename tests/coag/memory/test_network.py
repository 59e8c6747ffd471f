"""The semantic network: entities, spreading activation, and a store whose recall follows it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection
from pathlib import Path

import pytest
from autogen_agentchat.base import ChatAgent
from hypothesis import given
from hypothesis import strategies as st
from kits.remembered import remembered
from kits.statements import SEMANTIC

from coag import CoagAgent, LongTermMemory, ScriptedModel
from coag.errors import ConfigurationError, RecordStoreError
from coag.memory import said_by_person
from coag.memory.network import (
    Association,
    AssociativeStore,
    NetworkLimits,
    SemanticNetwork,
    entities_of,
)
from coag.models import ScriptedReply, ScriptedRequest
from coag.schema import Event, Fact, Record
from coag.store import (
    DEFAULT_RANKING,
    ChromaStore,
    HashEmbedder,
    InMemoryStore,
    Search,
    StoreConfig,
    WrappedStore,
)

# ---- Entities of a record ----


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("The Blue Heron sails.", ("blue heron",)),
        ("Dario Moss's manager is Wanda Zander.", ("dario moss", "wanda zander")),
        ("Wanda's Aunt Vera came. Then Kai left", ("wanda", "aunt vera", "kai")),
        ("Boat 418 in Haupt-Straße and \u202e 12 more", ("boat 418", "haupt strasse")),
        ("nothing is written large here, in 2025", ()),
        ("One Two Three Four Five Six Seven", ()),
    ],
)
def test_names_are_words_with_capitals(text: str, entities: tuple[str, ...]) -> None:
    assert entities_of(remembered(text, source="Alice"), 24) == entities


def test_fields_come_before_names_in_the_text_of_which_the_first_count() -> None:
    record = remembered(
        "Boat 418 belongs to Nils Hartl, by Nora.",
        fact=Fact(subject="The Gull", attribute="owner", value=" Nils  HARTL's"),
        event=Event(place="Old Harbour"),
    )
    assert entities_of(record, 4) == ("the gull", "nils hartl", "old harbour", "boat 418")


# ---- The network of one scope ----


_NAMES = ("Anna", "Bert", "Cleo", "Dina", "Emil")
_RECORDS = st.lists(
    st.tuples(st.sampled_from(_NAMES), st.sampled_from(_NAMES), st.integers(0, 50)),
    max_size=12,
    unique=True,
)
Ties = list[tuple[str, str, int]]


def _record(one: str, other: str, minutes: int = 0, **fields: str) -> Record:
    return remembered(f"{one} met {other}, {minutes}", minutes=minutes).model_copy(update=fields)


def _network(*records: Record, **limits: int) -> SemanticNetwork:
    network = SemanticNetwork("alice", limits=NetworkLimits.model_validate(limits))
    network.put(records)
    return network


def _view(network: SemanticNetwork) -> object:
    """All that it answers."""
    active = [network.activation(name, steps=3) for name in _NAMES]
    return network.entities(), [network.neighbours(name) for name in _NAMES], active


@given(_RECORDS, st.randoms(use_true_random=False), st.integers(3, 12))
def test_what_it_answers_does_not_depend_on_the_order_of_records(
    ties: Ties, rng: object, most: int
) -> None:
    records = [_record(*tie) for tie in ties]
    other = list(records)
    shuffle = getattr(rng, "shuffle")  # noqa: B009 - hypothesis does not type it
    shuffle(other)
    assert _view(_network(*records, records=most)) == _view(_network(*other, *other, records=most))


@given(_RECORDS, _RECORDS)
def test_what_was_dropped_or_superseded_leaves_nothing_behind(kept: Ties, gone: Ties) -> None:
    records = [_record(*tie) for tie in kept]
    others = [_record(*tie) for tie in gone if tie not in kept]
    network = _network(*records, *others)
    half = len(others) // 2
    network.drop(record.id for record in others[:half])
    network.put(one.model_copy(update={"superseded_by": "later"}) for one in others[half:])
    assert _view(network) == _view(_network(*records))


def test_neighbours_and_ties_name_the_records_that_say_so() -> None:
    one, two = _record("Anna", "Bert", 1), _record("Bert", "Cleo", 2)
    network = _network(one, two)
    assert network.neighbours("BERT's") == {"anna": (one.id,), "cleo": (two.id,)}
    assert (network.ties("anna", "bert"), network.ties("anna", "cleo")) == ((one.id,), ())
    assert network.neighbours("nobody") == network.activation({"nobody": 1.0}) == {}
    assert network.entities("no such record") == ()
    network.put([remembered("Anna Berg came")])
    assert network.named_in("Did Anna Berg's boat come, or anna?") == ("anna berg", "anna")
    with pytest.raises(ValueError, match=r"'bob'.*'alice'"):
        network.put([remembered("Anna came", scope="bob")])


def test_of_too_many_records_the_newest_are_known_and_repetitions_take_no_room() -> None:
    network = _network(*(_record("Anna", name, at) for at, name in enumerate(_NAMES)), records=2)
    for _ in range(1200):
        network.put([_record("Anna", "Dina", 3), _record("Anna", "Emil", 4)])
    assert len(network) == 2
    assert network.entities() == ("anna", "dina", "emil")


# ---- Spreading activation ----


Pairs = frozenset[tuple[str, str]]
_PAIRS = st.frozensets(
    st.tuples(st.sampled_from(_NAMES), st.sampled_from("uvwxyz")), min_size=1, max_size=20
)
_SEEDS = st.dictionaries(st.sampled_from(_NAMES), st.floats(0.1, 5.0), min_size=1)


def _tied(pairs: Collection[tuple[str, str]]) -> SemanticNetwork:
    """A network of pairs of an entity and the record that mentions it."""
    mentioned = {record: [e for e, other in pairs if other == record] for _, record in pairs}
    return _network(*(remembered(f"{name}: {', '.join(some)}") for name, some in mentioned.items()))


@given(_PAIRS, _SEEDS, st.integers(1, 4), st.floats(0.0, 1.0))
def test_activation_is_never_negative_and_never_more_than_was_put_in(
    pairs: Pairs, seeds: dict[str, float], steps: int, decay: float
) -> None:
    active = _tied(sorted(pairs)).activation(seeds, steps=steps, decay=decay)
    assert all(value > 0.0 for value in active.values())
    assert sum(active.values()) <= sum(decay**step for step in range(steps + 1)) + 1e-9


def test_along_a_chain_each_entity_is_less_active_than_the_one_before_and_steps_end_it() -> None:
    chain = _tied([(name, f"r{at}") for at in range(4) for name in _NAMES[at : at + 2]])
    active = chain.activation({"Anna": 1.0}, steps=3)
    values = [active[name.lower()] for name in _NAMES[:4]]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) == 4
    assert "emil" not in active
    assert chain.activation({"Anna": 0.0}) == {}


# ---- Recall over the network ----


QUESTION = "Who is the manager of the owner of Boat 418?"


def _store() -> AssociativeStore:
    return AssociativeStore(InMemoryStore(HashEmbedder()))


def _fact(subject: str, attribute: str, value: str, *, scope: str = "alice") -> Record:
    return remembered(
        f"The {attribute} of {subject} is {value}.",
        kind=SEMANTIC,
        scope=scope,
        fact=Fact(subject=subject, attribute=attribute, value=value),
    )


OWNER = _fact("Boat 418", "owner", "Nils Hartl")
MANAGER = _fact("Nils Hartl", "manager", "Vera Moss")
OTHERS = [_fact(f"Person N{letter}", "manager", f"Boss B{letter}") for letter in "abcdefghijklmnop"]


def _search(text: str | None = QUESTION, **fields: object) -> Search:
    asked = {"kind": SEMANTIC, "k": 4, "scopes": ("alice",), "ranking": DEFAULT_RANKING}
    return Search(text=text, **(asked | fields))  # pyright: ignore[reportArgumentType]


async def _found(store: AssociativeStore, search: Search | None = None) -> list[str]:
    return [hit.record.text for hit in await store.search(search or _search())]


async def test_another_scopes_facts_are_no_bridge() -> None:
    store = _store()
    await store.add([_fact("Boat 418", "owner", "Nils Hartl", scope="bob"), MANAGER, *OTHERS])
    assert MANAGER.text not in await _found(store)
    await store.add([OWNER])
    found = await store.search(_search(scopes=None))
    assert MANAGER.id in [hit.record.id for hit in found]
    found = await store.search(_search(scopes=("bob",)))
    assert {hit.record.scope for hit in found} == {"bob"}


async def test_filters_scores_and_weights_hold_for_what_is_found_by_way_of_another() -> None:
    store = _store()
    await store.add([*OTHERS, OWNER, MANAGER])
    hits = await store.search(_search())
    for hit in hits:
        assert hit.why is not None
        assert sum(hit.why.model_dump().values()) == pytest.approx(hit.score, abs=1e-3)
    scores = {hit.record.id: hit.score for hit in hits}
    least = round(scores[MANAGER.id] + 0.001, 3)
    for narrowed in (_search(where={"subject": "Boat 418"}), _search(min_score=least)):
        assert MANAGER.text not in await _found(store, narrowed)
    weightless = AssociativeStore(store.store, association=Association(weight=0.0))
    assert MANAGER.text not in await _found(weightless)


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


async def test_the_networks_are_built_at_the_first_recall_and_again_after_a_failed_write() -> None:
    inner = InMemoryStore(HashEmbedder())
    await inner.add([*OTHERS, OWNER, MANAGER])
    assert MANAGER.text not in [hit.record.text for hit in await inner.search(_search())]
    store = AssociativeStore(inner)
    assert {OWNER.text, MANAGER.text} <= set(await _found(store))
    assert await store.count(SEMANTIC) == len(OTHERS) + 2
    scanned = [record.id async for some in store.scan(scopes=["alice"]) for record in some]
    assert MANAGER.id in scanned
    before = await store.network("alice")
    with pytest.raises(RecordStoreError):
        await store.supersede("no such record", MANAGER)
    after = await store.network("alice")
    assert after is not before
    assert after.entities() == before.entities()
    await store.close()
    with pytest.raises(RecordStoreError, match="closed"):
        await store.search(_search())


# ---- As a component ----


def silence(request: ScriptedRequest) -> ScriptedReply:
    """A script that is never asked."""
    raise AssertionError(request)


class Renamed(AssociativeStore):
    """One that does not say how it comes about."""


class Loud(WrappedStore):
    """A store of somebody's own around another one."""

    def wrapping(self) -> type[Loud]:
        return Loud


def associative(folder: Path) -> AssociativeStore:
    return AssociativeStore(
        ChromaStore(folder, HashEmbedder(16)),
        association=Association(weight=0.5, bridges=7),
        limits=NetworkLimits(records=10),
    )


async def test_an_agent_over_a_semantic_network_is_loaded_with_it_and_what_it_held(
    tmp_path: Path,
) -> None:
    store = associative(tmp_path)
    await store.add([remembered("The boat is Ann's.", kind=SEMANTIC, scope="clerk")])
    memory = LongTermMemory(store, scope="clerk")
    agent = CoagAgent("clerk", ScriptedModel(silence), memory=memory)
    component = agent.dump_component()
    text = component.model_dump_json(exclude_none=True)
    await agent.close()
    await memory.close()
    loaded = ChatAgent.load_component(json.loads(text))
    assert isinstance(loaded, CoagAgent)
    found = loaded.long_term_memory.store
    assert isinstance(found, AssociativeStore)
    assert isinstance(found.store, ChromaStore)
    assert (found.association, found.limits) == (store.association, store.limits)
    assert loaded.dump_component() == component
    assert (await found.network("clerk")).records_of("boat") is not None
    (hit,) = (await loaded.long_term_memory.recall("whose boat")).records
    assert hit.record.text == "The boat is Ann's."
    await loaded.long_term_memory.close()


def test_stores_around_stores_come_back_in_their_order() -> None:
    store = Loud(AssociativeStore(Loud(InMemoryStore(HashEmbedder(16)))))
    opened = StoreConfig.of(store).open()
    kinds: list[str] = []
    while isinstance(opened, WrappedStore):
        kinds.append(type(opened).__name__)
        opened = opened.store
    assert (kinds, type(opened)) == (["Loud", "AssociativeStore", "Loud"], InMemoryStore)


def test_one_that_does_not_say_how_it_comes_about_is_refused_with_what_to_do() -> None:
    for store in (Renamed(InMemoryStore("hash-16")), WrappedStore(InMemoryStore("hash-16"))):
        message = rf"A {type(store).__name__} cannot be written down.*wrapping\(\)"
        with pytest.raises(ConfigurationError, match=message):
            StoreConfig.of(store)


def test_what_puts_no_store_around_another_one_is_refused() -> None:
    config = StoreConfig.of(Loud(InMemoryStore("hash-16")))
    (loud,) = config.wrapped
    for name in ("coag.store:short_id", "coag.store:DEFAULT_RANKING"):
        wrong = config.model_copy(update={"wrapped": (loud.model_copy(update={"name": name}),)})
        with pytest.raises(ConfigurationError, match="no store around"):
            wrong.open()


async def test_a_memory_over_it_and_one_beside_it_write_one_after_the_other(tmp_path: Path) -> None:
    store = associative(tmp_path)
    memories = [
        LongTermMemory(store, scope="clerk"),
        LongTermMemory(ChromaStore(tmp_path, HashEmbedder(16)), scope="clerk"),
    ]
    writes = [
        memories[number % 2].remember(
            SEMANTIC, "The boat is Ann's.", provenance=said_by_person(f"person {number}")
        )
        for number in range(8)
    ]
    done = await asyncio.gather(*writes)
    (kept,) = await store.get([done[0].record.id])
    assert len(kept.lineage.also_from) == 7
    for memory in memories:
        await memory.close()
