"""Agents whose memory changes with time and use: how they are made, run, replayed and forked."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kits.brains import brain, respond
from kits.remembered import remembered
from kits.sleepers import LONG, Calendar, dynamics_of, rehydrating
from kits.turns import proved, say, traced

from coag import CoagAgent, LongTermMemory, ScriptedModel
from coag.agent import SituatedAgent
from coag.errors import ConfigurationError
from coag.memory import MemoryDynamicsModule
from coag.memory.consolidation import sleep
from coag.memory.dynamics import (
    DYNAMICS_FILE,
    Forgetting,
    Gist,
    MemoryDynamics,
    MemoryDynamicsSettings,
)
from coag.memory.rehydration import REHYDRATE_ACTION
from coag.models import ScriptedRequest
from coag.proof import fork
from coag.schema import ExecutionOutcome, SystemClock
from coag.store import HashEmbedder, InMemoryStore, open_store
from coag.tracing import read_run

RECORD = remembered(LONG, scope="scout")


def done(request: ScriptedRequest) -> str:
    return "Done."


MODEL = ScriptedModel(done)


def modules_in(agent: CoagAgent) -> list[str]:
    return [one.name for one in agent.mind.deps.modules.modules]


async def lived(folder: Path) -> None:
    """A memory of an agent `scout`, with a gist of one record."""
    clock = Calendar(SystemClock().now() - timedelta(days=70))
    dynamics = MemoryDynamics("assistant", path=folder / DYNAMICS_FILE, owner="scout", clock=clock)
    store = open_store(folder / "long_term")
    memory = LongTermMemory(store, scope="scout", dynamics=dynamics)
    await store.add([RECORD])
    await sleep(memory)
    clock.passes(69)
    await sleep(memory)
    assert dynamics_of(memory).states.get([RECORD.id])[RECORD.id].gist
    await memory.close()


async def test_one_argument_gives_an_agent_in_a_folder_dynamics_and_its_action(
    tmp_path: Path,
) -> None:
    agent = CoagAgent("scout", brain(respond()), memory=tmp_path, memory_dynamics="assistant")
    assert (tmp_path / DYNAMICS_FILE).is_file()
    assert dynamics_of(agent.long_term_memory).owner == "scout"
    assert modules_in(agent) == ["memory_dynamics"]
    await agent.close()


async def test_without_it_there_is_no_file_no_module_and_no_action(tmp_path: Path) -> None:
    for dynamics in (None, "plain"):
        folder = tmp_path / str(dynamics)
        agent = CoagAgent("scout", brain(respond()), memory=folder, memory_dynamics=dynamics)
        assert modules_in(agent) == []
        await agent.close()
    assert not (tmp_path / "None" / DYNAMICS_FILE).exists()


async def test_a_memory_with_dynamics_brings_its_module_once() -> None:
    dynamics = MemoryDynamics("assistant", owner="scout")
    memory = LongTermMemory(InMemoryStore(HashEmbedder()), scope="scout", dynamics=dynamics)
    assert modules_in(CoagAgent("scout", brain(respond()), memory=memory)) == ["memory_dynamics"]
    given = MemoryDynamicsModule(memory)
    agent = CoagAgent("scout", brain(respond()), memory=memory, modules=[given])
    assert agent.mind.deps.modules.modules == (given,)


@pytest.mark.parametrize("memory", ["memory", "http://localhost:1"])
def test_dynamics_for_a_memory_that_has_none_of_the_agents_own_files_are_refused(
    memory: str,
) -> None:
    given: Any = memory
    if memory == "memory":
        given = LongTermMemory(InMemoryStore(HashEmbedder()), scope="scout")
    with pytest.raises(ConfigurationError, match="for a memory in a folder or in RAM"):
        CoagAgent("scout", brain(respond()), memory=given, memory_dynamics="assistant")


def test_an_unknown_preset_is_refused_with_those_that_there_are() -> None:
    unknown: Any = "elephant"
    with pytest.raises(ConfigurationError, match="no preset 'elephant' of memory; known: 'plain'"):
        CoagAgent("scout", brain(respond()), memory_dynamics=unknown)


async def test_an_agent_reads_a_gist_word_for_word_and_its_run_is_replayed_alike(
    tmp_path: Path,
) -> None:
    await lived(tmp_path / "memory")

    def make() -> CoagAgent:
        return rehydrating(str(tmp_path), RECORD.id[:8])

    agent = make()
    await say(agent, "When does the red ladder come back?")
    first, _ = traced(agent, ExecutionOutcome)
    assert LONG in first.executed[0].result
    taint = agent.context.working_memory.tainted_by
    assert taint is not None
    assert REHYDRATE_ACTION in taint.sources
    used = dynamics_of(agent.long_term_memory).states.get([RECORD.id])[RECORD.id].uses
    run = await proved(agent, make)
    after = MemoryDynamics("assistant", path=tmp_path / "memory" / DYNAMICS_FILE, owner="scout")
    assert after.states.get([RECORD.id])[RECORD.id].uses == used  # the replay wrote nothing
    after.close()
    forked = await fork(run, "1", trust=["kits"])
    assert read_run(forked.run).configuration["modules"] == ["memory_dynamics"]


async def test_the_component_of_an_agent_keeps_its_dynamics(tmp_path: Path) -> None:
    settings = MemoryDynamicsSettings(forgetting=Forgetting(retention=30.0), gist=Gist())
    agent = CoagAgent("scout", MODEL, memory=tmp_path, memory_dynamics=settings)
    component = agent.dump_component()
    await agent.close()
    again = CoagAgent.load_component(component)
    assert dynamics_of(again.long_term_memory).settings == settings
    await again.close()


async def test_the_activities_of_a_situated_agent_share_a_memory_with_dynamics(
    tmp_path: Path,
) -> None:
    agent = SituatedAgent("scout", MODEL, [], folder=tmp_path, memory_dynamics="assistant")
    assert dynamics_of(agent.memory).owner == "scout"
    assert agent.dump_component().config["agent"]["memory_dynamics"] == "assistant"
    await agent.close()
