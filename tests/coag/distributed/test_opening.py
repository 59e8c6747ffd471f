"""A worker's death between any two steps: what the one in its place knows and does."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from autogen_core import AgentId, CancellationToken
from kits.remote_agents import UNSURE, carrier, stock_carrier
from kits.remote_stage import BRISK, Stage, to_the_end

from coag.agent import CoagAgent
from coag.distributed import (
    AgentFactory,
    AgentPlace,
    RemoteChatAgent,
    RemoteConnection,
    connect,
    host,
    worker,
)
from coag.distributed.journal import TurnBegun
from coag.distributed.protocol import FollowTurn
from coag.errors import RemoteAgentError

CARRY, KEEP, GATE = "Carry granite.", "Keep in mind what you know.", "Where is the gate?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A world, and the folder that workers share."""

    address: str
    folder: Path

    @property
    def journal(self) -> Path:
        return self.folder / "logs" / "carrier" / "default" / "turns.jsonl"

    @property
    def carried(self) -> list[str]:
        path = self.folder / "carried.txt"
        return path.read_text().splitlines() if path.exists() else []

    @asynccontextmanager
    async def worker(
        self, factory: AgentFactory = carrier, logs: str = "logs"
    ) -> AsyncGenerator[RemoteConnection]:
        options = {"world": str(self.folder)}
        async with worker(
            self.address,
            {"carrier": factory},
            logs=self.folder / logs,
            options=options,
            limits=BRISK,
        ) as connection:
            yield connection


@pytest.fixture
async def site(stage: Stage, tmp_path: Path) -> Site:
    """A place to work at, without workers."""
    return Site(address=stage.address, folder=tmp_path)


@pytest.fixture
async def agent(stage: Stage, site: Site) -> RemoteChatAgent:
    """A client's agent whose first worker has served one turn and is gone."""
    remote = await stage.stack.enter_async_context(connect(site.address, limits=BRISK))
    async with site.worker():
        agent = await remote.agent("carrier")
        await agent.run(task=KEEP)
    return agent


async def test_a_worker_that_restarts_between_turns_continues_the_dialogue(
    site: Site, agent: RemoteChatAgent
) -> None:
    before = set((site.folder / "logs" / "carrier" / "default" / "runs").iterdir())
    async with site.worker():
        result = await agent.run(task=GATE)
        state = await agent.save_state()
    assert KEEP in str(state)
    assert "locked on Sundays" in result.messages[-1].to_text()
    assert set((site.folder / "logs" / "carrier" / "default" / "runs").iterdir()) == before


async def test_a_turn_that_was_killed_inside_an_action_is_continued_and_the_action_not_repeated(
    site: Site, agent: RemoteChatAgent
) -> None:
    copy = site.folder / "as-it-was-killed"
    async with AsyncExitStack() as first:
        await first.enter_async_context(site.worker())
        os.mkfifo(site.folder / "inside")
        turn = asyncio.create_task(agent.run(task=CARRY))
        await asyncio.to_thread((site.folder / "inside").read_text)
        (site.folder / "inside").unlink()
        pages = shutil.ignore_patterns("cycles")  # which a thread may be at work on
        shutil.copytree(site.folder / "logs", copy, ignore=pages)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
    assert site.carried == ["carrier granite"]
    open_turn = (copy / "carrier" / "default" / "turns.jsonl").read_text().splitlines()[-1]
    follow = FollowTurn(turn=json.loads(open_turn)["turn"], epoch="", after=0)
    async with site.worker(logs="as-it-was-killed") as connection:
        answers = await to_the_end(connection, AgentId("carrier", "default"), follow)
        assert answers[-1].items[-1].message["message"]["content"] == UNSURE
    assert site.carried == ["carrier granite"]


def without_its_end(journal: Path) -> None:
    """Makes a journal as a worker leaves it that is killed right after the agent's turn."""
    lines = journal.read_text().splitlines(keepends=True)
    assert '"ended"' in lines[-1]
    journal.write_text("".join(lines[:-1]))


async def test_an_answer_that_the_journal_missed_is_taken_from_the_trace(
    site: Site, agent: RemoteChatAgent
) -> None:
    async with site.worker():
        turn = asyncio.create_task(agent.run(task=GATE))
        await turn
    without_its_end(site.journal)
    async with site.worker():
        await agent.save_state()
    assert "taken_from" in site.journal.read_text()
    assert "locked on Sundays" in site.journal.read_text().splitlines()[-1]


async def test_a_turn_that_the_agent_had_not_begun_is_recorded_as_such(
    site: Site, agent: RemoteChatAgent
) -> None:
    with site.journal.open("a") as journal:
        journal.write(TurnBegun(turn="t", turns_before=1).model_dump_json() + "\n")
    async with site.worker():
        await agent.run(task=GATE)
    assert "before the agent had begun the turn" in site.journal.read_text()


async def test_without_a_recipe_the_turn_is_lost_and_the_dialogue_too(
    site: Site, stage: Stage
) -> None:
    def by_hand(place: AgentPlace) -> CoagAgent:
        return carrier(AgentPlace(type="t", key="k", logs=place.logs, options=place.options))

    remote = await stage.connect()
    async with site.worker(by_hand):
        agent = await remote.agent("carrier")
        await agent.run(task=KEEP)
    without_its_end(site.journal)
    async with site.worker(by_hand):
        with pytest.raises(RemoteAgentError, match="knows nothing of the dialogue"):
            await agent.run(task=GATE)
    assert '"kind": "lost"' in site.journal.read_text()


async def test_a_stock_agent_keeps_no_run_so_its_successor_does_not_pass_for_it(
    site: Site, stage: Stage
) -> None:
    remote = await stage.connect()
    async with site.worker(stock_carrier):
        agent = await remote.agent("carrier")
        await agent.run(task=CARRY)
        state = await agent.save_state()
    async with site.worker(stock_carrier):
        with pytest.raises(RemoteAgentError, match="knows nothing of the dialogue"):
            await agent.run(task=CARRY)
        await agent.load_state(state)
        await agent.run(task="Thank you.")
    assert site.carried == ["carrier granite"]


async def test_after_a_reset_what_was_before_is_not_taken_up(
    site: Site, agent: RemoteChatAgent, stage: Stage
) -> None:
    async with site.worker() as connection:
        await agent.run(task=GATE)
        again = await connection.agent("carrier")
        await again.on_reset(CancellationToken())
    async with site.worker():
        state = await agent.save_state()
        await agent.run(task=GATE)
    assert KEEP not in str(state)
    async with site.worker():
        assert GATE in str(await agent.save_state())


async def test_a_loaded_state_is_not_there_any_more_unless_a_turn_followed(
    site: Site, agent: RemoteChatAgent
) -> None:
    async with site.worker():
        state = await agent.save_state()
        await agent.load_state(state)
    async with site.worker():
        with pytest.raises(RemoteAgentError, match="knows nothing of the dialogue"):
            await agent.run(task=GATE)
        await agent.load_state(state)
        await agent.run(task=GATE)
    async with site.worker():
        assert KEEP in str(await agent.save_state())


async def test_a_closed_agent_is_not_taken_up(site: Site, agent: RemoteChatAgent) -> None:
    async with site.worker():
        await agent.save_state()
        await agent.close()
    async with site.worker():
        assert KEEP not in str(await agent.save_state())


async def test_a_run_that_another_process_still_writes_is_an_error_not_a_second_agent(
    site: Site, agent: RemoteChatAgent
) -> None:
    (run,) = (site.folder / "logs" / "carrier" / "default" / "runs").iterdir()
    holder = await CoagAgent.resume(run)
    async with site.worker():
        with pytest.raises(RemoteAgentError, match="raised TraceError"):
            await agent.run(task=GATE)
    await holder.close()


async def test_of_two_workers_with_one_folder_only_one_has_the_agent(site: Site) -> None:
    options, logs = {"world": str(site.folder)}, site.folder / "logs"
    async with (
        host(limits=BRISK) as other,
        worker(other, {"carrier": carrier}, logs=logs, options=options, limits=BRISK) as elsewhere,
    ):
        async with site.worker() as here:
            await here.agent("carrier")
            with pytest.raises(RemoteAgentError, match="Another worker"):
                await elsewhere.agent("carrier")
        await elsewhere.agent("carrier")
