"""The agents of one type on a worker, and the `RoutedAgent`s through which they are reached."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from autogen_core import (
    AgentRuntime,
    MessageContext,
    RoutedAgent,
    TopicId,
    event,
    try_get_known_serializers_for_type,
)

from .hosted import HostedAgent
from .places import AgentFactory, AgentPlace, folder_of, load_factory, name_of
from .protocol import (
    Answer,
    CoagAnswer,
    CoagRequest,
    Message,
    MessageCodec,
    RemoteFailure,
    RemoteLimits,
    RemoteRefusal,
    RequestFailed,
    StillWorking,
    body_of,
    failure_of,
    read_request,
    size_of,
)

TOPIC = "coag"
"""Follows the agent type in the topics that requests and answers are published to.

Events are used rather than AutoGen's requests: its gRPC host keeps requests of all clients by a
number that each client counts for itself, so answers reach the wrong client where two ask one
worker; and an error answer is never received.
"""


class AgentService:
    """The agents of one type: made when first asked for, one per key.

    Args:
        place: The place of every agent, but for its key and folder.
        factory: Makes them.
        codec: Turns messages into JSON.
        limits: Bounds.
    """

    def __init__(
        self, place: AgentPlace, factory: AgentFactory, codec: MessageCodec, limits: RemoteLimits
    ) -> None:
        self._worker = f"{socket.gethostname()}:{os.getpid()}"
        self._place = place
        self._factory = factory
        self._codec = codec
        self._limits = limits
        self._opening: dict[str, asyncio.Task[HostedAgent]] = {}
        self._closed = False

    async def answer(self, key: str, envelope: CoagRequest) -> CoagAnswer:
        """Answers a request to the agent of a key; what goes wrong is an answer too."""
        try:
            body = body_of(await self._answer(key, envelope))
        except Exception as error:  # the outermost guard: the client must learn of it
            body = body_of(RequestFailed(failure=failure_of(error)))
        reply = CoagAnswer(id=envelope.id, worker=self._worker, body=body)
        if (size := size_of(reply)) <= self._limits.max_bytes:
            return reply
        problem = f"The answer takes {size} bytes; a message may take {self._limits.max_bytes}."
        failed = RequestFailed(failure=RemoteFailure(kind="too_large", problem=problem))
        return reply.model_copy(update={"body": body_of(failed)})

    async def close(self) -> None:
        """Cancels what runs and closes every agent."""
        self._closed = True
        opening = list(self._opening.values())
        self._opening.clear()
        for task in opening:
            task.cancel()
        for hosted in await asyncio.gather(*opening, return_exceptions=True):
            if isinstance(hosted, HostedAgent):
                await hosted.close("The worker is shutting down.")

    async def _answer(self, key: str, envelope: CoagRequest) -> Answer:
        """The agent's answer; that it is being made, as long as it is."""
        request = read_request(envelope)
        if self._closed:
            raise RemoteRefusal("refused", "The worker is shutting down.")
        task = self._opening.get(key)
        if task is None or _is_over(task):
            self._opening.pop(key, None)
            if len(self._opening) >= self._limits.agents:
                raise RemoteRefusal(
                    "refused",
                    f"The worker serves {self._limits.agents} agents of this type already, as "
                    "many as its limits allow. Close remote agents that are no longer used.",
                )
            task = self._opening[key] = asyncio.create_task(self._open(key))
        done, _ = await asyncio.wait([task], timeout=self._limits.poll)
        if not done:
            return StillWorking()
        if task.cancelled():
            raise RemoteRefusal("refused", "Its making was cancelled.")
        return await task.result().answer(envelope.id, request)

    async def _open(self, key: str) -> HostedAgent:
        logs = self._place.logs
        if logs is not None:
            logs = folder_of(logs, self._place.type, key) / "runs"
        place = replace(self._place, key=key, logs=logs)
        return await HostedAgent.open(self._factory, place, self._codec, self._limits)


class ChatAgentHost(RoutedAgent):
    """Hands what arrives for one (type, key) on a runtime to the chat agent behind it.

    Args:
        service: Whose agents they are.
    """

    def __init__(self, service: AgentService) -> None:
        super().__init__("Hosts a chat agent.")
        self._service = service

    @event
    async def take(self, message: CoagRequest, ctx: MessageContext) -> None:
        """Answers a request."""
        del ctx
        answer = await self._service.answer(self.id.key, message)
        await self.publish_message(answer, TopicId(f"{message.reply_to}:{TOPIC}", "default"))


async def serve_agent(
    runtime: AgentRuntime,
    type: str,
    factory: AgentFactory | str,
    *,
    message_types: Sequence[type[Message]] = (),
    logs: Path | str | None = None,
    options: Mapping[str, str] | None = None,
    limits: RemoteLimits | None = None,
) -> AgentService:
    """Serves chat agents of one type on a runtime; close what is returned in the end.

    Args:
        runtime: A started `GrpcWorkerAgentRuntime`, or any other runtime of AutoGen.
        type: The agent type under which they are reached; one worker serves a type.
        factory: Makes the agent of a place, one per key; or its name, `module:function`.
        message_types: Types of message beyond AgentChat's own.
        logs: Folder for what survives a worker's death: journals of turns, runs of CoagAgents.
        options: Given to the factory in `AgentPlace.options`.
        limits: Bounds; clients need the same `max_bytes`.

    Raises:
        ConfigurationError: The factory's name leads nowhere.
    """
    make = load_factory(factory) if isinstance(factory, str) else factory
    place = AgentPlace(
        type=type,
        key="",
        logs=_absolute(logs),
        options=dict(options or {}),
        factory=factory if isinstance(factory, str) else name_of(factory),
    )
    service = AgentService(place, make, MessageCodec(message_types), limits or RemoteLimits())
    runtime.add_message_serializer(try_get_known_serializers_for_type(CoagAnswer))
    await ChatAgentHost.register(runtime, type, lambda: ChatAgentHost(service))
    return service


def _absolute(logs: Path | str | None) -> Path | None:
    return None if logs is None else Path(logs).absolute()


def _is_over(opening: asyncio.Task[HostedAgent]) -> bool:
    """True where no agent is there or coming, so that one has to be made."""
    if not opening.done():
        return False
    return opening.cancelled() or opening.exception() is not None or opening.result().closed
