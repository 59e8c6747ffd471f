"""CoAG agents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from autogen_agentchat.messages import TextMessage, ToolCallExecutionEvent
from autogen_core import CancellationToken
from autogen_core.models import ChatCompletionClient

from coag.agent import CoagAgent
from coag.memory import RuleChange, rules_of
from coag.schema import Constraint
from coag.tracing import RunFolder

from ._contender import Contender
from ._parts import Change, Delivery, Message, Parts
from ._player import Turn


def coag_agent(
    contender: Contender,
    parts: Parts,
    model: ChatCompletionClient,
    *,
    logs: Path | None = None,
    seed: int = 0,
    rules: Sequence[Constraint] | None = None,
) -> CoagAgent:
    """The CoAG agent that a contender is.

    Args:
        contender: Which one.
        parts: What its domain brings.
        model: Its model.
        logs: The folder for its run's folder; None keeps the trace in RAM.
        seed: Seed of its random source.
        rules: The rules in force, in place of those of the parts.
    """
    given = parts.constraints if rules is None else rules
    return CoagAgent(
        parts.name,
        model,
        tools=list(parts.tools),
        system_message=parts.system_prompt,
        model_context=parts.context(),
        constraints=list(given) if contender.constrained else [],
        modules=[parts.awareness()] if contender.aware else [],
        max_tool_iterations=1,
        memory=parts.memory,
        procedures=parts.procedures,
        logs=logs,
        recipe=parts.recipe,
        environment=parts.environment,
        seed=seed,
        tool_timeout=parts.tool_timeout,
        **_deliberation(contender, parts),
    )


def _deliberation(contender: Contender, parts: Parts) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "depth": contender.depth,
        "proposal": "grounded" if contender.grounded else "json",
        "recall_k": parts.recalled,
        "answers": "brief",
    }
    if parts.enforces_schemas:
        settings["enumerate_actions"] = contender.enumerated
    if contender.without:
        settings["ablations"] = frozenset(contender.without)
    return settings


class CoagPlayer:
    """A CoAG agent that plays.

    Args:
        agent: The agent.
        delivery: How it is told of a change of requirements.
        tokens: Tells how many tokens its model has used.
        on_event: Called with the agent after each of its events, e.g. to show it.
    """

    PROCEDURES = ("proposal", "evaluation", "selection", "deliberation")
    """Procedures by which it chooses; a change by procedure is a standing rule of each."""

    def __init__(
        self,
        agent: CoagAgent,
        delivery: Delivery,
        tokens: Callable[[], int] = lambda: 0,
        on_event: Callable[[CoagAgent], Awaitable[None]] | None = None,
    ) -> None:
        self.agent = agent
        self._delivery = delivery
        self._tokens = tokens
        self._on_event = on_event

    @property
    def turns(self) -> int:
        """How many turns have begun."""
        return self.agent.turn

    @property
    def tokens(self) -> int:
        """Tokens that its model has used."""
        return self._tokens()

    async def say(
        self, text: str, messages: Sequence[Message] = (), *, allowance: int | None = None
    ) -> Turn:
        """One turn with one action; where a crash broke one off, nothing is said anew."""
        del allowance
        said = [TextMessage(content=each.text, source=each.source) for each in messages]
        said.append(TextMessage(content=text, source="user"))
        results: list[str] = []
        heard = [] if self.agent.in_turn else said
        async for item in self.agent.on_messages_stream(heard, CancellationToken()):
            if isinstance(item, ToolCallExecutionEvent):
                results += [result.content for result in item.content]
            if self._on_event is not None:
                await self._on_event(self.agent)
        return Turn(results=tuple(results))

    async def change(self, change: Change) -> None:
        """Adds a constraint, or a standing rule to the procedures that choose."""
        if self._delivery == "constraint":
            if change.name not in self.agent.constraints.names():
                self.agent.constraints.add(change.constraint)
            return
        procedures = self.agent.procedures
        for name in self.PROCEDURES:
            if change.sentence not in rules_of(procedures.get(name).text):
                procedures.change_rule(
                    name,
                    RuleChange(operation="add", rule=change.sentence),
                    author="developer",
                    reason="The requirements have changed.",
                )

    @property
    def folder(self) -> RunFolder | None:
        """Its run's folder."""
        return self.agent.run_folder

    async def close(self) -> None:
        """Ends the run."""
        await self.agent.close()
