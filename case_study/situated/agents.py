"""Three agents for one demonstrator: one polls, one waits, one has activities.

All of them reach the same server by MCP. `polling` is AutoGen's AssistantAgent with its
McpWorkbench: to know whether something has happened, it asks again. `waiting` is the same agent
with our workbench, which has a bounded wait. `situated` is a `SituatedAgent`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import TaskResult
from autogen_agentchat.messages import ToolCallRequestEvent
from autogen_core.models import ChatCompletionClient, CreateResult, RequestUsage

from coag.agent import SituatedAgent
from coag.compat import EnhancedToolWorkbench
from coag.errors import ConfigurationError
from coag.mcp import StreamableHttpServerParams
from coag.models import ModelRequest, WrappedClient
from coag.situated import ActivityBudget, ActivityState, McpToolConnection

AGENTS = ("situated", "waiting", "polling")
_LOOKS = frozenset({"read_properties", "wait_for_signal"})
"""Calls of stock agents by which they wait: to look again, or to wait again."""


@dataclass(slots=True)
class Usage:
    """What a run has used."""

    model_calls: int = 0
    calls_while_blocked: int = 0
    """Model calls made while nothing was to do but wait: for an agent with activities, while all
    of them were blocked; for others, those that only looked or waited once more."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    blocked: Callable[[], bool] = field(default=lambda: False)


class CountingClient(WrappedClient):
    """A model client whose calls are counted."""

    def __init__(self, inner: ChatCompletionClient, usage: Usage) -> None:
        super().__init__(inner)
        self._used = usage

    async def answer(self, request: ModelRequest) -> CreateResult:
        """Asks the model, and counts."""
        self._used.model_calls += 1
        self._used.calls_while_blocked += self._used.blocked()
        result = await super().answer(request)
        self._add(result.usage)
        return result

    def _add(self, usage: RequestUsage) -> None:
        self._used.prompt_tokens += usage.prompt_tokens
        self._used.completion_tokens += usage.completion_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Player:
    """How an agent is put to a task."""

    name: str
    goal: str
    model: ChatCompletionClient
    address: str
    """The MCP server of the tools."""
    steps: int
    """Model calls that it may make, at most."""
    proposal: Literal["native", "json"] = "native"
    """How a situated agent's model proposes: by tool calls, or as JSON in a grammar."""
    folder: Path | None = None
    """Where a situated agent keeps its activities and runs."""
    usage: Usage = field(default_factory=Usage)


async def play(agent: str, player: Player) -> str:
    """Has an agent of a kind pursue its goal; gives its last words.

    Raises:
        ConfigurationError: There is no such kind.
    """
    if agent not in _PLAYS:
        raise ConfigurationError(f"There is no agent {agent!r}. There are: {', '.join(AGENTS)}.")
    return await _PLAYS[agent](player)


async def _play_situated(player: Player) -> str:
    server = McpToolConnection(_params(player.address), "plant")
    async with SituatedAgent(
        player.name,
        CountingClient(player.model, player.usage),
        [server],
        folder=player.folder,
        budget=ActivityBudget(steps=player.steps),
        depth="compact",
        proposal=player.proposal,
        enumerate_actions=player.proposal == "json",
    ) as agent:
        player.usage.blocked = lambda: all(
            one.state is ActivityState.BLOCKED for one in agent.open_activities()
        )
        activity = agent.add_goal(player.goal)
        return (await agent.ended(activity.id)).result


async def _play_waiting(player: Player) -> str:
    bench = EnhancedToolWorkbench([McpToolConnection(_params(player.address), "plant")])
    async with bench:
        return await _play_stock(player, bench)


async def _play_polling(player: Player) -> str:
    async with _autogen_workbench(player.address) as bench:
        return await _play_stock(player, bench)


async def _play_stock(player: Player, bench: Any) -> str:
    agent = AssistantAgent(
        player.name,
        CountingClient(player.model, player.usage),
        workbench=bench,
        max_tool_iterations=player.steps,
    )
    result = await agent.run(task=player.goal)
    player.usage.calls_while_blocked = _repeated_looks(result)
    return result.messages[-1].to_text()


def _repeated_looks(result: TaskResult) -> int:
    """How many calls only looked or waited as the call right before had."""
    calls = [
        call
        for event in result.messages
        if isinstance(event, ToolCallRequestEvent)
        for call in event.content
    ]
    return sum(
        one.name in _LOOKS and (one.name, one.arguments) == (other.name, other.arguments)
        for one, other in pairwise(calls)
    )


def _params(address: str) -> StreamableHttpServerParams:
    return StreamableHttpServerParams(url=address)


@asynccontextmanager
async def _autogen_workbench(address: str) -> AsyncGenerator[Any]:
    try:
        from autogen_ext.tools.mcp import (
            McpWorkbench,
        )
        from autogen_ext.tools.mcp import (
            StreamableHttpServerParams as AutoGenParams,
        )
    except ImportError as error:
        raise ConfigurationError(
            "The polling agent is AutoGen's McpWorkbench, which needs mcp below 2: "
            'pip install "mcp<2".'
        ) from error
    async with McpWorkbench(AutoGenParams(url=address)) as bench:
        yield bench


_PLAYS: Mapping[str, Any] = {
    "situated": _play_situated,
    "waiting": _play_waiting,
    "polling": _play_polling,
}
