"""A remote agent as a chat agent of any team."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any, TypeVar

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseAgentEvent, BaseChatMessage, TextMessage
from autogen_core import (
    AgentId,
    AgentRuntime,
    CancellationToken,
    MessageContext,
    RoutedAgent,
    TopicId,
    event,
    try_get_known_serializers_for_type,
)

from coag.errors import ConfigurationError, RemoteAgentError
from coag.models import cancellable

from .protocol import (
    AgentDescription,
    BeginTurn,
    CoagAnswer,
    CoagRequest,
    FollowTurn,
    Message,
    MessageCodec,
    Operation,
    OperationDone,
    RemoteLimits,
    RemoteRefusal,
    RemoteState,
    Request,
    RequestFailed,
    StillWorking,
    TurnItem,
    TurnProgress,
    body_of,
    read_answer,
    size_of,
)
from .service import TOPIC

MessageT = TypeVar("MessageT", bound=Message)
AnswerT = TypeVar("AnswerT", AgentDescription, TurnProgress, OperationDone, RemoteState)

# ---- `RemoteChatAgent`: an agent on another worker, as if it were here ----


class RemoteChatAgent(BaseChatAgent):
    """An agent that is served on a worker; joins any AgentChat team as a local one does.

    Events, answers, errors, cancellation and state pass both ways. `RemoteConnection.agent` makes
    one that has the agent's own name and description; made by hand, nothing is asked before its
    first use.

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
        connection: RemoteConnection,
        *,
        type: str,
        key: str = "default",
        description: str = "An agent on another worker.",
        produced_message_types: Sequence[type[BaseChatMessage]] = (TextMessage,),
        message_types: Sequence[type[Message]] = (),
    ) -> None:
        super().__init__(name, description)
        self._target = AgentId(type, key)
        self._connection = connection
        self._codec = MessageCodec(message_types)
        self._produced = tuple(produced_message_types)
        self._there: AgentDescription | None = None
        """The last description of the agent; its instance is the one that this dialogue is with."""

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
        begin = BeginTurn(
            turn=uuid.uuid4().hex,
            instance=there.instance,
            messages=tuple(self._codec.dump(message) for message in messages),
        )
        over = False
        try:
            async with aclosing(self._follow(begin, cancellation_token)) as items:
                async for item in items:
                    over = isinstance(item, Response)
                    yield item
        except RemoteAgentError as error:
            over = True
            if error.kind == "unreachable":  # it may be at work all the same
                await self._connection.tell(self._target, Operation(op="cancel", turn=begin.turn))
            raise
        finally:
            if not over:
                await self._cancel(begin.turn)

    async def _follow(
        self, begin: BeginTurn, token: CancellationToken
    ) -> AsyncGenerator[Message | Response, None]:
        """Begins the turn and yields what it brings, the response last."""
        request: BeginTurn | FollowTurn = begin
        epoch, count = "", 0
        events: list[Message] = []
        while True:
            asking = self._connection.ask(self._target, request, TurnProgress)
            answer = await cancellable(asking, token)
            if answer.epoch != epoch:
                epoch, count = answer.epoch, 0
                events.clear()
            new = answer.items[max(0, count - answer.first) :]
            count = max(count, answer.first + len(answer.items))
            for item in new:
                if item.response:
                    yield self._response(item, events)
                    return
                events.append(self._named(self._codec.load(item.message)))
                yield events[-1]
            request = FollowTurn(turn=begin.turn, epoch=epoch, after=count)

    def _response(self, item: TurnItem, events: Sequence[Message]) -> Response:
        inner: list[Message] | None = None
        if item.inner is not None:
            inner = [
                events[one] if isinstance(one, int) else self._named(self._codec.load(one))
                for one in item.inner
            ]
        message = self._named(self._codec.load_chat(item.message))
        return Response(chat_message=message, inner_messages=inner)

    def _named(self, message: MessageT) -> MessageT:
        """The message with the name that the agent has here."""
        there = self._there
        if there is None or message.source != there.name or there.name == self.name:
            return message
        return message.model_copy(update={"source": self.name})

    async def _cancel(self, turn: str) -> None:
        """Cancels a turn and waits a while for its end.

        Where the worker cannot be reached, its lease ends the turn.
        """
        with suppress(TimeoutError, RemoteAgentError):
            async with asyncio.timeout(self._connection.limits.cancel):
                await self._ask(OperationDone, op="cancel", turn=turn)

    # ---- life ----

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Resets the remote agent; one that has taken another's place is accepted so."""
        await cancellable(self._renew(op="reset"), cancellation_token)

    async def on_pause(self, cancellation_token: CancellationToken) -> None:
        """Pauses the remote agent."""
        await cancellable(self._ask(OperationDone, op="pause"), cancellation_token)

    async def on_resume(self, cancellation_token: CancellationToken) -> None:
        """Lets the remote agent continue."""
        await cancellable(self._ask(OperationDone, op="resume"), cancellation_token)

    async def save_state(self) -> Mapping[str, Any]:
        """The remote agent's own state, as it would be saved locally."""
        there = await self._known()
        return (await self._ask(RemoteState, op="save_state", instance=there.instance)).state

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Gives the remote agent a state, saved there or locally."""
        await self._renew(op="load_state", state=dict(state))

    async def close(self) -> None:
        """Closes the remote agent, if it was used from here; the next request makes a new one."""
        there, self._there = self._there, None
        if there is not None:
            await self._ask(OperationDone, op="close", instance=there.instance)

    async def _known(self) -> AgentDescription:
        if self._there is None:
            self._there = await self._ask(AgentDescription, op="describe")
        return self._there

    async def _renew(self, **request: Any) -> None:
        """Sends a request after which the dialogue is with the agent that is there now."""
        there = await self._known()
        done = await self._ask(OperationDone, **request)
        self._there = there.model_copy(update={"instance": done.instance})

    async def _ask(self, kind: type[AnswerT], **request: Any) -> AnswerT:
        return await self._connection.ask(self._target, Operation(**request), kind)


# ---- A client's way to remote agents: asks, asks again, and gives up in time ----


_Waiting = dict[str, "asyncio.Future[CoagAnswer]"]
"""The requests that wait for an answer, by id."""


class Mailbox(RoutedAgent):
    """Where answers arrive."""

    def __init__(self, waiting: _Waiting) -> None:
        super().__init__("Takes answers of remote agents.")
        self._waiting = waiting

    @event
    async def take(self, message: CoagAnswer, ctx: MessageContext) -> None:
        """Hands an answer on; one that comes twice or too late is dropped."""
        del ctx
        future = self._waiting.get(message.id)
        if future is not None and not future.done():
            future.set_result(message)


class RemoteConnection:
    """The way from this process to agents on workers; see `connect` and `open_connection`.

    Args:
        runtime: A started runtime.
        mailbox: The agent type under which answers arrive.
        waiting: The requests that wait for an answer.
        limits: Bounds.
    """

    def __init__(
        self, runtime: AgentRuntime, mailbox: str, waiting: _Waiting, limits: RemoteLimits
    ) -> None:
        self._runtime = runtime
        self._mailbox = mailbox
        self._waiting = waiting
        self.limits = limits
        """Bounds of what travels and of waiting."""
        self._closed = False

    async def agent(
        self,
        type: str,
        *,
        key: str = "default",
        name: str | None = None,
        description: str | None = None,
        message_types: Sequence[type[Message]] = (),
    ) -> RemoteChatAgent:
        """The agent that is served under a type, as a local one.

        Args:
            type: The agent type.
            key: Which agent of this type; the worker makes one for each key.
            name: What to call it here; None for its own name.
            description: What it can do; None for its own words.
            message_types: Types of message beyond AgentChat's own.

        Raises:
            RemoteAgentError: No worker that serves it can be reached.
            ConfigurationError: It answers with a type of message that is not known here.
        """
        there = await self.ask(AgentId(type, key), Operation(op="describe"), AgentDescription)
        codec = MessageCodec(message_types)
        produced = [codec.known(one) for one in there.produces]
        return RemoteChatAgent(
            name or there.name,
            self,
            type=type,
            key=key,
            description=description or there.description,
            produced_message_types=[one for one in produced if issubclass(one, BaseChatMessage)],
            message_types=message_types,
        )

    async def ask(self, target: AgentId, request: Request, kind: type[AnswerT]) -> AnswerT:
        """The answer to a request; asks on while the worker is at work on it.

        Raises:
            RemoteAgentError: The answer is a failure, or there is none in time.
            ConfigurationError: The connection is closed, or the request is no JSON.
        """
        envelope = self._envelope(target, request)
        while True:
            reply = await self._exchange(target, envelope)
            try:
                answer = read_answer(reply)
            except RemoteRefusal as error:
                answer = RequestFailed(failure=error.failure)
            if isinstance(answer, RequestFailed):
                raise _error(target, worker=reply.worker, **answer.failure.model_dump())
            if isinstance(answer, kind):
                return answer
            if not isinstance(answer, StillWorking):
                raise AssertionError(f"A {kind.__name__} was asked for, not {answer!r}.")

    async def tell(self, target: AgentId, request: Request) -> None:
        """Sends a request whose answer nobody waits for."""
        await self._send(target, self._envelope(target, request))

    async def wait_until_lost(self) -> None:
        """Returns when messages to oneself, by way of the host, have not come back in time."""
        me = AgentId(self._mailbox, "default")
        while True:
            ping = CoagAnswer(id=uuid.uuid4().hex, worker="", body="{}")
            try:
                await self._exchange(me, ping)
            except RemoteAgentError:
                return
            await asyncio.sleep(self.limits.resend)

    async def close(self) -> None:
        """Cancels everything that waits."""
        self._closed = True
        for future in self._waiting.values():
            if not future.done():
                future.cancel()

    def _envelope(self, target: AgentId, request: Request) -> CoagRequest:
        envelope = CoagRequest(id=uuid.uuid4().hex, reply_to=self._mailbox, body=body_of(request))
        if (size := size_of(envelope)) > self.limits.max_bytes:
            problem = (
                f"the request takes {size} bytes; a message may take {self.limits.max_bytes}. "
                "It was not sent. Give the agent less at once, or host, workers and clients "
                "RemoteLimits(max_bytes=...)."
            )
            raise _error(target, "too_large", problem)
        return envelope

    async def _exchange(self, target: AgentId, envelope: CoagRequest | CoagAnswer) -> CoagAnswer:
        """Sends until an answer is there, and not longer than patience lasts."""
        future = self._waiting[envelope.id] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self.limits.patience):
                while True:
                    await self._send(target, envelope)
                    done, _ = await asyncio.wait([future], timeout=self.limits.resend)
                    if done:
                        return future.result()
        except TimeoutError as error:
            problem = (
                f"no sign of life for {self.limits.patience:g} s. Is there a worker that serves "
                f"{target.type!r} at this host? It may be gone; what it did before is not undone."
            )
            raise _error(target, "unreachable", problem) from error
        finally:
            self._waiting.pop(envelope.id, None)

    async def _send(self, target: AgentId, envelope: CoagRequest | CoagAnswer) -> None:
        if self._closed:
            raise ConfigurationError(
                f"The connection is closed; remote agent {str(target)!r} cannot be used any more."
            )
        await self._runtime.publish_message(envelope, TopicId(f"{target.type}:{TOPIC}", target.key))


async def open_connection(
    runtime: AgentRuntime, *, limits: RemoteLimits | None = None
) -> RemoteConnection:
    """Makes a started runtime a way to the agents that are served on it; close it in the end."""
    waiting: _Waiting = {}
    mailbox = f"coag_mailbox_{uuid.uuid4().hex}"
    runtime.add_message_serializer(try_get_known_serializers_for_type(CoagRequest))
    await Mailbox.register(runtime, mailbox, lambda: Mailbox(waiting))
    return RemoteConnection(runtime, mailbox, waiting, limits or RemoteLimits())


def _error(target: AgentId, kind: str, problem: str, **more: str) -> RemoteAgentError:
    return RemoteAgentError(
        **{"agent": str(target), "worker": "", **more}, kind=kind, problem=problem
    )
