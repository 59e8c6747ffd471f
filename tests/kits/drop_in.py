"""What drop-in tests share: tools, forms, ways to run agents, and watches on the event loop."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from autogen_agentchat.base import Response, TaskResult
from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    MessageFactory,
    ModelClientStreamingChunkEvent,
    StructuredMessage,
    TextMessage,
    ToolCallExecutionEvent,
    ToolCallRequestEvent,
)
from autogen_core import CancellationToken, FunctionCall
from autogen_core.memory import (
    Memory,
    MemoryContent,
    MemoryMimeType,
    MemoryQueryResult,
    UpdateContextResult,
)
from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import FunctionExecutionResult, SystemMessage
from pydantic import BaseModel

from coag import CoagAgent

from .planned import PlannedModel

ResultT = TypeVar("ResultT")
PROMPT = 3.0
"""Seconds within which a cancelled agent must be ready."""
_SOON = 50.0
"""Seconds after which something hangs, and is not just slow."""
WAYS: tuple[dict[str, Any], ...] = (
    {"proposal": "native", "depth": "full"},
    {"proposal": "native", "depth": "compact"},
    {"proposal": "json", "depth": "full"},
    {"proposal": "json", "depth": "compact"},
)
"""The ways in which an agent deliberates."""
NATIVE = WAYS[:2]


def way_name(way: dict[str, Any]) -> str:
    """A way's name, for test ids."""
    return f"{way['proposal']}-{way['depth']}"


class Judgement(BaseModel):
    """A form of answers."""

    answer: str
    score: float = 0.5


class Part(BaseModel):
    """A piece of a report."""

    label: str
    weight: int = 1


class Report(BaseModel):
    """A nested form of answers."""

    title: str
    parts: list[Part] = []
    note: str | None = None


# ---- tools ----


async def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def multiply(a: int, b: int) -> int:
    """Multiplies two numbers."""
    return a * b


async def explode(text: str) -> str:
    """Raises."""
    raise ValueError(f"exploded: {text}")


async def cancel_itself() -> str:
    """Raises CancelledError by itself."""
    raise asyncio.CancelledError


async def letters(count: int) -> str:
    """Gives so many letters."""
    return "B" * count


class ListedMemory(Memory):
    """Gives what it was given, for every query."""

    component_type = "memory"

    def __init__(self, *texts: str, error: Exception | None = None) -> None:
        self.texts = list(texts)
        self.error = error
        self.cleared = 0

    def _contents(self) -> MemoryQueryResult:
        if self.error is not None:
            raise self.error
        return MemoryQueryResult(
            results=[MemoryContent(content=t, mime_type=MemoryMimeType.TEXT) for t in self.texts]
        )

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        found = self._contents()
        if self.texts:
            await model_context.add_message(SystemMessage(content="\n".join(self.texts)))
        return UpdateContextResult(memories=found)

    async def query(
        self,
        query: str | MemoryContent,
        cancellation_token: CancellationToken | None = None,
        **kwargs: Any,
    ) -> MemoryQueryResult:
        return self._contents()

    async def add(
        self, content: MemoryContent, cancellation_token: CancellationToken | None = None
    ) -> None:
        self.texts.append(str(content.content))

    async def clear(self) -> None:
        self.cleared += 1
        self.texts.clear()

    async def close(self) -> None:
        """Nothing is held."""


# ---- running ----


async def within(awaited: Awaitable[ResultT], what: str = "it") -> ResultT:
    """What comes of it; a hang is a failure, not a time-out of the whole session."""
    task = asyncio.ensure_future(awaited)
    done, _ = await asyncio.wait({task}, timeout=_SOON)
    if not done:
        task.cancel()
        await asyncio.wait({task}, timeout=1)
        raise AssertionError(f"{what} did not end within {_SOON:g} s.")
    return task.result()


def text_message(text: str, source: str = "user") -> TextMessage:
    """A message."""
    return TextMessage(content=text, source=source)


async def streamed(
    agent: Any, *texts: str, token: CancellationToken | None = None
) -> tuple[list[BaseAgentEvent | BaseChatMessage], Response]:
    """What an agent's turn shows and, apart, its response; every event is checked."""
    items: list[Any] = []

    async def listen() -> None:
        messages = [text_message(text) for text in texts]
        async for item in agent.on_messages_stream(messages, token or CancellationToken()):
            items.append(item)

    await within(listen(), what="the turn")
    assert [type(item) is Response for item in items].index(True) == len(items) - 1
    response = items.pop()
    for event in items:
        check_event(event)
    check_answer(response.chat_message, agent)
    return items, response


async def items_and_result(stream: AsyncGenerator[Any, None]) -> tuple[list[Any], TaskResult]:
    """What a stream of an agent or a team shows and, apart, its result."""
    items: list[Any] = [item async for item in stream]
    result = items.pop()
    assert isinstance(result, TaskResult)
    return items, result


def form_of(message: Any) -> Any:
    """The content of a structured message."""
    assert isinstance(message, StructuredMessage)
    return cast("Any", message).content


async def run(agent: Any, task: Any = "Go on.") -> TaskResult:
    """The result of a run, whose answer is legal."""
    result = await within(agent.run(task=task), "the run")
    check_answer(result.messages[-1], agent)
    return result


def check_event(event: BaseAgentEvent | BaseChatMessage) -> None:
    """A type that every team knows, which survives JSON."""
    factory = MessageFactory()
    kind = cast("type[BaseChatMessage]", type(event))
    if kind.__name__.startswith("StructuredMessage[") and not factory.is_registered(kind):
        factory.register(kind)
    dumped = event.dump()
    again = factory.create(json.loads(json.dumps(dumped)))
    assert type(again) is kind
    assert again.dump() == dumped
    assert all(isinstance(value, str) for value in event.metadata.values())


def check_answer(message: Any, agent: Any) -> None:
    """A chat message of the agent's own, of a type that it names."""
    assert isinstance(message, BaseChatMessage)
    assert message.source == agent.name
    assert isinstance(message, tuple(agent.produced_message_types))
    assert isinstance(message.to_text(), str)
    assert message.to_model_message().type == "UserMessage"
    check_event(message)


def without_chunks(items: Sequence[Any]) -> list[Any]:
    """What is kept of a stream."""
    return [item for item in items if not isinstance(item, ModelClientStreamingChunkEvent)]


def calls_in(items: Sequence[Any]) -> list[FunctionCall]:
    """The tool calls that were shown."""
    return [c for item in items if isinstance(item, ToolCallRequestEvent) for c in item.content]


def results_in(items: Sequence[Any]) -> list[FunctionExecutionResult]:
    """The results that were shown."""
    return [r for item in items if isinstance(item, ToolCallExecutionEvent) for r in item.content]


def usage_in(items: Sequence[Any]) -> tuple[int, int]:
    """Prompt and completion tokens that the messages report."""
    usages = [item.models_usage for item in items if item.models_usage is not None]
    return sum(u.prompt_tokens for u in usages), sum(u.completion_tokens for u in usages)


async def check_reusable(agent: CoagAgent, model: PlannedModel, text: str = "And now?") -> None:
    """The next turn works, and what it sends is legal."""
    model.faults.clear()
    model.plan.clear()
    model.seconds = 0.0
    result = await run(agent, text)
    assert result.messages[-1].to_text() == model.said
    assert text in model.heard
    assert model.violations == []


# ---- the event loop ----


@asynccontextmanager
async def no_strays() -> AsyncGenerator[None]:
    """No task that was begun within continues behind it, but for what the loop itself cleans up."""
    before = asyncio.all_tasks()
    yield
    for _ in range(20):
        await asyncio.sleep(0)
    strays = [task for task in asyncio.all_tasks() - before if not task.done()]
    assert strays == []


@dataclass
class Pulse:
    """Measures the longest time for which the event loop did not come round.

    By the thread's own clock: other processes on the machine take time, too.
    """

    gaps: list[float] = field(default_factory=list[float])

    @property
    def longest(self) -> float:
        """Seconds."""
        return max(self.gaps, default=0.0)

    async def beat(self) -> None:
        last = time.thread_time()
        while True:
            await asyncio.sleep(0.001)
            now = time.thread_time()
            self.gaps.append(now - last)
            last = now


@asynccontextmanager
async def pulse() -> AsyncGenerator[Pulse]:
    """Watches the loop."""
    watch = Pulse()
    task = asyncio.create_task(watch.beat())
    try:
        yield watch
    finally:
        task.cancel()
        await asyncio.wait({task})
