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

from coag.schema import ActionCall

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
        self.message_id = ""
        """Id of the answer that is being written."""

    def begin(self) -> None:
        """A new turn: nothing is waiting, nothing was written."""
        self._waiting.clear()
        self._written.clear()
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
        content = [
            FunctionCall(id=call.id, name=call.action, arguments=call_arguments(call.arguments))
            for call in calls
        ]
        self.show(ToolCallRequestEvent(content=content, source=self._agent))

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
