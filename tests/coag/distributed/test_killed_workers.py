"""Workers as processes, one of which is killed in the middle of an action."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from autogen_agentchat.base import TaskResult
from kits.remote_agents import FACT, UNSURE

from coag.distributed import Processes, RemoteChatAgent, RemoteLimits, connect, processes
from coag.errors import ConfigurationError, RemoteAgentError

TESTS = Path(__file__).parents[2]
BRIEF = RemoteLimits(patience=10.0, resend=0.5, poll=0.2)


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Processes]:
    """A host and a Chroma server; workers come as the test wants them."""
    (tmp_path / "world").mkdir()
    options = {"world": str(tmp_path / "world")}
    paths = [TESTS, TESTS.parent]
    async with processes(tmp_path / "p", {}, chroma=True, options=options, path=paths) as started:
        yield started


def world_of(running: Processes) -> Path:
    return running.folder.parent / "world"


async def begin_to_carry(agent: RemoteChatAgent, world: Path) -> asyncio.Task[TaskResult]:
    """A turn that is inside the action: the stone is carried, the tool has not returned."""
    os.mkfifo(world / "inside")
    turn = asyncio.create_task(agent.run(task="Carry granite."))
    assert await asyncio.to_thread((world / "inside").read_text) == "inside\n"
    (world / "inside").unlink()
    return turn


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_turn_whose_worker_is_killed_inside_an_action_is_taken_up_and_nothing_done_twice(
    running: Processes,
) -> None:
    world = world_of(running)
    await running.start_worker("carrier", "kits.remote_agents:carrier")
    async with connect(
        running.address, limits=RemoteLimits(resend=0.5, poll=0.2, patience=60)
    ) as remote:
        agent = await remote.agent("carrier")
        await agent.run(task="Keep in mind what you know of the gate.")
        turn = await begin_to_carry(agent, world)
        with pytest.raises(ConfigurationError, match="'carrier' runs already"):
            await running.start_worker("carrier", "kits.remote_agents:carrier")

        await running.kill("carrier")
        await running.start_worker("carrier", "kits.remote_agents:carrier")

        result = await turn
        assert result.messages[-1].to_text() == UNSURE
        assert (world / "carried.txt").read_text().splitlines() == ["carrier granite"]

        newcomer = await remote.agent("carrier", key="newcomer")
        gate = await newcomer.run(task="Where is the gate?")
        assert gate.messages[-1].to_text() == FACT


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_killed_worker_that_nobody_replaces_ends_the_turn_in_an_error(
    running: Processes,
) -> None:
    await running.start_worker("carrier", "kits.remote_agents:stock_carrier")
    async with connect(running.address, limits=BRIEF) as remote:
        agent = await remote.agent("carrier")
        turn = await begin_to_carry(agent, world_of(running))
        await running.kill("carrier")
        with pytest.raises(RemoteAgentError, match="no sign of life for 10 s") as caught:
            await turn
    assert (caught.value.kind, caught.value.agent) == ("unreachable", "carrier/default")


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_turn_of_an_agent_without_a_trace_is_lost_with_its_worker_and_not_repeated(
    running: Processes,
) -> None:
    world = world_of(running)
    await running.start_worker("carrier", "kits.remote_agents:stock_carrier")
    async with connect(
        running.address, limits=RemoteLimits(resend=0.5, poll=0.2, patience=60)
    ) as remote:
        agent = await remote.agent("carrier")
        turn = await begin_to_carry(agent, world)
        await running.kill("carrier")
        await running.start_worker("carrier", "kits.remote_agents:stock_carrier")
        with pytest.raises(RemoteAgentError, match="it is not repeated") as lost:
            await turn
        assert lost.value.kind == "lost"
        assert (world / "carried.txt").read_text().splitlines() == ["carrier granite"]

        with pytest.raises(RemoteAgentError, match="Reset the remote agent") as replaced:
            await agent.run(task="And now?")
        assert replaced.value.kind == "replaced"
