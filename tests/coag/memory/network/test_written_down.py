"""A store with a semantic network around it, written down and opened again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from autogen_agentchat.base import ChatAgent
from kits.remembered import remembered

from coag import CoagAgent, LongTermMemory, ScriptedModel
from coag.errors import ConfigurationError
from coag.memory import said_by_person
from coag.memory.network import Association, AssociativeStore, NetworkLimits
from coag.models import ScriptedReply, ScriptedRequest
from coag.schema import MemoryKind
from coag.store import ChromaStore, HashEmbedder, InMemoryStore, StoreConfig, WrappedStore


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
    await store.add([remembered("The boat is Ann's.", kind=MemoryKind.SEMANTIC, scope="clerk")])
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
        said = rf"A {type(store).__name__} cannot be written down.*wrapping\(\)"
        with pytest.raises(ConfigurationError, match=said):
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
    told = [
        memories[number % 2].remember(
            MemoryKind.SEMANTIC, "The boat is Ann's.", provenance=said_by_person(f"person {number}")
        )
        for number in range(8)
    ]
    done = await asyncio.gather(*told)
    (kept,) = await store.get([done[0].record.id])
    assert len(kept.lineage.also_from) == 7
    for memory in memories:
        await memory.close()
