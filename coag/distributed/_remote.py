"""`RemoteChatAgent`: an agent on another worker, as if it were here."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseAgentEvent, BaseChatMessage, TextMessage
from autogen_core import AgentId, CancellationToken

from coag.errors import RemoteAgentError

from ._following import Asking, RemoteTurn, cancellable
from ._messages import Message, MessageCodec
from ._wire import (
    Begin,
    Cancel,
    Close,
    Describe,
    Described,
    Done,
    LoadState,
    Pause,
    Request,
    Reset,
    Resume,
    Saved,
    SaveState,
)


class RemoteChatAgent(BaseChatAgent):
    """An agent that is served on a worker; joins any AgentChat team as a local one does.

    Events, answers, errors, cancellation and state pass both ways. `Connection.agent` makes one
    that knows what the agent says of itself; made by hand, nothing is asked before its first use.

    Args:
        name: What the agent is called here; messages that bear its name there bear this one.
        connection: The way to it.
        type: The agent type under which it is served.
        key: Which agent of this type. Clients that use the same key talk with the same agent.
        description: What it can do, for teams.
        produced_message_types: Types of its answers.
        message_types: Types beyond AgentChat's own, of what it is given and gives.
    """

    component_provider_override = "coag.distributed.RemoteChatAgent"

    def __init__(
        self,
        name: str,
        connection: Asking,
        *,
        type: str,
        key: str = "default",
        description: str = "An agent on another worker.",
        produced_message_types: Sequence[type[BaseChatMessage]] = (TextMessage,),
        message_types: Sequence[type[Message]] = (),
    ) -> None:
        super().__init__(name, description)
        self._target = AgentId(type, key)
        self._asking = connection
        self._codec = MessageCodec(message_types)
        self._produced = tuple(produced_message_types)
        self._there: Described | None = None
        """What was last told of the agent; its instance is the one whose dialogue goes on."""

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """Types of the remote agent's answers."""
        return self._produced

    # ---- turns ----

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        """The remote agent's answer.

        Raises:
            RemoteAgentError: It failed, or could not be reached.
        """
        async with aclosing(self.on_messages_stream(messages, cancellation_token)) as stream:
            async for item in stream:
                if isinstance(item, Response):
                    return item
        raise AssertionError("A turn ends with a response or an error.")

    async def on_messages_stream(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> AsyncGenerator[BaseAgentEvent | BaseChatMessage | Response, None]:
        """The same, with the remote agent's events as they come.

        Cancelling, and leaving the stream before its end, cancels the turn where it runs.
        """
        if cancellation_token.is_cancelled():
            raise asyncio.CancelledError("The turn was cancelled before it began.")
        there = await cancellable(self._known(), cancellation_token)
        begin = Begin(
            turn=uuid.uuid4().hex,
            instance=there.instance,
            messages=tuple(self._codec.dump(message) for message in messages),
        )
        names = (there.name, self.name)
        turn = RemoteTurn(self._target, self._asking, self._codec, names)
        over = False
        try:
            async with aclosing(turn.follow(begin, cancellation_token)) as items:
                async for item in items:
                    over = isinstance(item, Response)
                    yield item
        except RemoteAgentError as error:
            over = True
            if error.kind == "unreachable":  # it may be at work all the same
                await self._asking.tell(self._target, Cancel(turn=begin.turn))
            raise
        finally:
            if not over:
                await self._cancel(begin.turn)

    async def _cancel(self, turn: str) -> None:
        """Cancels a turn and waits a while for its end.

        Where the worker cannot be told, its lease ends the turn.
        """
        try:
            async with asyncio.timeout(self._asking.limits.cancel):
                await self._asking.ask(self._target, Cancel(turn=turn))
        except (TimeoutError, RemoteAgentError):
            return

    # ---- life ----

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Resets the remote agent; one that has taken another's place is accepted so."""
        await cancellable(self._do(Reset()), cancellation_token)

    async def on_pause(self, cancellation_token: CancellationToken) -> None:
        """Pauses the remote agent."""
        await cancellable(self._do(Pause()), cancellation_token)

    async def on_resume(self, cancellation_token: CancellationToken) -> None:
        """Lets the remote agent go on."""
        await cancellable(self._do(Resume()), cancellation_token)

    async def save_state(self) -> Mapping[str, Any]:
        """The remote agent's own state, as it would be saved locally."""
        there = await self._known()
        answer = await self._asking.ask(self._target, SaveState(instance=there.instance))
        if not isinstance(answer, Saved):
            raise AssertionError(f"A state was asked for, not {answer!r}.")
        return answer.state

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Gives the remote agent a state, saved there or locally."""
        await self._do(LoadState(state=dict(state)))

    async def close(self) -> None:
        """Closes the remote agent, if it was ever used from here; its place can be taken anew."""
        there, self._there = self._there, None
        if there is not None:
            await self._asking.ask(self._target, Close(instance=there.instance))

    async def _known(self) -> Described:
        if self._there is None:
            answer = await self._asking.ask(self._target, Describe())
            if not isinstance(answer, Described):
                raise AssertionError(f"A description was asked for, not {answer!r}.")
            self._there = answer
        return self._there

    async def _do(self, request: Request) -> None:
        there = await self._known()
        answer = await self._asking.ask(self._target, request)
        if isinstance(answer, Done) and isinstance(request, Reset | LoadState):
            self._there = there.model_copy(update={"instance": answer.instance})
