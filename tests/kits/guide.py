"""Playing an example of a team with stock agents and with ours, by one script."""

from __future__ import annotations

import ast
import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import TaskResult
from autogen_agentchat.messages import (
    HandoffMessage,
    StopMessage,
    TextMessage,
    ToolCallExecutionEvent,
)
from autogen_core import FunctionCall

from coag import CoagAgent, ScriptedModel
from coag.models import ScriptedReply, ScriptedRequest

AgentClass = type[AssistantAgent] | type[CoagAgent]
Call = tuple[str, str]
"""A tool's name and its arguments as JSON."""

FORMS: Mapping[str, Mapping[str, Any]] = {
    "ReasoningAnswer": {"situation": "It is this one's turn."},
}
"""What a deliberating agent asks besides: a stock one has no such phase."""


@dataclass(frozen=True, kw_only=True)
class Ending:
    """What a user sees of a run: by whom and how it ended, who said and did what."""

    stop_reason: str | None
    said: tuple[tuple[str, str], ...]
    """Who said which text."""
    handoffs: tuple[tuple[str, str, str], ...]
    """From whom, to whom, with which words."""
    done: tuple[tuple[str, str, str], ...]
    """Who called which tool, and what it returned."""

    @property
    def last(self) -> tuple[str, str]:
        """The last text and who said it."""
        return self.said[-1]

    @property
    def speakers(self) -> list[str]:
        """Who spoke, in order."""
        return [source for source, _ in self.said]

    def __add__(self, later: Ending) -> Ending:
        return Ending(
            stop_reason=later.stop_reason,
            said=self.said + later.said,
            handoffs=self.handoffs + later.handoffs,
            done=self.done + later.done,
        )


def one_spelling(returned: str) -> str:
    """What a tool returned: stock agents write objects as Python does, ours as JSON."""
    if returned[:1] not in "[{":
        return returned
    try:
        return json.dumps(ast.literal_eval(returned))
    except (ValueError, SyntaxError):
        return returned


def ending(result: TaskResult) -> Ending:
    """What a user sees of this result."""
    messages = result.messages
    return Ending(
        stop_reason=result.stop_reason,
        said=tuple(
            (m.source, m.content) for m in messages if isinstance(m, TextMessage | StopMessage)
        ),
        handoffs=tuple(
            (m.source, m.target, m.content) for m in messages if isinstance(m, HandoffMessage)
        ),
        done=tuple(
            (m.source, r.name, one_spelling(r.content))
            for m in messages
            if isinstance(m, ToolCallExecutionEvent)
            for r in m.content
        ),
    )


class Cast:
    """One model for all agents of a team, as in the guide: it knows them by their instructions.

    Args:
        lines: What each agent says or calls, in order, by its system message.
    """

    def __init__(self, lines: Mapping[str, Sequence[str | Sequence[Call]]]) -> None:
        self.lines = {system: deque(said) for system, said in lines.items()}
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.client = ScriptedModel(self.reply)

    async def reply(self, request: ScriptedRequest) -> ScriptedReply:
        self.asked.set()
        await self.may_answer.wait()
        if request.schema_name is not None:
            return FORMS[request.schema_name]
        (lines,) = [own for system, own in self.lines.items() if system in request.text]
        line = lines.popleft()
        if isinstance(line, str):
            return line
        number = request.number
        return [
            FunctionCall(id=f"call-{number}-{n}", name=name, arguments=arguments)
            for n, (name, arguments) in enumerate(line)
        ]


async def same(example: Callable[[AgentClass], Awaitable[Ending]]) -> Ending:
    """The ending of an example, which is the same with both classes."""
    stock = await example(AssistantAgent)
    ours = await example(CoagAgent)
    assert ours == stock
    return ours
