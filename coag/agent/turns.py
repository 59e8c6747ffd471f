"""One turn at a time: who may take it, and what becomes of it when it is cancelled."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

from autogen_agentchat.messages import BaseChatMessage
from autogen_core import CancellationToken

from coag.cycle import TurnResult
from coag.errors import TurnInProgressError
from coag.schema import Outcome, Percept

from .events import Live, Shown
from .inbox import Heard

# ---- A turn's hold on its agent: one stream at a time, until it ends or is left ----


class Claim:
    """One stream's hold on an agent, from its first step until it has ended.

    A stream that waits for its reader is either being read, by somebody who is busy with what it
    gave, or was left and is still referred to. It counts as left where its reader's task has
    ended, or where the one who asks is its reader, or was started by it: who reads a stream does
    not call its agent meanwhile.

    Args:
        agent: The agent's name, for errors.
        stream: Takes the turn; nobody else reads it.
        on_end: Is told once that the hold has ended.
    """

    def __init__(
        self, agent: str, stream: AsyncGenerator[Any, None], on_end: Callable[[Claim], None]
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.paused = False
        """Whether the stream waits for its reader."""
        self._agent = agent
        self._stream = stream
        self._on_end = on_end
        self._ended: asyncio.Event | None = None
        self._reader: asyncio.Task[Any] | None = None
        self.read()

    def read(self) -> None:
        """The stream is read on, by the task that runs now.

        Raises:
            TurnInProgressError: It was left meanwhile, and another turn has begun.
        """
        if self._ended is not None:
            raise TurnInProgressError(self._agent, left=True)
        self.paused = False
        self._reader = asyncio.current_task()
        known = _READ.get()
        if not any(claim() is self for claim in known):
            alive = tuple(claim for claim in known if claim() is not None)
            _READ.set((*alive, weakref.ref(self)))

    def pause(self) -> None:
        """The stream gives something to its reader."""
        self.paused = True

    @property
    def left(self) -> bool:
        """Whether the stream is not read any more, or is ending already."""
        if self._ended is not None:
            return True
        if not self.paused:
            return False
        if self._reader is None or self._reader.done():
            return True
        return any(claim() is self for claim in _READ.get())

    async def end(self) -> None:
        """Ends the stream, once; whoever comes second waits for it."""
        if self._ended is not None:
            await self._ended.wait()
            return
        self._ended = asyncio.Event()
        try:
            await self._stream.aclose()
        finally:
            self._on_end(self)
            self._ended.set()


_READ: ContextVar[tuple[weakref.ref[Claim], ...]] = ContextVar("coag_streams_read", default=())
"""The streams that this task, or one that it was started by, has read from."""


# ---- One turn at a time, its cancellation by AutoGen's token, and trying it again ----


ItemT = TypeVar("ItemT")

LEAVING = 20
"""Rounds of the event loop in which a stream that nobody refers to any more is being ended."""


class Turns:
    """The one turn that an agent is in.

    Args:
        agent: The agent's name, for errors.
        live: What is to be shown while the turn goes on.
    """

    def __init__(self, agent: str, live: Live) -> None:
        self._agent = agent
        self._live = live
        self._claim: Claim | None = None
        self._turn: AsyncGenerator[Outcome | TurnResult] | None = None
        self._task: asyncio.Task[Any] | None = None
        self._heard = Heard()
        self._passed_on = Heard()

    # ---- one at a time ----

    async def hold(self, stream: AsyncGenerator[ItemT, None]) -> AsyncGenerator[ItemT, None]:
        """What the stream of a turn gives; until its end nobody else can begin one.

        Raises:
            TurnInProgressError: Another turn goes on; or this one was left, and ended by another.
        """
        await self.end_left()
        self._claim = claim = Claim(self._agent, stream, self._release)
        try:
            async for item in stream:
                claim.pause()
                yield item
                claim.read()
        finally:
            await claim.end()

    async def end_left(self) -> None:
        """Ends a turn whose stream was left before its end.

        Raises:
            TurnInProgressError: It still goes on.
        """
        rounds = 0
        while (claim := self._claim) is not None:
            if claim.loop.is_closed():  # nothing of it goes on; the next turn closes its cycle
                self._claim = None
            elif claim.loop is not asyncio.get_running_loop():
                raise TurnInProgressError(self._agent)
            elif claim.left:
                await claim.end()
            elif claim.paused and rounds < LEAVING:
                rounds += 1
                await asyncio.sleep(0)
            else:
                raise TurnInProgressError(self._agent)

    async def forget(self) -> None:
        """Ends a turn that was left, and forgets what was said in turns that broke off.

        Raises:
            TurnInProgressError: A turn still goes on.
        """
        await self.end_left()
        self._answered()

    def _release(self, claim: Claim) -> None:
        if self._claim is claim:
            self._claim = None

    # ---- trying again ----

    async def pass_on(
        self,
        messages: Sequence[BaseChatMessage],
        give: Callable[[BaseChatMessage], Awaitable[None]],
    ) -> None:
        """Gives the messages on, but not those that a turn that broke off has given on."""
        for message in self._passed_on.new(messages):
            await give(message)
            self._passed_on.note(message)

    def arriving(
        self,
        messages: Sequence[BaseChatMessage],
        percepts: Callable[[BaseChatMessage], Iterable[Percept]],
    ) -> Iterator[Percept]:
        """The percepts of the messages, but not of those that the agent has heard already.

        Whoever tries again after an error or a cancellation says the same once more. A message
        counts as heard once the percept after its last one is asked for: then it is recorded.
        """
        for message in self._heard.new(messages):
            yield from percepts(message)
            self._heard.note(message)

    def _answered(self) -> None:
        self._heard.forget()
        self._passed_on.forget()

    # ---- steps ----

    def begin(self, turn: AsyncGenerator[Outcome | TurnResult]) -> None:
        """Takes up a turn."""
        self._turn = turn
        self._live.begin()

    async def step(self, token: CancellationToken) -> AsyncGenerator[Shown | Outcome | TurnResult]:
        """The turn's next outcome or its result, last; before it what is shown meanwhile.

        Waited for in a way that the token can cancel: the turn closes its cycle before the
        cancellation is passed on. A step that is left is cancelled too.
        """
        if self._turn is None:
            raise AssertionError("No turn was begun.")
        self._task = task = asyncio.create_task(self._next(self._turn))
        token.link_future(task)
        try:
            while not task.done():
                await self._live.until(task)
                for event in self._live.take():
                    yield event
            result = task.result()
            if isinstance(result, TurnResult):
                self._answered()
            yield result
        finally:
            await self._end_step()

    async def _end_step(self) -> None:
        """Cancels a step that nobody waits for any more, and waits until it has closed its cycle.

        However often whoever waits is cancelled meanwhile: another turn would begin beside it.
        """
        cancelled: asyncio.CancelledError | None = None
        while self._task is not None and not self._task.done():
            self._task.cancel()
            try:
                await asyncio.wait([self._task])
            except asyncio.CancelledError as again:
                cancelled = again
        if cancelled is not None:
            raise cancelled

    async def _next(self, turn: AsyncGenerator[Outcome | TurnResult]) -> Outcome | TurnResult:
        """Wakes whoever waits at once: the task's own callback would come a loop later."""
        try:
            return await anext(turn)
        finally:
            self._live.wake()
