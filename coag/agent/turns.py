"""One turn at a time, step by step, and its cancellation by AutoGen's token."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator
from contextvars import ContextVar
from typing import Any, TypeVar

from autogen_core import CancellationToken

from coag._util.timeouts import until_done
from coag.cycle import TurnResult
from coag.errors import TurnInProgressError
from coag.schema import Outcome

from .events import LiveEvents, Shown

ItemT = TypeVar("ItemT")

RELEASE_ROUNDS = 20
"""Rounds of the event loop in which a stream that nobody refers to any more is closed."""


class TurnLease:
    """One stream's exclusive use of an agent, from its first step until it has ended.

    A stream that waits for its reader is either being read, by somebody who is busy with what it
    gave, or was abandoned and is still referred to. It counts as abandoned where its reader's task
    has ended, or where the one who asks is its reader, or was started by it: who reads a stream
    does not call its agent meanwhile.
    """

    def __init__(self, agent: str, stream: AsyncGenerator[Any, None]) -> None:
        self.loop = asyncio.get_running_loop()
        self.paused = False
        """Whether the stream waits for its reader."""
        self.ended = False
        self._agent = agent
        self._stream = stream
        self._ending: asyncio.Event | None = None
        self._reader: asyncio.Task[Any] | None = None
        self.resume()

    def resume(self) -> None:
        """The task that runs now reads the stream."""
        if self._ending is not None:
            raise TurnInProgressError(self._agent, left=True)
        self.paused = False
        self._reader = asyncio.current_task()
        known = _READ.get()
        if not any(lease() is self for lease in known):
            alive = tuple(lease for lease in known if lease() is not None)
            _READ.set((*alive, weakref.ref(self)))

    @property
    def abandoned(self) -> bool:
        """Whether the stream is not read any more, or is ending already."""
        if self._ending is not None or not self.paused:
            return self._ending is not None
        gone = self._reader is None or self._reader.done()
        return gone or any(lease() is self for lease in _READ.get())

    async def end(self) -> None:
        """Ends the stream, once; a second caller waits for it."""
        if self._ending is not None:
            await self._ending.wait()
            return
        self._ending = asyncio.Event()
        try:
            await self._stream.aclose()
        finally:
            self.ended = True
            self._ending.set()


_READ: ContextVar[tuple[weakref.ref[TurnLease], ...]] = ContextVar("coag_streams_read", default=())
"""The streams that this task, or one that it was started by, has read from."""


class TurnRunner:
    """Runs the one turn that an agent is in."""

    def __init__(self, agent: str, live: LiveEvents) -> None:
        self._agent = agent
        self._live = live
        self._lease: TurnLease | None = None

    async def hold(self, stream: AsyncGenerator[ItemT, None]) -> AsyncGenerator[ItemT, None]:
        """What the stream of a turn gives; until its end nobody else can begin one."""
        await self.end_abandoned()
        self._lease = lease = TurnLease(self._agent, stream)
        try:
            async for item in stream:
                lease.paused = True
                yield item
                lease.resume()
        finally:
            await lease.end()

    async def end_abandoned(self) -> None:
        """Ends a turn whose stream was abandoned before its end."""
        rounds = 0
        while (lease := self._lease) is not None and not lease.ended:
            if lease.loop.is_closed():  # nothing of it runs; the next turn closes its cycle
                self._lease = None
            elif lease.loop is not asyncio.get_running_loop():
                raise TurnInProgressError(self._agent)
            elif lease.abandoned:
                await lease.end()
            elif lease.paused and rounds < RELEASE_ROUNDS:
                rounds += 1
                await asyncio.sleep(0)
            else:
                raise TurnInProgressError(self._agent)

    async def steps(
        self, turn: AsyncGenerator[Outcome | TurnResult], token: CancellationToken
    ) -> AsyncGenerator[Shown | Outcome | TurnResult]:
        """Every outcome of a turn, its result last; before each what is shown meanwhile.

        Each step runs in a task that the token can cancel: the turn closes its cycle before the
        cancellation is passed on. Closing this stream cancels the step and closes the turn.
        """
        self._live.begin()
        try:
            while True:
                task = asyncio.create_task(self._next(turn))
                token.link_future(task)
                try:
                    while not task.done():
                        await self._live.until(task)
                        for event in self._live.take():
                            yield event
                    item = task.result()
                    yield item
                finally:
                    await _cancelled(task)
                if isinstance(item, TurnResult):
                    return
        finally:
            await turn.aclose()

    async def _next(self, turn: AsyncGenerator[Outcome | TurnResult]) -> Outcome | TurnResult:
        """Wakes the reader at once: the task's own callback would come a loop later."""
        try:
            return await anext(turn)
        finally:
            self._live.wake()


async def _cancelled(task: asyncio.Task[Any]) -> None:
    """Cancels a step and waits until it has closed its cycle.

    However often the waiting task is cancelled meanwhile: otherwise another turn would begin.
    """
    task.cancel()
    cancelled = await until_done([task], cancel=True)
    if cancelled is not None:
        raise cancelled
