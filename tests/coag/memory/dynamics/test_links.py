"""Hebbian links: how they grow, weaken and lead, and what they do to a recall."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.remembered import START, remembered
from kits.sleepers import Calendar, dynamics_of, sleeper
from kits.statements import tell, texts

from coag.memory import LongTermMemory
from coag.memory.consolidation import sleep
from coag.memory.dynamics import (
    DynamicsFile,
    Forgetting,
    Links,
    MemoryDynamics,
    MemoryDynamicsSettings,
    RecordLinks,
    spread,
)
from coag.memory.dynamics.links import with_linked
from coag.memory.network import AssociativeStore, SemanticNetwork
from coag.memory.recall import Recaller
from coag.schema import MemoryKind, RecalledRecord, Record, SteppingClock
from coag.store import DEFAULT_RANKING, HashEmbedder, InMemoryStore, RecordStore, Search


def links_with(
    ties: Mapping[tuple[str, str], float] | None = None, owner: str = "ann", **settings: Any
) -> RecordLinks:
    """Links in RAM with these weights."""
    links = RecordLinks(DynamicsFile(), owner, Links(**settings))
    for pair, weight in (ties or {}).items():
        links.settings = links.settings.model_copy(update={"rate": weight})
        links.learned(pair)
    links.settings = Links(**settings)
    return links


# ---- How links grow and weaken ----


def test_a_link_grows_at_each_use_up_to_1_and_is_the_same_from_both_ends() -> None:
    links = links_with()
    links.learned(["a", "b", "c"])
    links.learned(["b", "a", "a"])
    assert links.neighbours(["a", "b", "x"]) == {
        "a": {"b": 0.2, "c": 0.1},
        "b": {"a": 0.2, "c": 0.1},
    }
    for _ in range(20):
        links.learned(["a", "b"])
    assert links.neighbours(["b"])["b"]["a"] == 1.0
    assert links.count() == 3


def test_links_weaken_at_each_sleep_until_they_are_gone() -> None:
    links = links_with({("a", "b"): 0.1, ("a", "c"): 1.0}, decay=0.5, floor=0.05)
    assert links.decay() == 0
    assert links.neighbours(["a"])["a"] == {"b": 0.05, "c": 0.5}
    assert links.decay() == 1
    assert links.neighbours(["a", "b"]) == {"a": {"c": 0.25}}


def test_a_record_keeps_its_strongest_links_and_the_newest_can_grow() -> None:
    links = links_with({("hub", "b"): 0.5, ("hub", "c"): 0.3, ("hub", "d"): 0.4}, bound=3)
    links.learned(["hub", "new"])
    assert links.neighbours(["hub", "c"]) == {"hub": {"b": 0.5, "d": 0.4, "new": 0.1}}
    links.learned(["hub", "p", "q", "r", "s"])
    assert links.neighbours(["hub"])["hub"].keys() == {"p", "q", "r", "s"}


def test_what_faded_or_is_gone_leaves_no_link_at_either_end() -> None:
    links = links_with({("a", "b"): 0.5, ("b", "c"): 0.5})
    other = RecordLinks(links.file, "bert")
    other.learned(["a", "b"])
    other.learned(["b", "c"])
    links.drop(["b"])
    assert (links.count(), other.count()) == (0, 2)
    other.file.remove(["a"])
    assert other.neighbours(["a", "b", "c"]) == {"b": {"c": 0.1}, "c": {"b": 0.1}}


def test_links_of_an_older_file_go_at_both_ends_without_its_index() -> None:
    file = DynamicsFile()
    older = """CREATE TABLE links (
      record TEXT NOT NULL, owner TEXT NOT NULL, other TEXT NOT NULL, weight REAL NOT NULL,
      PRIMARY KEY (record, owner, other)
    ) WITHOUT ROWID;
    CREATE INDEX links_back ON links (other);
    INSERT INTO links VALUES ('a', 'ann', 'b', 0.5), ('b', 'ann', 'a', 0.5)"""
    file.create(older, records=("links.record", "links.other"))
    links = RecordLinks(file, "ann")
    assert links.neighbours(["a"]) == {"a": {"b": 0.5}}
    file.remove(["a"])
    assert links.neighbours(["a", "b"]) == {}
    kept = file.rows("SELECT name FROM record_columns WHERE name LIKE 'links.%'")
    assert [one["name"] for one in kept] == ["links.record"]
    assert file.rows("SELECT 1 FROM sqlite_master WHERE name = 'links_back'") == []


_TOGETHER = st.sets(st.sampled_from("abcdefgh"), max_size=5)


@given(st.lists(_TOGETHER, max_size=8), st.integers(2, 4))
def test_links_are_symmetric_bounded_and_within_0_and_1(uses: list[set[str]], bound: int) -> None:
    links = links_with(rate=0.4, bound=bound)
    most = bound
    for together in uses:
        links.learned(together)
        tied = links.neighbours(list("abcdefgh"))
        most = max(most, len(together) - 1)  # what was used just now is never left out
        assert all(len(others) <= most for others in tied.values())
        for one, others in tied.items():
            assert all(0.0 < weight <= 1.0 for weight in others.values())
            assert all(tied[other][one] == weight for other, weight in others.items())
    links.file.close()


# ---- Spreading activation ----


def test_activation_weakens_at_each_link_and_ends_after_its_steps() -> None:
    links = links_with({("a", "b"): 0.5, ("b", "c"): 0.5, ("c", "d"): 0.5})
    assert spread({"a": 1.0}, links) == pytest.approx({"b": 0.5, "c": 0.125})
    assert spread({"a": 1.0}, links, steps=1) == {"b": 0.5}
    assert spread({"x": 1.0}, links) == {}


def test_activation_does_not_run_back_to_where_it_came_from_in_a_diamond() -> None:
    ties = {("a", "b"): 0.4, ("a", "c"): 0.4, ("b", "d"): 0.5, ("c", "d"): 0.5}
    active = spread({"a": 1.0}, links_with(ties), steps=5)
    assert active == pytest.approx({"b": 0.4, "c": 0.4, "d": 2 * 0.4 * 0.5 * 0.5 / 1.0})


def test_a_record_with_many_links_shares_its_activation_out() -> None:
    links = links_with({("hub", one): 1.0 for one in "bcde"})
    assert spread({"hub": 1.0}, links) == dict.fromkeys("bcde", 0.25)


@given(st.lists(_TOGETHER, max_size=8), st.sets(st.sampled_from("abc"), min_size=1))
def test_activation_never_reaches_a_seed_and_no_step_has_more_than_the_one_before(
    uses: list[set[str]], seeds: set[str]
) -> None:
    links = links_with(rate=0.5)
    for together in uses:
        links.learned(together)
    begin = dict.fromkeys(sorted(seeds), 1.0)
    one_step = spread(begin, links, steps=1)
    active = spread(begin, links, steps=4)
    assert not active.keys() & seeds
    assert sum(one_step.values()) <= len(seeds) + 1e-9
    assert sum(active.values()) <= sum(one_step.values()) * (1 + 0.5 + 0.25 + 0.125) + 1e-9
    assert all(active[one] >= value - 1e-9 for one, value in one_step.items())
    links.file.close()


# ---- Recall that follows links ----


KEY = remembered("The key of the shed hangs in the kitchen", minutes=1)
LADDER = remembered("A ladder leans against the cherry tree", minutes=2)
SOUP = remembered("Soup is cooked on Mondays", minutes=3)
SEEN = remembered("The key of the piano was found in the garden", minutes=4)


async def store_of(*records: Record) -> RecordStore:
    store = InMemoryStore(HashEmbedder())
    await store.add(records)
    return store


def asked(text: str = "key of the shed", **more: Any) -> Search:
    kind = MemoryKind.EPISODIC
    search = Search(text=text, kind=kind, scopes=("alice",), ranking=DEFAULT_RANKING)
    return replace(search, **more)


async def recalled(
    store: RecordStore, links: RecordLinks | None, search: Search | None = None
) -> dict[str, RecalledRecord]:
    dynamics = None
    if links is not None:
        dynamics = MemoryDynamics(MemoryDynamicsSettings(links=links.settings))
        dynamics.links = links
    recaller = Recaller(
        store=store,
        scopes=("alice",),
        sources=(),
        source_timeout=1.0,
        clock=SteppingClock(START),
        dynamics=dynamics,
    )
    recall = await recaller.recall([search or asked()])
    assert recall.problems == ()
    return {hit.record.text: hit.model_copy(update={"state": None}) for hit in recall.records}


async def test_recall_brings_what_was_used_together_with_what_is_found_and_says_so() -> None:
    store = await store_of(KEY, LADDER, SOUP)
    assert (await recalled(store, None)).keys() == {KEY.text}
    weak = links_with({(KEY.id, LADDER.id): 0.1})
    assert (await recalled(store, weak)).keys() == {KEY.text}
    found = await recalled(store, links_with({(KEY.id, LADDER.id): 0.8}))
    assert list(found) == [KEY.text, LADDER.text]
    why = found[LADDER.text].why
    assert why is not None
    assert why.links == pytest.approx(0.8 * 0.2)
    assert "links +0.16" in why.describe()
    assert found[LADDER.text].score == pytest.approx(sum(part for _, part in why), abs=1e-3)


async def test_one_use_together_makes_a_difference_with_the_settings_as_they_are() -> None:
    store = await store_of(KEY, SEEN)
    before = (await recalled(store, None))[SEEN.text].score
    links = RecordLinks(DynamicsFile(), "ann")
    links.learned([KEY.id, SEEN.id])
    seed = (await recalled(store, links, asked(k=1)))[KEY.text]
    hits = [seed, RecalledRecord(record=SEEN, score=before)]
    assert (await with_linked([*hits], asked(k=2), store, links))[1] == hits[1]  # both are seeds
    alone = links_with({(KEY.id, SEEN.id): 0.1}, most=2)
    further = [seed, seed.model_copy(update={"record": SOUP}), hits[1]]
    (last,) = (await with_linked(further, asked(k=3), store, alone))[2:]
    assert last.score == pytest.approx(before + 0.2 * 0.1)
    assert last.why is not None


async def test_without_ties_or_with_links_off_a_recall_is_equal_to_the_byte() -> None:
    store = await store_of(KEY, LADDER, SOUP, SEEN)
    plain = await recalled(store, None)
    assert await recalled(store, links_with()) == plain
    assert await recalled(store, links_with({(LADDER.id, SOUP.id): 1.0})) == plain
    assert all(hit.why is not None and hit.why.links == 0.0 for hit in plain.values())


async def test_links_lead_to_nothing_that_the_search_may_not_show() -> None:
    away = remembered("Bert's ladder", scope="bert")
    fact = remembered("Ladders are dangerous", kind=MemoryKind.SEMANTIC)
    noted = remembered("A ladder for the cat", type="cat")
    store = await store_of(KEY, LADDER, away, fact, noted)
    ties = {(KEY.id, one.id): 0.9 for one in (LADDER, away, fact, noted)}
    ties[KEY.id, "0" * 64] = 0.9
    links = links_with(ties, least=0.1)
    found = await recalled(store, links, asked(where={"type": "note"}))
    assert found.keys() == {KEY.text, LADDER.text}
    assert (await recalled(store, links, asked(min_score=0.3))).keys() == {KEY.text}
    await store.supersede(LADDER.id, remembered("The ladder is gone", minutes=9))
    assert LADDER.text not in await recalled(store, links)


async def test_a_hit_by_meaning_alone_shows_what_links_added() -> None:
    store = await store_of(KEY, LADDER)
    links = links_with({(KEY.id, LADDER.id): 0.8})
    found = await recalled(store, links, asked(ranking=None))
    why = found[LADDER.text].why
    assert why is not None
    assert (why.links, found[KEY.text].why) == (0.16, None)


async def test_where_nothing_is_found_links_lead_nowhere() -> None:
    store = await store_of(LADDER)
    links = links_with({(KEY.id, LADDER.id): 0.8})
    assert await with_linked([], asked(), store, links) == []
    nothing = [RecalledRecord(record=KEY, score=0.0)]
    assert await with_linked(nothing, asked(), store, links) == nothing


# ---- Links of a memory: from use to use ----


async def used_together() -> tuple[LongTermMemory, RecordLinks, Record, Record]:
    """A memory of which two records were recalled together."""
    memory = sleeper(settings=MemoryDynamicsSettings(forgetting=Forgetting(), links=Links()))
    key = (await tell(memory, "The key of the shed hangs in the kitchen")).record
    ladder = (await tell(memory, "A ladder leans against our tree")).record
    await memory.recall("key and ladder", k=2)
    links = dynamics_of(memory).links
    assert links is not None
    return memory, links, key, ladder


async def test_what_was_recalled_together_is_recalled_for_one_of_them_by_the_memory() -> None:
    memory, links, key, ladder = await used_together()
    assert links.neighbours([key.id]) == {key.id: {ladder.id: 0.1}}
    assert await texts(memory, "shed key") == [key.text]
    assert isinstance(memory.clock, Calendar)
    for _ in range(3):
        memory.clock.passes(1)  # what is asked for again in one turn is one use
        await memory.recall("key and ladder", k=2)
    first, second = (await memory.recall("shed key")).records
    assert (first.record.id, second.record.id) == (key.id, ladder.id)
    assert second.why is not None
    assert second.why.links > 0.0
    off = sleeper(settings=MemoryDynamicsSettings(forgetting=Forgetting()))
    assert dynamics_of(off).links is None


async def test_what_has_faded_leaves_no_link_and_others_weaken_at_sleep() -> None:
    memory, links, key, ladder = await used_together()
    await sleep(memory)
    assert links.neighbours([key.id])[key.id][ladder.id] == pytest.approx(0.098)
    assert isinstance(memory.clock, Calendar)
    memory.clock.passes(4000)
    await sleep(memory, allow_clock_jump=True)
    assert dynamics_of(memory).archive.has([key.id, ladder.id]) == {key.id, ladder.id}
    assert links.count() == 0


# ---- Links in the semantic network ----


def network_of(*records: Record) -> SemanticNetwork:
    network = SemanticNetwork("alice")
    network.put(records)
    return network


BOAT = remembered("Nils owns the Gull")
DEAL = remembered("Vera pays on Fridays")


def test_activation_of_the_network_passes_over_links_and_does_not_come_back() -> None:
    network = network_of(BOAT, DEAL)
    links = links_with({(BOAT.id, DEAL.id): 0.8, (BOAT.id, "gone"): 0.2})
    assert "vera" not in network.activation("Gull")
    active = network.activation("Gull", links=links, steps=4)
    assert active["vera"] == pytest.approx(0.5 * 0.8 * 0.5 / 2)
    assert active["nils"] == network.activation("Gull")["nils"]
    assert network.activation("Gull", links=links_with()) == network.activation("Gull")


async def test_a_network_around_a_store_finds_a_way_over_a_learned_link() -> None:
    account = remembered("4711 belongs to Vera", minutes=5)
    store = AssociativeStore(await store_of(BOAT, DEAL, account, SOUP))
    links = links_with({(BOAT.id, DEAL.id): 0.9})
    search = asked("Gull cost")
    assert [hit.record for hit in await store.search(search)] == [BOAT]
    found = await store.search(replace(search, links=links))
    assert {hit.record.id for hit in found} == {BOAT.id, DEAL.id, account.id}
