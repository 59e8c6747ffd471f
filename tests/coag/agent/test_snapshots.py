"""What a run's snapshots hold, and how an agent is built again from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from kits.porters import ANSWER, TASK, porter

from coag.agent import CoagAgent, twin
from coag.errors import ConfigurationError
from coag.schema import (
    Note,
    Snapshot,
    SnapshotReason,
    SteppingClock,
    TraceRecord,
)


class Yard:
    """An environment that counts how often it was looked at, and changes every second time."""

    def __init__(self) -> None:
        self.looks = 0
        self.problem: Exception | None = None

    async def snapshot(self) -> Any:
        self.looks += 1
        if self.problem is not None:
            raise self.problem
        return {"stones": self.looks // 2}

    async def restore(self, state: Any) -> None:
        self.looks = state["stones"] * 2

    async def close(self) -> None:
        return None


async def say(agent: CoagAgent, text: str) -> str:
    message = TextMessage(content=text, source="user")
    response = await agent.on_messages([message], CancellationToken())
    return response.chat_message.to_text()


def snapshots(records: tuple[TraceRecord, ...]) -> list[Snapshot]:
    return [record for record in records if isinstance(record, Snapshot)]


async def with_yard(tmp_path: Path, yard: Yard) -> CoagAgent:
    return twin(porter(log=str(tmp_path / "calls.txt")), environment=yard)


async def test_a_run_begins_with_the_state_it_begins_with(tmp_path: Path) -> None:
    agent = porter(log=str(tmp_path / "calls.txt"))
    await say(agent, TASK)
    first = agent.trace[0]
    assert isinstance(first, Snapshot)
    assert first.reason is SnapshotReason.OPENED
    assert first.working_memory["cycle"] == 0
    assert "state" in first.procedures
    assert first.random is not None


async def test_an_environment_is_told_where_it_has_changed(tmp_path: Path) -> None:
    yard = Yard()
    agent = await with_yard(tmp_path, yard)
    await say(agent, TASK)
    told = [one.environment for one in snapshots(agent.trace)]
    assert yard.looks == agent.context.working_memory.cycle == 4
    assert told == [None, {"stones": 0}, {"stones": 1}, None, {"stones": 2}]


async def test_an_environment_that_cannot_tell_is_noted_and_the_turn_goes_on(
    tmp_path: Path,
) -> None:
    yard = Yard()
    yard.problem = OSError("the yard is shut")
    agent = await with_yard(tmp_path, yard)
    assert await say(agent, TASK) == ANSWER
    notes = [r for r in agent.trace if isinstance(r, Note) and r.about == "environment"]
    assert len(notes) == 4
    assert "OSError: the yard is shut" in notes[0].text


def test_what_can_do_nothing_is_no_environment(tmp_path: Path) -> None:
    agent = porter(log=str(tmp_path / "calls.txt"))
    with pytest.raises(ConfigurationError, match=r"environment takes an object with snapshot"):
        twin(agent, environment=object())


async def test_a_twin_has_what_the_first_was_given_but_for_what_is_named(tmp_path: Path) -> None:
    clock = SteppingClock()
    first = porter(log=str(tmp_path / "calls.txt"))
    second = twin(first, clock=clock, seed=7)
    assert second.name == first.name
    assert second.arguments.seed == 7
    assert second.arguments.deliberation == first.arguments.deliberation
    assert second.mind.deps.clock is clock
    assert await say(second, TASK) == ANSWER
