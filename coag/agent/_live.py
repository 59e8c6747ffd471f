"""What an agent shows while a phase is still going on: pieces of text, tools at work."""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Callable, Sequence

from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    ModelClientStreamingChunkEvent,
    ToolCallRequestEvent,
)
from autogen_core import FunctionCall
from autogen_core.models import RequestUsage

from coag.schema import ActionCall, TokenUsage

from ._calls import call_arguments

Shown = BaseAgentEvent | BaseChatMessage


class Live:
    """Events of the current turn that have not been shown yet.

    Args:
        agent: The agent's name.
    """

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._waiting: deque[Shown] = deque()
        self._wake: Callable[[], None] = lambda: None
        self._written: list[str] = []
        self._usage = TokenUsage()
        self.call_ids: dict[str, str] = {}
        """What the model calls the turn's tool calls, by the intent's id, where it has a name."""
        self.message_id = ""
        """Id of the answer that is being written."""

    def begin(self) -> None:
        """A new turn: nothing is waiting, nothing was written."""
        self._waiting.clear()
        self._written.clear()
        self._usage = TokenUsage()
        self.call_ids.clear()
        self.message_id = str(uuid.uuid4())

    def on_text(self, piece: str) -> None:
        """A piece of the answer was written."""
        self._written.append(piece)
        self.show(self.chunk(piece))

    def chunk(self, piece: str) -> ModelClientStreamingChunkEvent:
        """A piece of the answer as an event."""
        return ModelClientStreamingChunkEvent(
            content=piece, source=self._agent, full_message_id=self.message_id
        )

    def on_calls(self, calls: Sequence[ActionCall]) -> None:
        """Tools are about to be called."""
        if not calls:
            return
        self.call_ids.update({call.id: call.call_id for call in calls if call.call_id})
        content = [
            FunctionCall(
                id=call.call_id or call.id,
                name=call.action,
                arguments=call_arguments(call.arguments),
            )
            for call in calls
        ]
        usage = self.take_usage()
        self.show(ToolCallRequestEvent(content=content, source=self._agent, models_usage=usage))

    def use(self, usage: TokenUsage) -> None:
        """Model calls were made, of which the next message is to tell."""
        self._usage += usage

    def take_usage(self) -> RequestUsage | None:
        """The usage of which no message has told yet; None if there is none."""
        used, self._usage = self._usage, TokenUsage()
        if not used.calls:
            return None
        return RequestUsage(
            prompt_tokens=used.prompt_tokens, completion_tokens=used.completion_tokens
        )

    def on_tool_event(self, event: object) -> None:
        """A streaming tool, e.g. another agent, shows what it does."""
        if isinstance(event, BaseAgentEvent | BaseChatMessage):
            self.show(event)

    def show(self, event: Shown) -> None:
        """Queues an event and wakes whoever waits for one."""
        self._waiting.append(event)
        self.wake()

    def wake(self) -> None:
        """Wakes whoever waits in `until`."""
        self._wake()

    def take(self) -> list[Shown]:
        """What has come since the last time."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def answer_id(self, text: str) -> tuple[str, bool]:
        """The id for an answer with this text, and whether its text was shown already.

        A text that was written and is not the answer keeps its id to itself.
        """
        if not self._written:
            return self.message_id, False
        if "".join(self._written) == text:
            return self.message_id, True
        self.message_id = str(uuid.uuid4())
        return self.message_id, False

    async def until(self, task: asyncio.Task[object]) -> None:
        """Waits until there is something to show, or the task is done."""
        wake = asyncio.Event()
        self._wake = wake.set
        task.add_done_callback(lambda _: wake.set())
        try:
            if not self._waiting and not task.done():
                await wake.wait()
        finally:
            self._wake = lambda: None
