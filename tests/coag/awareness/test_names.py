"""When two names are one: by their form, by their meaning, and never by a mere number."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from coag.awareness import (
    AwarenessState,
    ConversationAdapter,
    DynamicEngine,
    EngineSettings,
    Entity,
    Observation,
    SharedEngine,
    SharedWorld,
    WorldModel,
)
from coag.awareness.names import NameIndex, NameResolver, forms_of
from coag.awareness.state import MergeReason
from coag.schema import SteppingClock
from coag.store import Embedder, HashEmbedder

FORM, CONTAINED, MEANING = MergeReason.NORMAL_FORM, MergeReason.CONTAINED, MergeReason.EMBEDDING
Things = Sequence[tuple[str, str]]


class Meanings:
    """An embedder that knows a few meanings: words listed together mean the same."""

    name = "meanings"
    dimension = 8
    minimum_similarity = 0.2

    def __init__(self, *alike: tuple[str, ...]) -> None:
        self.alike = alike
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.embedded += texts
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> NDArray[np.float32]:
        row = np.zeros(self.dimension, dtype=np.float32)
        for place, words in enumerate(self.alike):
            row[place] = 3.0 if text in words else 0.0
        return row


def index_of(things: Things, embedder: Embedder | None = None) -> NameIndex:
    entities = tuple(Entity(name=name, type=type) for name, type in things)
    return NameResolver(embedder=embedder).names.take(entities)


def meant(
    things: Things, name: str, type: str = "topic", embedder: Embedder | None = None
) -> tuple[str, MergeReason] | None:
    found = index_of(things, embedder).find(name, type)
    return None if found is None else (things[found.position][0], found.how)


# ---- by their form ----


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Python", "python"),
        ("  'Python'. ", "python"),
        ("Python\u2019s", "Python"),
        ("Café", "cafe\u0301"),
        ("café", "cafe"),
        ("web scraping", "Web-Scraping"),
        ("BeautifulSoup", "Beautiful Soup"),
        ("`src/a.py`", "src/A.py"),
        ("straße", "STRASSE"),
    ],
)
def test_spellings_of_one_name_mean_one_thing_of_any_type(one: str, other: str) -> None:
    assert meant([(one, "person")], other, "file") == (one, FORM)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("C", "C++"),
        ("C", "C#"),
        ("net", ".NET"),
        ("a.py", "b.py"),
        ("test.py", "tests.py"),
        ("get_item", "get_items"),
        ("src/a.py", "src_a.py"),
        ("test_config.py", "config.py"),
        ("ConnectionRefusedError", "ConnectionResetError"),
        ("room 1 1", "room 11"),
        ("か", "が"),
        ("класс", "класи"),
        ("bus", "bu"),
        ("glass", "glas"),
        ("!", "?"),
        ("🙂", "🙃"),
        ("Python", "the Python"),
    ],
)
def test_different_names_are_different_things(one: str, other: str) -> None:
    assert meant([(one, "topic")], other) is meant([(other, "topic")], one) is None


@pytest.mark.parametrize(
    ("things", "name", "type", "expected"),
    [
        ([("list comprehension", "topic")], "list comprehensions", "concept", FORM),
        ([("library", "topic")], "libraries", "topic", FORM),
        ([("box", "file")], "boxes", "file", FORM),
        ([("error", "topic")], "errors", "person", None),
        ([("Python", "concept")], "Python programming", "topic", CONTAINED),
        ([("Python programming", "topic")], "Python", "concept", CONTAINED),
        ([("Python coding", "topic"), ("Python language", "topic")], "Python topic", "", None),
        ([("programming language", "topic")], "subject", "topic", None),
    ],
)
def test_plurals_and_words_that_say_nothing_count_for_things_of_one_type(
    things: Things, name: str, type: str, expected: MergeReason | None
) -> None:
    assert meant(things, name, type) == (expected and (things[0][0], expected))


@given(st.text(min_size=1).filter(str.strip))
def test_every_name_has_a_normal_form(name: str) -> None:
    forms = forms_of(name)
    assert forms.normal
    assert forms.singular
    assert forms_of(f" {name} ").normal == forms.normal


# ---- by their meaning ----


@pytest.mark.parametrize(
    ("things", "name", "type", "expected"),
    [
        ([("boat", "topic"), ("car", "concept")], "automobile", "topic", ("car", MEANING)),
        ([("boat", "topic"), ("car", "concept")], "aeroplane", "topic", None),
        ([("config.py", "file")], "test_config.py", "file", None),
        ([("config.py", "file")], "test_config.py", "topic", None),
        ([("config.py", "topic")], "test_config.py", "file", None),
        ([("room 1", "topic")], "room 2", "topic", None),
        ([("room 1", "topic"), ("room 2", "topic")], "chamber 2", "topic", ("room 2", MEANING)),
        ([], "car", "topic", None),
    ],
)
def test_a_meaning_counts_for_words_of_a_language_with_the_same_numbers(
    things: Things, name: str, type: str, expected: tuple[str, MergeReason] | None
) -> None:
    alike = (("car", "automobile"), ("config.py", "test_config.py"))
    embedder = Meanings(*alike, ("room 1", "room 2", "chamber 2"))
    assert meant(things, name, type, embedder) == expected
    assert meant(things, name, type) is None


@pytest.mark.parametrize(("threshold", "is_found"), [(0.6, True), (0.95, False)])
def test_the_threshold_decides(threshold: float, is_found: bool) -> None:
    tools = (Entity(name="web scraping tools", type="topic"),)
    resolver = NameResolver(EngineSettings(name_threshold=threshold), HashEmbedder())
    assert (resolver.names.take(tools).find("web scraping", "topic") is not None) is is_found


def test_each_name_is_embedded_once_and_many_that_come_one_by_one_are_all_known() -> None:
    embedder = Meanings(("car", "automobile"))
    names = index_of([("car", "topic"), ("boat", "topic"), ("a.py", "file")], embedder)
    assert embedder.embedded == []
    for name in ("plane", "train"):
        assert names.find(name, "topic") is None
        names.add(Entity(name=name, type="topic"))
    assert sorted(embedder.embedded) == ["boat", "car", "plane", "train"]
    many = index_of([], HashEmbedder())
    for number in range(150):
        assert many.find(f"item {number}", "topic") is None
        many.add(Entity(name=f"item {number}", type="topic"))
    for position in range(150):
        found = many.find(f"{position}: item", "topic")
        assert found
        assert (found.position, found.how) == (position, MEANING)


def test_the_index_of_another_world_is_made_again() -> None:
    resolver = NameResolver()
    one, other = (Entity(name="a", type="topic"),), (Entity(name="b", type="topic"),)
    names = resolver.names.take(one)
    resolver.names.put_back(one, names)
    assert resolver.names.take(one) is names
    assert resolver.names.take(one) is not names
    resolver.names.put_back(one, names)
    assert resolver.names.take(other).find("a", "topic") is None


NAMES = ("Python", "python's", "pythons", "Python programming", "C", "C++", "web scraping")
TYPES = ("topic", "concept", "coding:concept", "file", "person")


@given(
    st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(TYPES)), max_size=8),
    st.booleans(),
)
def test_an_index_that_grew_finds_what_one_made_at_once_finds(
    seen: list[tuple[str, str]], by_meaning: bool
) -> None:
    embedder = HashEmbedder() if by_meaning else None
    names = index_of([], embedder)
    entities: list[Entity] = []
    for name, type in seen:
        found = names.find(name, type)
        if found is None:
            entities.append(Entity(name=name, type=type))
            names.add(entities[-1])
            continue
        known = entities[found.position]
        if name not in (known.name, *known.aliases):
            entities[found.position] = known.model_copy(update={"aliases": (*known.aliases, name)})
            names.learn(found.position, name)
    fresh = NameResolver(embedder=embedder).names.take(tuple(entities))
    for name in NAMES:
        for type in TYPES:
            assert fresh.find(name, type) == names.find(name, type)
    for position, entity in enumerate(entities):
        for name in (entity.name, *entity.aliases):
            found = names.find(name, entity.type)
            assert found
            assert found.position == position


# ---- things of one number ----


def observation(*things: tuple[str, str]) -> Observation:
    return Observation.parse({"entities": [{"name": name, "type": type} for name, type in things]})


def known(*steps: Things, state: AwarenessState | None = None) -> list[tuple[str, str, int]]:
    async def run() -> AwarenessState:
        engine = DynamicEngine(ConversationAdapter(), clock=SteppingClock(), state=state)
        for things in steps:
            await engine.update(observation(*things))
        return engine.state

    entities = asyncio.run(run()).world.entities
    return [(one.name, one.type, one.mentions) for one in entities]


@pytest.mark.parametrize(
    "number",
    ["17", "#17", "17.", "ORD-17", "17b", "10.0.0.1", "9f8c1e2abcde", "A", "DE", "2026-03-01"],
)
def test_an_order_and_a_customer_of_one_number_are_two_things(number: str) -> None:
    order, customer = (number, "order"), (number, "customer")
    two = [(number, "order", 2), (f"customer:{number}", "customer", 2)]
    assert known((order, customer), (customer, order)) == two
    assert known((order,), (customer,), (customer,), (order,)) == two


WORDS = ("Python", "python 3", "app2.py", "room 12", "order:17", "Go", "go", "++", "水", "USA")


@pytest.mark.parametrize(
    ("word", "one", "other"),
    [*((word, "library", "error") for word in WORDS), ("42", "topic", "concept")],
)
def test_words_are_one_thing_of_any_type_and_topics_even_as_numbers(
    word: str, one: str, other: str
) -> None:
    assert known(((word, one), (word, other))) == [(word, one, 2)]


def test_a_thing_keeps_the_name_that_it_got_though_the_other_one_left() -> None:
    world = WorldModel(entities=(Entity(name="customer:17", type="customer"),))
    state = AwarenessState(domain="conversation", at=SteppingClock().now(), world=world)
    assert known((("17", "customer"),), state=state) == [("customer:17", "customer", 2)]


def test_engines_that_share_a_world_distinguish_what_the_others_saw() -> None:
    world = SharedWorld()
    for type in ("order", "customer"):
        SharedEngine(ConversationAdapter(), world).update(observation(("17", type)))
    assert [one.name for one in world.current.world.entities] == ["17", "customer:17"]


@given(
    st.lists(
        st.tuples(st.sampled_from(["17", "18", "#17", "x"]), st.sampled_from(["a", "b", "topic"])),
        max_size=12,
    )
)
def test_no_two_things_ever_have_one_name_and_none_is_lost(things: list[tuple[str, str]]) -> None:
    found = known(*((thing,) for thing in things))
    assert len({name for name, _, _ in found}) == len(found)
    assert sum(mentions for _, _, mentions in found) == len(things)
