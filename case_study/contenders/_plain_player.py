"""AutoGen's `AssistantAgent`, with what some contenders add to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from autogen_core.models import ChatCompletionClient
from autogen_core.tools import Workbench

from case_study.baseline import Guard, PlainAgent
from coag.compat import Recorder
from coag.tracing import RunFolder

from ._contender import Contender
from ._parts import Change, Message, Parts
from ._player import Turn


def plain_agent(
    contender: Contender,
    parts: Parts,
    client: ChatCompletionClient,
    recorder: Recorder,
    workbench: Workbench | None = None,
) -> PlainAgent:
    """The plain agent that a contender is.

    Args:
        contender: Which one.
        parts: What its domain brings.
        client: Its model.
        recorder: Who writes its run down.
        workbench: Stands for the tools, e.g. in a replay.
    """
    later = {change.sentence: change.constraint for change in parts.changes}
    guard = Guard(parts.context, parts.constraints, later)
    return PlainAgent(
        parts.name,
        client,
        tools=parts.tools if workbench is None else workbench,
        system_message=parts.utility_prompt,
        recorder=recorder,
        iterations=contender.tool_iterations,
        guard=guard if contender.constrained else None,
        memory=parts.recall if contender.remembers else None,
    )


class PlainPlayer:
    """A plain agent that plays.

    Args:
        agent: The agent.
        tokens: Tells how many tokens its model has used.
    """

    def __init__(self, agent: PlainAgent, tokens: Callable[[], int] = lambda: 0) -> None:
        self._agent = agent
        self._tokens = tokens
        self._told: set[str] = set()

    @property
    def turns(self) -> int:
        """How many turns have begun."""
        return self._agent.recorder.turn

    @property
    def tokens(self) -> int:
        """Tokens that its model has used."""
        return self._tokens()

    async def say(
        self, text: str, messages: Sequence[Message] = (), *, allowance: int | None = None
    ) -> Turn:
        """One turn; what others say stands above what the user says, in one message."""
        for each in messages:
            self._agent.recorder.message(each.source, each.text)
        said = "\n\n".join([*(each.text for each in messages), text])
        results = await self._agent.say(said, allowance=allowance)
        return Turn(results=tuple(results), refused=self._agent.refused)

    async def change(self, change: Change) -> None:
        """Changes its system prompt: a new agent takes the dialogue over."""
        if change.name not in self._told:
            self._told.add(change.name)
            await self._agent.change_prompt(change.sentence)

    @property
    def folder(self) -> RunFolder | None:
        """Its run's folder."""
        return self._agent.recorder.folder

    async def close(self) -> None:
        """Ends the run."""
        self._agent.recorder.close()
        await self._agent.close()
