"""One connection to an MCP server: a task that owns the session, and requests that have a bound.

An MCP server is somebody else's process. It may start slowly or not at all, hang, die during a
call or answer with megabytes.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from threading import Thread
from typing import Any, TypeVar, cast

import anyio
from pydantic import BaseModel, ConfigDict, Field

from coag._util.timeouts import LateError
from coag.schema import Redactor

from .session import MESSAGE_CHARACTERS, LostError, McpServerError, McpSession, NotSentError

_LOG = logging.getLogger("coag.mcp")
ResultT = TypeVar("ResultT")


class McpBounds(BaseModel):
    """Bounds of what is waited for at a server, and of how often it is started."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    call_seconds: float = Field(default=60.0, gt=0)
    """Time that one call or listing may take; AutoGen's own default of 5 s is short for tools."""
    start_seconds: float = Field(default=60.0, gt=0)
    """Time from starting a server to its first answer; some install themselves first."""
    check_seconds: float = Field(default=2.0, gt=0)
    """How often a server over HTTP is asked for a sign of life while a call runs, and how long a
    server has to give one after a call of it was cancelled or late, before it is restarted."""
    restarts: int = Field(default=3, ge=0)
    """How often in a row a server is started again before a call of it succeeds."""
    pause_seconds: float = Field(default=60.0, ge=0)
    """Time after which a server that was given up is tried once more."""


# ---- The standard error of a server, of which the last lines are kept ----


_LINES = 5
_LINE = 500
"""Characters of a line; a longer one counts as several."""
_PATIENCE = 0.5
"""Seconds to wait for the last lines of a server that has ended."""


class StderrTail:
    """A file that a server can write to, and the last lines that it wrote, without secrets.

    A process needs a real file; a thread empties the pipe, so that no server ever blocks on it.
    Every line is logged at DEBUG to `coag.mcp`.
    """

    def __init__(self) -> None:
        reading, writing = os.pipe()
        self.file = os.fdopen(writing, "w", encoding="utf-8")
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._thread = Thread(target=self._drain, args=(reading,), daemon=True)
        self._thread.start()

    def _drain(self, reading: int) -> None:
        with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
            while line := lines.readline(_LINE):
                self._lines.append(line.rstrip())
                _LOG.debug("%s", line.rstrip())

    def close(self) -> None:
        """Ends our part of the pipe; waits a moment for what is still in it."""
        self.file.close()
        self._thread.join(_PATIENCE)

    @property
    def text(self) -> str:
        """The last lines as one."""
        return Redactor().clean_text(" | ".join(line for line in tuple(self._lines) if line))


# ---- A connection ----


_ENDING_SECONDS = 10.0
"""Time for a server to end; on stdio it is asked to, then gets a signal, for two seconds each."""
_WORDS_SECONDS = 0.3
"""Time to wait for the last words of a server that broke the connection."""

Opening = Callable[[StderrTail], AbstractAsyncContextManager[McpSession]]
"""Opens a session."""


class McpConnection:
    """A session that was opened, or is being opened.

    Args:
        server: How the server is called in messages.
        opening: Opens the session.
        bounds: How long is waited for what.
        pulse: Whether the server is asked for a sign of life while a request waits: over HTTP
            nothing else says that it is gone.
    """

    def __init__(self, server: str, opening: Opening, bounds: McpBounds, *, pulse: bool) -> None:
        self.loop = asyncio.get_running_loop()
        self.suspect = False
        """Whether a request was given up, so that the server may be hanging."""
        self.gone = False
        """Whether the connection turned out to be of no more use."""
        self.requests = 0
        """How many are waiting now."""
        self._server = server
        self._bounds = bounds
        self._pulse = pulse
        self._closing = asyncio.Event()
        self._over = asyncio.Event()
        self._idle = asyncio.Event()
        self._session: asyncio.Future[McpSession] = self.loop.create_future()
        self._tail = StderrTail()
        self._task = asyncio.create_task(self._hold(opening))
        self._task.add_done_callback(self._ended)

    async def _hold(self, opening: Opening) -> None:
        # The scopes of anyio in there must be entered and left by one and the same task.
        try:
            async with opening(self._tail) as session:
                self._session.set_result(session)
                await self._closing.wait()
        finally:
            await asyncio.to_thread(self._tail.close)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.retire()
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.debug("MCP server %r: %s", self._server, _reason(error))

    async def opened(self) -> McpSession:
        """The session, when it is there.

        Raises:
            McpServerError: It cannot be opened.
        """
        waiting: set[asyncio.Future[Any]] = {self._task, self._session}
        seconds = self._bounds.start_seconds
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if self._session.done() and not self._task.done():
            return self._session.result()
        problem = f"did not start within {seconds:g} s"
        if self._task.done():
            error = None if self._task.cancelled() else self._task.exception()
            problem = f"could not be started: {_reason(error) if error else 'it was closed'}"
        raise McpServerError(self._server, f"{problem}.{self.last_lines}")

    async def over(self) -> None:
        """Returns when the connection is of no more use."""
        await self._over.wait()

    @property
    def last_lines(self) -> str:
        """The last lines of the server's standard error, as the end of a message."""
        return f" It said: {self._tail.text}" if self._tail.text else ""

    async def last_words(self) -> str:
        """The same of a server that broke the connection, which may still be ending."""
        self._closing.set()
        await asyncio.wait({self._task}, timeout=_WORDS_SECONDS)
        return self.last_lines

    async def request(
        self, ask: Callable[[McpSession], Awaitable[ResultT]], seconds: float
    ) -> ResultT:
        """What the server answers; the session must be open.

        Raises:
            NotSentError: It was not asked.
            LostError: The connection broke, and nobody knows what the server did.
            LateError: It did not answer in time.
            McpRefusedError: It answered with an error.
        """
        session = self._session.result()

        async def asked() -> ResultT:
            return await ask(session)

        asking = _task(asked())
        pulse = _task(self._beat(session)) if self._pulse else None
        self.requests += 1
        self._idle.clear()
        try:
            await _first({asking, self._task} | ({pulse} if pulse else set()), seconds)
            if asking.done() and not asking.cancelled():
                return asking.result()
            if asking.cancelled() or self._task.done() or (pulse and pulse.done()):
                raise LostError
            raise LateError(f"no answer within {seconds:g} s")
        except (LostError, NotSentError):
            self.retire()
            raise
        finally:
            self.requests -= 1
            if not self.requests:
                self._idle.set()
            if pulse:
                pulse.cancel()
            if not asking.done():
                self.suspect = True
                asking.cancel()

    async def _beat(self, session: McpSession) -> None:
        """Ends by raising when the server is not there any more; one that hangs raises nothing."""
        while True:
            await asyncio.sleep(self._bounds.check_seconds)
            await session.ping()

    async def answers(self) -> bool:
        """Whether the server gives a sign of life in time."""
        session = self._session.result()
        asking = _task(session.ping())
        await _first({asking, self._task}, self._bounds.check_seconds)
        alive = asking.done() and not asking.cancelled() and asking.exception() is None
        asking.cancel()
        self.suspect = self.suspect and not alive
        return alive

    def retire(self) -> None:
        """Has it made again by the next request; those that wait may still be answered."""
        self.gone = True
        self._over.set()

    async def finish(self) -> None:
        """Closes it when no request waits any more; each has its bound."""
        if self.requests:
            await self._idle.wait()
        await self.close()

    def hang_up(self) -> None:
        """Has it end, with the requests that wait."""
        self.retire()
        self._closing.set()

    async def close(self) -> None:
        """Ends the server, or the session with it; waits until that is done."""
        self.hang_up()
        if not self._session.done():
            self._task.cancel()
        await asyncio.wait({self._task}, timeout=_ENDING_SECONDS)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=_ENDING_SECONDS)


def _task(work: Coroutine[Any, Any, ResultT]) -> asyncio.Task[ResultT]:
    """The work as a task; asyncio does not complain of an error that nobody reads."""
    task = asyncio.create_task(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


async def _first(tasks: set[asyncio.Task[Any]], seconds: float) -> None:
    await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)


def _reason(error: BaseException) -> str:
    """The first error of a group in words; of a missing command, what is missing."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    if isinstance(error, FileNotFoundError):
        return f"{error.filename!r} was not found; install it, or give its full path"
    if isinstance(error, anyio.BrokenResourceError | anyio.ClosedResourceError):
        return "Connection closed"  # the server was gone before it was asked anything
    return f"{type(error).__name__}: {error}"[:MESSAGE_CHARACTERS]
