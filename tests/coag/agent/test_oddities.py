"""What is asked of an agent that it cannot do, and what it says."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from autogen_core.memory import ListMemory
from kits.brains import brain, respond
from kits.foragers import foraged

from coag.agent import CoagAgent, rebuild
from coag.agent.memories import memory_location
from coag.agent.model import _without_system  # pyright: ignore[reportPrivateUsage] - rarely met
from coag.errors import ResumeError, TurnInProgressError
from coag.memory import LongTermMemory
from coag.proof import fork
from coag.schema import PromptMessage
from coag.store import HashEmbedder, InMemoryStore
from coag.tracing import Rebuild, Recipe, RunFolder

HELLO = [TextMessage(content="Hello.", source="user")]


def test_a_single_memory_of_autogen_is_to_be_given_in_a_list() -> None:
    memory = ListMemory(name="notes")
    with pytest.raises(TypeError, match=r"takes a list of AutoGen memories: memory=\["):
        CoagAgent("a", brain(respond()), memory=memory)  # pyright: ignore[reportArgumentType] - so it is


def test_no_memory_and_a_memory_in_ram_rest_nowhere() -> None:
    assert memory_location(None) is None
    assert memory_location(LongTermMemory(InMemoryStore(HashEmbedder()), scope="a")) is None


async def recorded(logs: Path, factory: str) -> RunFolder:
    agent = CoagAgent(
        "a", brain(respond()), logs=logs, proposal="json", recipe=Recipe(factory=factory)
    )
    await agent.on_messages(HELLO, CancellationToken())
    assert agent.run_folder is not None
    await agent.close()
    return agent.run_folder


async def test_a_recipe_that_makes_something_else_says_what(tmp_path: Path) -> None:
    run = await recorded(tmp_path, "kits.porters:no_agent")
    with pytest.raises(ResumeError, match="makes a str, not a CoagAgent"):
        await rebuild(run, Rebuild(purpose="replay"))


async def test_a_factory_of_a_script_is_to_be_named_by_its_file(tmp_path: Path) -> None:
    run = await recorded(tmp_path, "__main__:build_it")
    with pytest.raises(ResumeError, match="Name the factory by its script's file name"):
        await rebuild(run, Rebuild(purpose="replay"))


async def test_a_fork_is_not_resumed_but_forked(tmp_path: Path) -> None:
    forked = await fork(await foraged(tmp_path), "2")
    with pytest.raises(ResumeError, match=r"is a fork of .*coag fork .* --at CYCLE\.PHASE"):
        await CoagAgent.resume(forked.run)


def in_another_loop(act: Callable[[], object]) -> None:
    """Does something in a thread, and waits for it."""
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


async def test_a_turn_that_was_left_in_another_loop_still_goes_on_there() -> None:
    agent = CoagAgent("a", brain(respond()), proposal="json")
    stream = agent.on_messages_stream(HELLO, CancellationToken())
    await anext(stream)
    refused: list[str] = []

    def say() -> None:
        try:
            asyncio.run(agent.on_messages(HELLO, CancellationToken()))
        except TurnInProgressError as error:
            refused.append(str(error))

    in_another_loop(say)
    assert len(refused) == 1
    await stream.aclose()
    await agent.on_messages(HELLO, CancellationToken())
    await agent.close()


def test_where_no_user_speaks_instructions_are_told_as_the_users() -> None:
    system = PromptMessage(role="system", content="Be kind.")
    own = PromptMessage(role="assistant", content="I am.")
    user = PromptMessage(role="user", content="Be brief.")
    assert [(one.role, one.content) for one in _without_system((system, own))] == [
        ("user", "Be kind."),
        ("assistant", "I am."),
    ]
    assert [(one.role, one.content) for one in _without_system((system, own, user))] == [
        ("assistant", "I am."),
        ("user", "Be kind.\n\nBe brief."),
    ]
