"""Talking to an agent without knowing AutoGen: for terminals and other faces."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from autogen_agentchat.base import TaskResult
from autogen_agentchat.messages import (
    ThoughtEvent,
    ToolCallExecutionEvent,
    ToolCallRequestEvent,
)

from ._coag_agent import CoagAgent


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Something that an agent lets be seen while it deliberates, or its answer."""

    text: str
    ended_by: str | None = None
    """For the answer: `respond`, or the bound that ended the turn. None for all before it."""


async def talk(agent: CoagAgent, text: str) -> AsyncGenerator[Remark]:
    """Tells the agent something; yields a sentence per phase and, last, its answer.

    Raises:
        CoagError: The turn broke off; its cycle is closed.
    """
    async for item in agent.run_stream(task=text):
        match item:
            case ThoughtEvent():
                yield Remark(text=item.content)
            case ToolCallRequestEvent():
                called = ", ".join(call.name for call in item.content)
                yield Remark(text=f"Execution: {called} was called.")
            case ToolCallExecutionEvent():
                failed = sum(bool(result.is_error) for result in item.content)
                yield Remark(text="Execution: it failed." if failed else "Execution: it returned.")
            case TaskResult():
                said = item.messages[-1]
                ended_by = said.metadata.get("ended_by", "respond")
                yield Remark(text=said.to_text(), ended_by=ended_by)
            case _:
                pass
