"""A turn's hold on its agent: one stream at a time, until it ends or is left."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator, Callable
from contextvars import ContextVar
from typing import Any

from coag.errors import TurnInProgressError


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
