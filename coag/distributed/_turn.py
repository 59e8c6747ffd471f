"""One turn of a hosted agent: it runs here, and is asked after from elsewhere."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Any

from autogen_agentchat.base import Response
from autogen_core import CancellationToken

from coag.errors import CoagError

from ._limits import Limits
from ._messages import Message, MessageCodec
from ._wire import Failed, Item, Progress, RemoteFailure

TurnStream = AsyncGenerator[Message | Response, None]
"""What `ChatAgent.on_messages_stream` gives."""

_ENVELOPE = 1_024
"""Bytes of an answer around its items."""


def failure_of(error: BaseException) -> RemoteFailure:
    """What of an exception crosses the wire: its type's name and its text."""
    kind = "cancelled" if isinstance(error, asyncio.CancelledError) else "raised"
    problem = str(error) or "(no message)"
    return RemoteFailure(kind=kind, problem=problem[:10_000], error_type=type(error).__name__)


class HostedTurn:
    """Runs a turn and keeps what it brings until the client has it.

    Args:
        turn: The turn's id.
        epoch: Names this process's numbering of items.
        codec: Turns messages into JSON.
        limits: Bounds.
        on_end: Told the turn once, when it has ended and before anybody learns of it.
    """

    def __init__(
        self,
        turn: str,
        epoch: str,
        codec: MessageCodec,
        limits: Limits,
        on_end: Callable[[HostedTurn], None],
    ) -> None:
        self.id = turn
        self.ended = False
        self.failure: RemoteFailure | None = None
        self.response: Item | None = None
        self._epoch = epoch
        self._codec = codec
        self._limits = limits
        self._on_end = on_end
        self._items: deque[tuple[Item, int]] = deque()
        self._first = 0
        self._numbers: dict[str, int] = {}
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._token = CancellationToken()
        self._task: asyncio.Task[None] | None = None
        self._lease: asyncio.TimerHandle | None = None
        self._why = ""

    @property
    def running(self) -> bool:
        """True from its beginning to its end."""
        return self._task is not None and not self.ended

    def begin(self, stream: Callable[[CancellationToken], TurnStream]) -> None:
        """Lets the turn run; what it brings is had from `progress`."""
        self._renew_lease()
        self._task = asyncio.create_task(self._run(stream))

    def end(self, *, response: Item | None = None, failure: RemoteFailure | None = None) -> None:
        """Ends a turn that did not run here, with what is known of it."""
        self.response, self.failure, self.ended = response, failure, True
        if response is not None:
            self._items.append((response, _size(response)))

    async def progress(self, epoch: str, after: int) -> Progress | Failed:
        """What it brought after that many items; waits a moment where there is nothing new.

        A failure is told when there is nothing else left to tell.
        """
        self._renew_lease()
        if epoch == self._epoch:
            self._drop_until(after)
        if not self.ended and not self._items:
            await self._wait_for_change()
        if self.failure is not None and not self._items:
            return Failed(failure=self.failure)
        return Progress(epoch=self._epoch, first=self._first, items=self._fitting())

    async def cancel(self, why: str) -> None:
        """Cancels the turn and returns when it has ended.

        The agent is asked by its token; one that does not listen is cancelled as a task.
        """
        task = self._task
        if task is None or self.ended:
            return
        self._why = self._why or why
        self._token.cancel()
        _, still = await asyncio.wait([task], timeout=self._limits.cancel / 2)
        if still:
            task.cancel()
            await asyncio.wait([task], timeout=self._limits.cancel / 2)

    async def _run(self, stream: Callable[[CancellationToken], TurnStream]) -> None:
        try:
            await self._take_all(stream(self._token))
            if self.response is None and self.failure is None:
                told = "The agent's stream ended without a response."
                self.failure = RemoteFailure(kind="raised", problem=told, error_type="TypeError")
        except (
            Exception,
            asyncio.CancelledError,
        ) as error:  # the outermost guard: the client must learn of it
            self.failure = self._failure_of(error)
        finally:
            self._end_running()

    def _failure_of(self, error: BaseException) -> RemoteFailure:
        if self._why and isinstance(error, asyncio.CancelledError):
            return RemoteFailure(kind="cancelled", problem=self._why)
        return failure_of(error)

    async def _take_all(self, stream: TurnStream) -> None:
        try:
            async for brought in stream:
                item = self._item(brought)
                size = _size(item)
                if size > self._limits.max_bytes - _ENVELOPE:
                    self.failure = self._too_large(item, size)
                    return
                self._add(item, size)
                if item.response:
                    self.response = item
                    return
                await self._wait_for_room()
        finally:
            await stream.aclose()

    def _item(self, brought: Message | Response) -> Item:
        if not isinstance(brought, Response):
            self._numbers[brought.id] = self._first + len(self._items)
            return Item(message=self._codec.dump(brought))
        inner: tuple[int | dict[str, Any], ...] | None = None
        if brought.inner_messages is not None:
            inner = tuple(
                self._numbers[message.id]
                if message.id in self._numbers
                else self._codec.dump(message)
                for message in brought.inner_messages
            )
        return Item(message=self._codec.dump(brought.chat_message), response=True, inner=inner)

    def _too_large(self, item: Item, size: int) -> RemoteFailure:
        return RemoteFailure(
            kind="too_large",
            problem=(
                f"A {item.message['type']} of the turn takes {size} bytes; a message may take "
                f"{self._limits.max_bytes}. Let the agent answer with less or with a reference, "
                "or give host, workers and clients Limits(max_bytes=...)."
            ),
        )

    def _add(self, item: Item, size: int) -> None:
        self._items.append((item, size))
        self._changed.set()

    def _fitting(self) -> tuple[Item, ...]:
        """As many of the items as one answer holds; one at least."""
        fitting: list[Item] = []
        left = self._limits.max_bytes - _ENVELOPE
        for item, size in self._items:
            left -= size
            if fitting and left < 0:
                break
            fitting.append(item)
        return tuple(fitting)

    def _drop_until(self, number: int) -> None:
        """Forgets items that the client has, but not the response: it may be asked for again."""
        while self._items and self._first < number and self._items[0][0] is not self.response:
            self._items.popleft()
            self._first += 1
        if len(self._items) < self._limits.items:
            self._room.set()

    async def _wait_for_room(self) -> None:
        while len(self._items) >= self._limits.items:
            self._room.clear()
            await self._room.wait()

    async def _wait_for_change(self) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout(self._limits.poll):
                await self._changed.wait()
        except TimeoutError:
            return

    def _renew_lease(self) -> None:
        if self._lease is not None:
            self._lease.cancel()
        if not self.ended:
            loop = asyncio.get_running_loop()
            self._lease = loop.call_later(self._limits.lease, self._abandon)

    def _abandon(self) -> None:
        self._why = f"Nobody had asked after the turn for {self._limits.lease:g} s."
        self._token.cancel()
        if self._task is not None:  # it is asked first, and ended where it does not listen
            loop = asyncio.get_running_loop()
            self._lease = loop.call_later(self._limits.cancel, self._task.cancel)

    def _end_running(self) -> None:
        if self._lease is not None:
            self._lease.cancel()
        self._numbers.clear()
        self.ended = True
        try:
            self._on_end(self)
        except CoagError as error:  # an answer that could not be kept is not given
            self.failure = failure_of(error)
            self._items.clear()
        self._changed.set()


def _size(item: Item) -> int:
    """Bytes that an item takes within an envelope: JSON within JSON, so quotes count double."""
    text = json.dumps(item.model_dump())
    return len(text) + text.count('"') + text.count("\\") + 1
