"""Agents for tests of `coag.distributed`, made by name in this process or on a worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import AssistantAgent, BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    TextMessage,
    ThoughtEvent,
)
from autogen_core import CancellationToken, FunctionCall

from coag.agent import CoagAgent
from coag.distributed import AgentPlace
from coag.models import ScriptedModel, ScriptedRequest

Yielded = BaseAgentEvent | BaseChatMessage | Response
Acts = Callable[[Sequence[BaseChatMessage], CancellationToken], AsyncGenerator[Yielded, None]]

FACT = "The gate of the quarry is locked on Sundays."
UNSURE = "I cannot tell whether the stone was carried."


async def echoes(
    messages: Sequence[BaseChatMessage], token: CancellationToken
) -> AsyncGenerator[Yielded, None]:
    """Thinks once and repeats the last message."""
    del token
    thought = ThoughtEvent(content="I repeat.", source="puppet")
    yield thought
    message = TextMessage(content=messages[-1].to_text(), source="puppet")
    yield Response(chat_message=message, inner_messages=[thought])


class Puppet(BaseChatAgent):
    """An agent that does what it was given to do, and notes what is done with it."""

    def __init__(self, acts: Acts = echoes, name: str = "puppet") -> None:
        super().__init__(name, "A puppet.")
        self.acts = acts
        self.done: list[str] = []
        self.state: dict[str, Any] = {"seen": 0}
        self.produces: tuple[type[BaseChatMessage], ...] = (TextMessage,)

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return self.produces

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        raise AssertionError("Hosts stream.")

    async def on_messages_stream(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> AsyncGenerator[Yielded, None]:
        self.done.append("turn")
        self.state["seen"] += len(messages)
        async for item in self.acts(messages, cancellation_token):
            yield item

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        self.done.append("reset")
        self.state = {"seen": 0}

    async def on_pause(self, cancellation_token: CancellationToken) -> None:
        self.done.append("pause")

    async def on_resume(self, cancellation_token: CancellationToken) -> None:
        self.done.append("resume")

    async def save_state(self) -> Mapping[str, Any]:
        return dict(self.state)

    async def load_state(self, state: Mapping[str, Any]) -> None:
        self.state = dict(state)

    async def close(self) -> None:
        self.done.append("close")


def puppet(place: AgentPlace) -> Puppet:
    """A puppet that repeats."""
    del place
    return Puppet()


def no_agent(place: AgentPlace) -> str:
    """A factory that makes something else."""
    del place
    return "a stone"


def candidate(action: str, **arguments: str) -> dict[str, Any]:
    """What a compact model answers: one candidate."""
    return {"situation": "So.", "candidates": [{"action": action, "arguments": arguments}]}


def carrier_mind(request: ScriptedRequest) -> dict[str, Any]:
    """Going by its prompt alone: remembers, or carries once and says what became of it."""
    text = request.text
    if "Where is the gate?" in text:
        known = FACT if FACT in text else "I do not know."
        return candidate("respond", text=known)
    if "Carry granite" in text:
        if "may or may not have had its effect" in text:
            return candidate("respond", text=UNSURE)
        if "carried granite" in text:
            return candidate("respond", text="Granite is up.")
        return candidate("carry", stone="granite")
    if "Remembered (" in text:
        return candidate("respond", text="I will keep it in mind.")
    return candidate("tool_update_semantic_memory", fact=FACT)


def carrier(place: AgentPlace) -> CoagAgent:
    """A CoagAgent with a tool that acts on a file, says so in a pipe, and stays."""

    async def carry(stone: str) -> str:
        """Carries a stone."""
        return await carried(place, stone)

    return CoagAgent(
        "carrier",
        ScriptedModel(carrier_mind),
        tools=[carry],
        depth="compact",
        proposal="json",
        memory=place.options.get("memory"),
        logs=place.logs,
        recipe=place.recipe,
    )


def stock_carrier(place: AgentPlace) -> AssistantAgent:
    """The same of AutoGen's own agent, which keeps no trace."""

    async def carry(stone: str) -> str:
        """Carries a stone."""
        return await carried(place, stone)

    def mind(request: ScriptedRequest) -> Any:
        if request.tools and "carried granite" not in request.text:
            return [FunctionCall(id="1", name="carry", arguments='{"stone": "granite"}')]
        return "Granite is up."

    return AssistantAgent("carrier", ScriptedModel(mind), tools=[carry])


async def carried(place: AgentPlace, stone: str) -> str:
    """Acts on the world once more; where there is a pipe, says so in it and stays for ever."""
    world = Path(place.options["world"])
    with (world / "carried.txt").open("a") as log:
        log.write(f"{place.type} {stone}\n")
    pipe = world / "inside"
    if pipe.exists():
        pipe.write_text("inside\n")
        await asyncio.Event().wait()
    return f"You carried {stone} up."
