"""A turn that runs elsewhere, as its client sees it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, Protocol, TypeVar

from autogen_agentchat.base import Response
from autogen_core import AgentId, CancellationToken

from ._limits import Limits
from ._messages import Message, MessageCodec
from ._wire import Answer, Begin, Follow, Item, Progress, Request

T = TypeVar("T")
MessageT = TypeVar("MessageT", bound=Message)


class Asking(Protocol):
    """The way to remote agents; see `Connection`."""

    @property
    def limits(self) -> Limits:
        """Bounds of waiting."""
        ...

    async def ask(self, target: AgentId, request: Request) -> Answer:
        """The answer to a request; raises `RemoteAgentError` where there is none."""
        ...

    async def tell(self, target: AgentId, request: Request) -> None:
        """Sends a request whose answer nobody waits for."""
        ...


async def cancellable(coroutine: Coroutine[Any, Any, T], token: CancellationToken) -> T:
    """Awaits in a way that the token can cancel."""
    task = asyncio.ensure_future(coroutine)
    token.link_future(task)
    return await task


class RemoteTurn:
    """Follows one turn to its end.

    Args:
        target: The remote agent.
        asking: The way to it.
        codec: Turns JSON into messages.
        names: What the agent is called there and here.
    """

    def __init__(
        self, target: AgentId, asking: Asking, codec: MessageCodec, names: tuple[str, str]
    ) -> None:
        self._target = target
        self._asking = asking
        self._codec = codec
        self._names = names
        self._epoch = ""
        self._count = 0
        self._received: list[Message] = []

    async def follow(
        self, begin: Begin, token: CancellationToken
    ) -> AsyncGenerator[Message | Response, None]:
        """Begins the turn and yields what it brings, the response last.

        Raises:
            RemoteAgentError: The turn failed, or the worker gives no sign of life.
        """
        request: Begin | Follow = begin
        while True:
            answer = await cancellable(self._asking.ask(self._target, request), token)
            if not isinstance(answer, Progress):
                raise AssertionError(f"A turn is answered with progress, not {answer!r}.")
            for item in self._new(answer):
                brought = self._read(item)
                yield brought
                if isinstance(brought, Response):
                    return
            request = Follow(turn=begin.turn, epoch=self._epoch, after=self._count)

    def _new(self, progress: Progress) -> list[Item]:
        """The items that were not received before; counts them."""
        if progress.epoch != self._epoch:
            self._epoch, self._count = progress.epoch, 0
            self._received.clear()
        old = max(0, self._count - progress.first)
        self._count = max(self._count, progress.first + len(progress.items))
        return list(progress.items[old:])

    def _read(self, item: Item) -> Message | Response:
        if not item.response:
            event = self._named(self._codec.load(item.message))
            self._received.append(event)
            return event
        inner = None
        if item.inner is not None:
            inner = [self._inner(one) for one in item.inner]
        said = self._named(self._codec.load_chat(item.message))
        return Response(chat_message=said, inner_messages=inner)

    def _inner(self, one: int | dict[str, Any]) -> Message:
        return self._received[one] if isinstance(one, int) else self._named(self._codec.load(one))

    def _named(self, message: MessageT) -> MessageT:
        """The message, said by whom the agent is here."""
        there, here = self._names
        if message.source != there or there == here:
            return message
        return message.model_copy(update={"source": here})
