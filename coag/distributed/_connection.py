"""A client's way to remote agents: asks, asks again, and gives up in time."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence

from autogen_core import (
    AgentId,
    AgentRuntime,
    MessageContext,
    RoutedAgent,
    TopicId,
    event,
    try_get_known_serializers_for_type,
)

from coag.errors import ConfigurationError, RemoteAgentError

from ._limits import Limits
from ._messages import Message, MessageCodec
from ._remote import RemoteChatAgent
from ._service import TOPIC
from ._wire import (
    Answer,
    CoagAnswer,
    CoagRequest,
    Describe,
    Described,
    Failed,
    RemoteFailure,
    Request,
    VersionError,
    Working,
    body_of,
    read_answer,
    size_of,
)

_Waiting = dict[str, "asyncio.Future[CoagAnswer]"]


class Mailbox(RoutedAgent):
    """Where answers arrive.

    Args:
        waiting: Who waits for an answer, by the request's id.
    """

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


class Connection:
    """The way from this process to agents on workers; see `connect` and `open_connection`.

    Args:
        runtime: A started runtime.
        mailbox: The agent type under which answers arrive.
        waiting: Who waits for an answer.
        limits: Bounds.
    """

    def __init__(
        self, runtime: AgentRuntime, mailbox: str, waiting: _Waiting, limits: Limits
    ) -> None:
        self._runtime = runtime
        self._mailbox = mailbox
        self._waiting = waiting
        self._limits = limits
        self._closed = False

    @property
    def limits(self) -> Limits:
        """Bounds of what travels and of waiting."""
        return self._limits

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
        there = await self.ask(AgentId(type, key), Describe())
        if not isinstance(there, Described):
            raise AssertionError(f"A description was asked for, not {there!r}.")
        return RemoteChatAgent(
            name or there.name,
            self,
            type=type,
            key=key,
            description=description or there.description,
            produced_message_types=MessageCodec(message_types).chat_types(there.produces),
            message_types=message_types,
        )

    async def ask(self, target: AgentId, request: Request) -> Answer:
        """The answer to a request; asks on while the worker is at work on it.

        Raises:
            RemoteAgentError: The answer is a failure, or there is none in time.
            ConfigurationError: The connection is closed, or the request is no JSON.
        """
        envelope = self._envelope(target, request)
        while True:
            told = await self._exchange(target, envelope)
            answer = _read(told)
            if isinstance(answer, Failed):
                failure = answer.failure
                raise RemoteAgentError(
                    agent=str(target),
                    worker=told.worker,
                    kind=failure.kind,
                    problem=failure.problem,
                    error_type=failure.error_type,
                )
            if not isinstance(answer, Working):
                return answer

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
            await asyncio.sleep(self._limits.resend)

    async def close(self) -> None:
        """Lets nobody wait any longer."""
        self._closed = True
        for future in self._waiting.values():
            if not future.done():
                future.cancel()

    def _envelope(self, target: AgentId, request: Request) -> CoagRequest:
        envelope = CoagRequest(id=uuid.uuid4().hex, reply_to=self._mailbox, body=body_of(request))
        if (size := size_of(envelope)) > self._limits.max_bytes:
            raise RemoteAgentError(
                agent=str(target),
                worker="",
                kind="too_large",
                problem=(
                    f"the request takes {size} bytes; a message may take {self._limits.max_bytes}. "
                    "It was not sent. Give the agent less at once, or host, workers and clients "
                    "Limits(max_bytes=...)."
                ),
            )
        return envelope

    async def _exchange(self, target: AgentId, envelope: CoagRequest | CoagAnswer) -> CoagAnswer:
        """Sends until an answer is there, and not longer than patience lasts."""
        future = self._waiting[envelope.id] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self._limits.patience):
                while True:
                    await self._send(target, envelope)
                    done, _ = await asyncio.wait([future], timeout=self._limits.resend)
                    if done:
                        return future.result()
        except TimeoutError as error:
            problem = (
                f"no sign of life for {self._limits.patience:g} s. Is there a worker that serves "
                f"{target.type!r} at this host? It may have died; what it did until then stands."
            )
            raise RemoteAgentError(
                agent=str(target), worker="", kind="unreachable", problem=problem
            ) from error
        finally:
            self._waiting.pop(envelope.id, None)

    async def _send(self, target: AgentId, envelope: CoagRequest | CoagAnswer) -> None:
        if self._closed:
            raise ConfigurationError(
                f"The connection is closed; remote agent {str(target)!r} cannot be used any more."
            )
        await self._runtime.publish_message(envelope, TopicId(f"{target.type}:{TOPIC}", target.key))


async def open_connection(runtime: AgentRuntime, *, limits: Limits | None = None) -> Connection:
    """Makes a started runtime a way to the agents that are served on it; close it in the end."""
    waiting: _Waiting = {}
    mailbox = f"coag_mailbox_{uuid.uuid4().hex}"
    runtime.add_message_serializer(try_get_known_serializers_for_type(CoagRequest))
    await Mailbox.register(runtime, mailbox, lambda: Mailbox(waiting))
    return Connection(runtime, mailbox, waiting, limits or Limits())


def _read(told: CoagAnswer) -> Answer:
    try:
        return read_answer(told)
    except VersionError as error:
        return Failed(failure=RemoteFailure(kind="version", problem=str(error)))
