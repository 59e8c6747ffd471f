"""Turns of agents, what their traces hold, and a module that does nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken

from coag import CoagAgent
from coag.proof import replay, verify
from coag.schema import Outcome, Percept, Phase, Section, Situation
from coag.tracing import RunFolder

RecordT = TypeVar("RecordT")


async def say(agent: CoagAgent, *texts: str) -> str:
    """What the agent answers the user."""
    messages = [TextMessage(content=text, source="user") for text in texts or ("Go on.",)]
    response = await agent.on_messages(messages, CancellationToken())
    return response.chat_message.to_text()


def traced(agent: CoagAgent, kind: type[RecordT]) -> list[RecordT]:
    """The records of this type in the agent's trace."""
    return [record for record in agent.trace if isinstance(record, kind)]


async def proved(agent: CoagAgent, make: Callable[[], CoagAgent]) -> RunFolder:
    """Ends the agent's run, which keeps all rules and replays to the same; gives its folder."""
    run = agent.run_folder
    assert run is not None
    await agent.close()
    assert verify(run) == []
    report = await replay(run, agent=make)
    assert report.divergence is None, str(report.divergence)
    return run


class Idle:
    """A cognitive module that does nothing; tests override what they need."""

    name = "idle"

    async def observe(self, event: Percept | Outcome) -> None:
        """Nothing is kept."""

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        """Nothing is shown."""
        return None

    def save_state(self) -> Mapping[str, Any]:
        """There is none."""
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """There is none."""
