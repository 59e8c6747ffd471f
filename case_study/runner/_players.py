"""Both kinds of agents, behind the one face by which the runner drives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from autogen_agentchat.messages import TextMessage, ToolCallExecutionEvent
from autogen_core import CancellationToken

from case_study.baseline import PlainAgent
from case_study.robot import ForbidCleaning, change_sentence
from coag.agent import CoagAgent
from coag.memory import RuleChange, rules_of
from coag.tracing import RunFolder
from vacuum_world.world import Cell

from ._request import Delivery
from ._showing import Watcher


class Player(Protocol):
    """An agent that plays an episode."""

    @property
    def turns(self) -> int:
        """How many turns have begun."""
        ...

    async def say(self, text: str) -> Sequence[str]:
        """Says something to it, or lets it go on with a broken turn; results of its actions."""
        ...

    async def change(self, cell: Cell) -> None:
        """Tells it that cleaning a cell is forbidden from now on; telling it twice is fine."""
        ...

    @property
    def folder(self) -> RunFolder | None:
        """Its run's folder; None before the first turn."""
        ...

    async def close(self) -> None:
        """Ends its run."""
        ...


class CoagPlayer:
    """A CoAG agent.

    Args:
        agent: The agent.
        delivery: How it is told of a change of requirements.
        watcher: Tells people what it thinks; None where nobody looks.
    """

    PROCEDURES = ("proposal", "evaluation", "selection", "deliberation")
    """Procedures by which it chooses; a change by procedure is a standing rule of each."""

    def __init__(
        self, agent: CoagAgent, delivery: Delivery, watcher: Watcher | None = None
    ) -> None:
        self._agent = agent
        self._delivery = delivery
        self._watcher = watcher

    @property
    def turns(self) -> int:
        """How many turns have begun."""
        return self._agent.turn

    async def say(self, text: str) -> Sequence[str]:
        """One turn; a turn that a crash broke off is gone on with, and nothing is said."""
        said = [] if self._agent.in_turn else [TextMessage(content=text, source="user")]
        results: list[str] = []
        async for item in self._agent.on_messages_stream(said, CancellationToken()):
            if isinstance(item, ToolCallExecutionEvent):
                results += [result.content for result in item.content]
            if self._watcher is not None:
                await self._watcher.saw(self._agent)
        return results

    async def change(self, cell: Cell) -> None:
        """Adds a constraint, or a standing rule to the procedures that choose."""
        if self._delivery == "constraint":
            rule = ForbidCleaning(cell)
            if rule.name not in self._agent.constraints.names():
                self._agent.constraints.add(rule)
            return
        sentence = change_sentence(cell)
        procedures = self._agent.procedures
        for name in self.PROCEDURES:
            if sentence not in rules_of(procedures.get(name).text):
                procedures.change_rule(
                    name,
                    RuleChange(operation="add", rule=sentence),
                    author="developer",
                    reason="The requirements have changed.",
                )

    @property
    def folder(self) -> RunFolder | None:
        """Its run's folder."""
        return self._agent.run_folder

    async def close(self) -> None:
        """Ends the run."""
        await self._agent.close()


class PlainPlayer:
    """The baseline."""

    def __init__(self, agent: PlainAgent) -> None:
        self._agent = agent
        self._told: set[Cell] = set()

    @property
    def turns(self) -> int:
        """How many turns have begun."""
        return self._agent.recorder.turn

    async def say(self, text: str) -> Sequence[str]:
        """One turn."""
        return await self._agent.say(text)

    async def change(self, cell: Cell) -> None:
        """Changes its system prompt: a new agent takes the dialogue over."""
        if cell not in self._told:
            self._told.add(cell)
            await self._agent.change_prompt(change_sentence(cell))

    @property
    def folder(self) -> RunFolder | None:
        """Its run's folder."""
        return self._agent.recorder.folder

    async def close(self) -> None:
        """Ends the run."""
        self._agent.recorder.close()
        await self._agent.close()
