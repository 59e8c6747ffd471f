"""Things of different types that go by one number are told apart; words are one thing."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.awareness import (
    AwarenessState,
    ConversationAdapter,
    DynamicEngine,
    Entity,
    NameResolver,
    Observation,
    SharedWorld,
    WorldModel,
)
from coag.schema import SteppingClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def seen(*things: tuple[str, str]) -> Observation:
    return Observation.parse({"entities": [{"name": name, "type": type} for name, type in things]})


async def known(*steps: tuple[tuple[str, str], ...]) -> list[tuple[str, str, int]]:
    engine = DynamicEngine(ConversationAdapter(), clock=SteppingClock())
    for things in steps:
        await engine.update(seen(*things))
    return [(one.name, one.type, one.mentions) for one in engine.state.world.entities]


async def test_an_order_and_a_customer_of_one_number_are_two_things() -> None:
    order, customer = ("17", "order"), ("17", "customer")
    two = [("17", "order", 2), ("customer:17", "customer", 2)]
    assert await known((order, customer), (customer, order)) == two
    assert await known((order,), (customer,), (customer,), (order,)) == two


@pytest.mark.parametrize("number", ["#17", "ORD-17", "17b", "9f8c1e2abcde", "A"])
async def test_ids_and_short_codes_are_numbers_too(number: str) -> None:
    found = await known(((number, "order"), (number, "customer")))
    assert [name for name, _, _ in found] == [number, f"customer:{number}"]


@pytest.mark.parametrize("word", ["Python", "python 3", "app2.py", "KeyError", "水"])
async def test_words_are_one_thing_whatever_their_type(word: str) -> None:
    assert await known(((word, "library"), (word, "error"))) == [(word, "library", 2)]


async def test_topics_and_concepts_are_one_even_where_they_are_numbers() -> None:
    assert await known((("42", "topic"), ("42", "concept"))) == [("42", "topic", 2)]


async def test_a_thing_keeps_the_name_that_it_got_though_the_other_one_left() -> None:
    left = AwarenessState(
        domain="conversation",
        at=NOW,
        world=WorldModel(entities=(Entity(name="customer:17", type="customer"),)),
    )
    engine = DynamicEngine(ConversationAdapter(), clock=SteppingClock(), state=left)
    await engine.update(seen(("17", "customer")))
    assert [(one.name, one.mentions) for one in engine.state.world.entities] == [("customer:17", 2)]


def test_engines_that_share_a_world_tell_apart_what_the_others_saw() -> None:
    world, state = SharedWorld(), AwarenessState(domain="d", at=NOW)
    for type in ("order", "customer"):
        world.update(state, seen(("17", type)), NOW, resolver=NameResolver())
    names = [one.name for one in world.current.world.entities]
    assert names == ["17", "customer:17"]


@given(
    st.lists(
        st.tuples(st.sampled_from(["17", "18", "#17", "x"]), st.sampled_from(["a", "b", "topic"])),
        max_size=12,
    )
)
def test_no_two_things_ever_have_one_name_and_none_is_lost(things: list[tuple[str, str]]) -> None:
    found = asyncio.run(known(*((thing,) for thing in things)))
    assert len({name for name, _, _ in found}) == len(found)
    assert sum(mentions for _, _, mentions in found) == len(things)
