"""Any chat agent, written down."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import ChatAgent, Response
from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    HandoffMessage,
    ModelClientStreamingChunkEvent,
    ToolCallExecutionEvent,
    ToolCallRequestEvent,
)
from autogen_core import CancellationToken, ComponentModel
from autogen_core.models import ChatCompletionClient

from coag.errors import ConfigurationError
from coag.models import model_name_of, reason_of
from coag.schema import ReceiptStatus, Returned, parsed_arguments

from ._announced import Attempt
from ._recorder import Recorder
from ._recording_client import RecordingClient
from ._results import read_result

BROKEN_OFF = "The turn ended while this ran. It may or may not have had its effect."
"""The receipt of a call whose result never came."""


class RecordedAgent(BaseChatAgent):
    """A chat agent as it is, with each of its turns in a trace.

    What the agent is sent is written as percepts. A tool call is written as intent when the
    agent announces it (`ToolCallRequestEvent`), which `AssistantAgent` does before it runs any
    call of an answer; the result it announces is the receipt. Where an intent cannot be written,
    the turn ends there and nothing is run. All other events are notes; pieces of streams are
    left out. Model calls are written by a `RecordingClient`, if the agent was made with one:
    `record` does both at once. Calls of a `RecordingWorkbench` with the same recorder are written
    once, with all that the workbench knows of their results.

    Args:
        agent: The agent; it is closed with this one.
        recorder: Who writes; closed with this agent.
    """

    def __init__(self, agent: ChatAgent, recorder: Recorder) -> None:
        super().__init__(agent.name, agent.description)
        self.agent = agent
        self.recorder = recorder

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """The agent's."""
        return self.agent.produced_message_types

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        """Takes a turn.

        Raises:
            TraceError: The turn could not be written down; it ended there.
        """
        response: Response | None = None
        async for item in self.on_messages_stream(messages, cancellation_token):
            if isinstance(item, Response):
                response = item
        if response is None:
            raise RuntimeError(f"Agent {self.name!r} ended its turn without a response.")
        return response

    async def on_messages_stream(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> AsyncGenerator[BaseAgentEvent | BaseChatMessage | Response, None]:
        """Takes a turn, and passes its events on once they are written down.

        Raises:
            TraceError: The turn could not be written down; it ended there.
        """
        self.recorder.begin_turn()
        for message in messages:
            self.recorder.message(message.source, message.to_model_text())
        turn = _Turn(self.name, self.recorder)
        items = self.agent.on_messages_stream(messages, cancellation_token)
        try:
            async for item in items:
                turn.take(item)
                yield item
        except (asyncio.CancelledError, GeneratorExit):
            turn.fail("cancelled", ReceiptStatus.CANCELLED)
            raise
        except Exception as error:  # an agent may raise anything; it goes on its way
            turn.fail("error", ReceiptStatus.UNKNOWN, error)
            raise
        finally:
            await items.aclose()
            turn.end()

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Resets the agent, which the trace tells; the run goes on."""
        await self.agent.on_reset(cancellation_token)
        self.recorder.note("reset", f"Agent {self.name} was reset.")

    async def on_pause(self, cancellation_token: CancellationToken) -> None:
        """Pauses the agent."""
        await self.agent.on_pause(cancellation_token)

    async def on_resume(self, cancellation_token: CancellationToken) -> None:
        """Resumes the agent."""
        await self.agent.on_resume(cancellation_token)

    async def save_state(self) -> Mapping[str, Any]:
        """The agent's state."""
        return await self.agent.save_state()

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Gives the agent a state."""
        await self.agent.load_state(state)

    async def close(self) -> None:
        """Closes the agent and ends the run's log; the model client stays open."""
        await self.agent.close()
        self.recorder.close()

    def dump_component(self) -> ComponentModel:
        """The agent within: a run is no part of a description."""
        return cast("BaseChatAgent", self.agent).dump_component()


def record(
    make: Callable[..., ChatAgent],
    name: str,
    model_client: ChatCompletionClient,
    *,
    logs: Path | str | None = None,
    recorder: Recorder | None = None,
    **arguments: Any,
) -> RecordedAgent:
    """Makes an agent whose run is written down: `record(AssistantAgent, "a", client, tools=...)`.

    Args:
        make: The agent's class, or a function that makes one from a name and a model client.
        name: The agent's name.
        model_client: Its model.
        logs: The folder of all runs, which gets the run's folder; None keeps the trace in RAM.
        recorder: Who writes, in the place of one for `logs`; e.g. one that a `RecordingWorkbench`
            among the arguments shares, or one with a recipe. It is closed with the agent.
        arguments: The agent's further arguments.

    Raises:
        TraceError: The folder cannot be written to.
        ConfigurationError: Both `logs` and `recorder` are given.
    """
    if recorder is not None and logs is not None:
        raise ConfigurationError(
            "record() takes either logs= or recorder=: a recorder has its own folder of logs."
        )
    recorder = recorder or Recorder(logs, agent=name, model=model_name_of(model_client))
    try:
        agent = make(name, RecordingClient(model_client, recorder), **arguments)
    except BaseException:
        recorder.close()
        raise
    return RecordedAgent(agent, recorder)


class _Turn:
    """What a turn has brought so far."""

    def __init__(self, agent: str, recorder: Recorder) -> None:
        self._agent = agent
        self._recorder = recorder
        self._open: dict[str, deque[Attempt]] = defaultdict(deque)
        self._unended = ReceiptStatus.UNKNOWN
        self._reason, self._response = "ended", ""
        self._error: Exception | None = None

    def take(self, item: BaseAgentEvent | BaseChatMessage | Response) -> None:
        """Writes an event down; that of an agent within this one is a note."""
        own = isinstance(item, Response) or item.source == self._agent
        match item:
            case Response():
                handed = isinstance(item.chat_message, HandoffMessage)
                self._reason = "handoff" if handed else "respond"
                self._response = item.chat_message.to_model_text()
            case ToolCallRequestEvent() if own:
                for call in item.content:
                    attempt = self._recorder.begin(call.name, parsed_arguments(call.arguments))
                    self._open[call.id].append(attempt)
                    self._recorder.announced.announce(call.id, attempt)
            case ToolCallExecutionEvent() if own:
                for result in item.content:
                    self._end(result.call_id, result.content, result.is_error is True)
            case ModelClientStreamingChunkEvent():
                pass
            case _:
                self._recorder.note(type(item).__name__, f"{item.source}: {item.to_text()}")

    def fail(self, reason: str, unended: ReceiptStatus, error: Exception | None = None) -> None:
        """Tells why the turn breaks off, and what that means for calls that run."""
        self._reason, self._unended, self._error = reason, unended, error
        self._response = "" if error is None else reason_of(error)

    def end(self) -> None:
        """Writes down what is left open, and the turn's end."""
        for call_id, attempts in self._open.items():
            for attempt in attempts:
                if self._recorder.announced.settle(call_id, attempt):
                    self._recorder.end(attempt, self._unended, BROKEN_OFF)
        self._recorder.end_turn(self._reason, self._response, self._error)

    def _end(self, call_id: str, content: str, is_error: bool) -> None:
        attempts = self._open.get(call_id)
        if not attempts:
            self._recorder.note("result", f"A result that belongs to no call: {content}")
            return
        attempt = attempts.popleft()
        if not self._recorder.announced.settle(call_id, attempt):
            return  # a recording workbench has run it and told of its end
        read = read_result(content, is_error=is_error)
        status = ReceiptStatus.FAILED if read.is_error else ReceiptStatus.DONE
        returned = None if read.is_error == is_error else Returned(is_error=is_error)
        self._recorder.end(attempt, status, content, read.failure, returned)
