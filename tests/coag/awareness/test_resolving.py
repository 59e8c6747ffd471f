"""Which entity a name means, with and without an embedder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from coag.awareness import (
    EngineSettings,
    Entity,
    MergeReason,
    NameResolver,
    Relationship,
    WorldModel,
)
from coag.store import Embedder, HashEmbedder

NAMES = ("Python", "python's", "pythons", "Python programming", "C", "C++", "web scraping")
TYPES = ("topic", "concept", "coding:concept", "file", "person")


class Meanings:
    """An embedder that knows a few meanings: words listed together mean the same."""

    name = "meanings"
    dimension = 8
    minimum_similarity = 0.2

    def __init__(self, *alike: tuple[str, ...]) -> None:
        self.alike = alike
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> NDArray[np.float32]:
        row = np.zeros(self.dimension, dtype=np.float32)
        for place, words in enumerate(self.alike):
            row[place] = 3.0 if text in words else 0.0
        return row


def world_of(*entities: tuple[str, str]) -> WorldModel:
    return WorldModel(entities=tuple(Entity(name=name, type=type) for name, type in entities))


def meant(
    world: WorldModel, name: str, type: str = "topic", embedder: Embedder | None = None
) -> tuple[str, MergeReason] | None:
    found = NameResolver(embedder=embedder).names.take(world.entities).find(name, type)
    return None if found is None else (world.entities[found.position].name, found.how)


def test_the_normal_form_means_the_entity_whatever_its_type() -> None:
    world = world_of(("Python", "concept"))
    assert meant(world, "python", "file") == ("Python", MergeReason.NORMAL_FORM)


def test_python_programming_is_python_in_either_order() -> None:
    contained = MergeReason.CONTAINED
    assert meant(world_of(("Python", "concept")), "Python programming") == ("Python", contained)
    longer = world_of(("Python programming", "topic"))
    assert meant(longer, "Python", "concept") == ("Python programming", contained)


def test_a_plural_means_its_singular_among_words_but_not_among_kinds() -> None:
    world = world_of(("error", "topic"))
    assert meant(world, "errors", "concept") == ("error", MergeReason.NORMAL_FORM)
    assert meant(world, "errors", "person") is None


def test_a_form_that_fits_two_entities_means_neither() -> None:
    world = world_of(("Python coding", "topic"), ("Python language", "topic"))
    assert meant(world, "Python programming") is None


def test_an_alias_means_its_entity() -> None:
    entity = Entity(name="Python", type="concept", aliases=("the snake language",))
    found = meant(WorldModel(entities=(entity,)), "The Snake Language")
    assert found == ("Python", MergeReason.NORMAL_FORM)


def test_a_meaning_near_enough_means_the_entity() -> None:
    embedder = Meanings(("car", "automobile"), ("boat", "ship"))
    world = world_of(("boat", "topic"), ("car", "concept"))
    assert meant(world, "automobile", embedder=embedder) == ("car", MergeReason.EMBEDDING)
    assert meant(world, "aeroplane", embedder=embedder) is None
    assert meant(world, "automobile") is None


def test_meaning_counts_for_words_of_a_language_only() -> None:
    embedder = Meanings(("config.py", "test_config.py"))
    assert meant(world_of(("config.py", "file")), "test_config.py", "file", embedder) is None
    assert meant(world_of(("config.py", "file")), "test_config.py", "topic", embedder) is None
    assert meant(world_of(("config.py", "topic")), "test_config.py", "file", embedder) is None


def test_other_numbers_are_other_things_however_near_in_meaning() -> None:
    embedder = Meanings(("room 1", "room 2", "chamber 2"))
    world = world_of(("room 1", "topic"))
    assert meant(world, "room 2", embedder=embedder) is None
    both = world_of(("room 1", "topic"), ("room 2", "topic"))
    assert meant(both, "chamber 2", embedder=embedder) == ("room 2", MergeReason.EMBEDDING)


@pytest.mark.parametrize(("threshold", "found"), [(0.6, True), (0.95, False)])
def test_the_threshold_decides(threshold: float, found: bool) -> None:
    world = world_of(("web scraping tools", "topic"))
    resolver = NameResolver(EngineSettings(name_threshold=threshold), HashEmbedder())
    assert (resolver.names.take(world.entities).find("web scraping", "topic") is not None) is found


def test_each_name_is_embedded_once() -> None:
    embedder = Meanings(("car", "automobile"))
    resolver = NameResolver(embedder=embedder)
    world = world_of(("car", "topic"), ("boat", "topic"), ("a.py", "file"))
    names = resolver.names.take(world.entities)
    assert embedder.asked == []
    for name in ("plane", "train"):
        assert names.find(name, "topic") is None
        names.add(Entity(name=name, type="topic"))
    assert sorted(embedder.asked) == ["boat", "car", "plane", "train"]


def test_many_names_that_come_one_by_one_are_all_remembered() -> None:
    names = NameResolver(embedder=HashEmbedder()).names.take(())
    for number in range(200):
        assert names.find(f"item {number}", "topic") is None
        names.add(Entity(name=f"item {number}", type="topic"))
    for position in range(200):
        found = names.find(f"{position}: item", "topic")
        assert found
        assert (found.position, found.how) == (position, MergeReason.EMBEDDING)


def test_no_name_is_near_to_none() -> None:
    assert meant(WorldModel(), "Python", embedder=HashEmbedder()) is None
    assert meant(world_of(("?", "topic")), "!", embedder=HashEmbedder()) is None


def test_the_index_of_another_world_is_made_anew() -> None:
    resolver = NameResolver()
    one, other = world_of(("a", "topic")), world_of(("b", "topic"))
    names = resolver.names.take(one.entities)
    resolver.names.put_back(one.entities, names)
    assert resolver.names.take(one.entities) is names
    assert resolver.names.take(one.entities) is not names
    resolver.names.put_back(one.entities, names)
    assert resolver.names.take(other.entities).find("a", "topic") is None
    edges = (Relationship(source="a", type="t", target="b"),)
    assert resolver.edges.take(edges) == {("a", "t", "b"): 0}


@given(
    st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(TYPES)), max_size=8),
    st.booleans(),
)
def test_an_index_that_grew_finds_what_one_made_at_once_finds(
    seen: list[tuple[str, str]], by_meaning: bool
) -> None:
    resolver = NameResolver(embedder=HashEmbedder() if by_meaning else None)
    names = resolver.names.take(())
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
    anew = resolver.names.take(tuple(entities))
    for name in NAMES:
        for type in TYPES:
            assert anew.find(name, type) == names.find(name, type)
    for position, entity in enumerate(entities):
        for name in (entity.name, *entity.aliases):
            found = names.find(name, entity.type)
            assert found
            assert found.position == position
