"""One MCP server: its process or address, and what happens when it ends.

An MCP server is somebody else's process. It may start slowly or not at all, hang, die during a
call or answer with megabytes.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from threading import Thread
from typing import Any, TypeVar, cast

import anyio
from autogen_core.models import ChatCompletionClient
from autogen_ext.tools.mcp import McpSessionActor, StreamableHttpServerParams
from pydantic import AnyUrl

from coag._util.timeouts import LateError
from coag.schema import Redactor

from .mcp_session import (
    LostError,
    McpServerError,
    McpSession,
    NotSentError,
    ServerParams,
    expanded,
    label,
    open_session,
)
from .mcp_tools import McpLimits

_LOG = logging.getLogger("coag.compat.mcp")
ResultT = TypeVar("ResultT")

# ---- Its standard error, of which the last lines are kept ----


_LINES = 5
_LINE = 500
"""Characters of a line; a longer one counts as several."""
_PATIENCE = 0.5
"""Seconds to wait for the last lines of a server that has ended."""


class StderrTail:
    """A file that a server can write to, and the last lines that it wrote, without secrets.

    A process needs a real file; a thread empties the pipe, so that no server ever blocks on it.
    Every line is logged at DEBUG to `coag.compat.mcp`.
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


# ---- A connection, and the server that is started again when it ends ----


_ENDING_SECONDS = 10.0
"""Time for a server to end; on stdio it is asked to, then gets a signal, for two seconds each."""
_WORDS_SECONDS = 0.3
"""Time to wait for the last words of a server that broke the connection."""
_REASON = 500
"""Characters of an error that are kept."""


class McpConnection:
    """A session that was opened, or is being opened."""

    def __init__(
        self,
        server: str,
        open_session: Callable[[StderrTail], AbstractAsyncContextManager[McpSession]],
        limits: McpLimits,
        *,
        pulse: bool,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.suspect = False
        """Whether a request was given up, so that the server may be hanging."""
        self.gone = False
        """Whether the connection turned out to be of no more use."""
        self.requests = 0
        """How many are waiting now."""
        self._server = server
        self._limits = limits
        self._pulse = pulse
        self._closing = asyncio.Event()
        self._session: asyncio.Future[McpSession] = self.loop.create_future()
        self._tail = StderrTail()
        self._cancelling: set[asyncio.Task[None]] = set()
        self._task = asyncio.create_task(self._hold(open_session))
        self._task.add_done_callback(self._ended)

    async def _hold(
        self, open_session: Callable[[StderrTail], AbstractAsyncContextManager[McpSession]]
    ) -> None:
        # The scopes of anyio in there must be entered and left by one and the same task.
        try:
            async with open_session(self._tail) as session:
                self._session.set_result(session)
                await self._closing.wait()
        finally:
            await asyncio.to_thread(self._tail.close)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.gone = True
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.debug("MCP server %r: %s", self._server, _reason(error))

    async def opened(self) -> None:
        """Waits until the session is there."""
        waiting: set[asyncio.Future[Any]] = {self._task, self._session}
        seconds = self._limits.start_seconds
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if self._session.done() and not self._task.done():
            return
        problem = f"did not start within {seconds:g} s"
        if self._task.done():
            error = None if self._task.cancelled() else self._task.exception()
            problem = f"could not be started: {_reason(error) if error else 'it was closed'}"
        raise McpServerError(self._server, f"{problem}.{self.last_lines}")

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
        """What the server answers; the session must be open."""
        session = self._session.result()
        number: int | None = None

        async def numbered() -> ResultT:
            nonlocal number
            number = session.next_request()
            return await ask(session)

        asking = _task(numbered())
        pulse = _task(self._beat(session)) if self._pulse else None
        self.requests += 1
        try:
            await _first({asking, self._task} | ({pulse} if pulse else set()), seconds)
            if asking.done() and not asking.cancelled():
                return asking.result()
            if asking.cancelled() or self._task.done() or (pulse and pulse.done()):
                raise LostError
            raise LateError(f"no answer within {seconds:g} s")
        except (LostError, NotSentError):
            self.gone = True
            raise
        finally:
            self.requests -= 1
            if pulse:
                pulse.cancel()
            if not asking.done():
                asking.cancel()
                self._give_up(session, number)

    async def _beat(self, session: McpSession) -> None:
        """Ends by raising when the server is not there any more; one that hangs raises nothing."""
        while True:
            await asyncio.sleep(self._limits.check_seconds)
            await session.ping()

    def _give_up(self, session: McpSession, number: int | None) -> None:
        self.suspect = True
        if number is None or self.gone:
            return
        cancelling = _task(session.cancel(number))
        self._cancelling.add(cancelling)
        cancelling.add_done_callback(self._cancelling.discard)

    async def answers(self) -> bool:
        """Whether the server gives a sign of life in time."""
        session = self._session.result()
        asking = _task(session.ping())
        await _first({asking, self._task}, self._limits.check_seconds)
        alive = asking.done() and not asking.cancelled() and asking.exception() is None
        asking.cancel()
        self.suspect = self.suspect and not alive
        return alive

    async def close(self) -> None:
        """Ends the server, or the session with it; waits until that is done."""
        self.gone = True
        self._closing.set()
        for cancelling in tuple(self._cancelling):
            cancelling.cancel()
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
    return f"{type(error).__name__}: {error}"[:_REASON]


class McpServer(McpSessionActor):
    """What `McpWorkbench` talks to: AutoGen's own actor would hang where this ends."""

    def __init__(
        self,
        params: ServerParams,
        *,
        limits: McpLimits,
        model_client: ChatCompletionClient | None,
    ) -> None:
        super().__init__(params, model_client)
        atexit.unregister(self._sync_shutdown)  # it would keep this alive until the process ends
        self.label = label(params)
        self.changed = True
        """Whether the server may have other tools than when they were listed last."""
        self._params = params
        self._limits = limits
        self._connection: McpConnection | None = None
        self._failed_starts = 0
        self._started = 0.0
        self._last_problem = ""
        self._ending: set[asyncio.Task[None]] = set()
        self._one_at_a_time = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def busy(self) -> bool:
        """Whether requests are waiting for an answer."""
        return self._connection is not None and self._connection.requests > 0

    async def connection(self) -> McpConnection:
        """A connection that is open, as far as is known; starts the server where need be."""
        self._forget_another_loop()
        async with self._one_at_a_time:
            now = self._connection
            if now is not None and now.suspect and not now.gone and not now.requests:
                now.gone = not await now.answers()
                self._last_problem = "it gave no sign of life after a call was given up"
            if now is not None and now.gone:
                self._drop(now)
                now = None
            if now is None:
                now = self._connection = self._start()
        try:
            await now.opened()
        except McpServerError as error:
            self._last_problem = str(error)
            self._drop(now)
            raise
        return now

    def _start(self) -> McpConnection:
        now, pause = asyncio.get_running_loop().time(), self._limits.pause_seconds
        if self._failed_starts > self._limits.restarts and now - self._started < pause:
            raise McpServerError(
                self.label,
                f"was started {self._failed_starts} times in a row without a call that succeeded, "
                f"and is started again after a pause of {pause:g} s, or by `start` or `reset`. "
                f"Last: {self._last_problem}",
            )
        params = expanded(self._params)
        self._failed_starts += 1
        self._started = now
        self.changed = True
        over_http = isinstance(params, StreamableHttpServerParams)

        def changed() -> None:
            self.changed = True

        def opening(tail: StderrTail) -> AbstractAsyncContextManager[McpSession]:
            return open_session(params, self._sampling_callback, changed, tail.file)

        return McpConnection(self.label, opening, self._limits, pulse=over_http)

    async def request(self, ask: Callable[[McpSession], Awaitable[ResultT]]) -> ResultT:
        """What the server answers, once it runs; asked again where the request never left."""
        for _ in range(2):
            connection = await self.connection()
            try:
                return await connection.request(ask, self._limits.call_seconds)
            except NotSentError:
                self._last_problem = f"it had ended.{await connection.last_words()}"
                continue
            except LostError:
                words = await connection.last_words()
                self._last_problem = f"it ended during a request.{words}"
                _LOG.warning("MCP server %r: %s", self.label, self._last_problem)
                problem = "ended before it answered"
            except LateError as late:
                problem = f"gave {late}"
            finally:
                if connection.gone:
                    self._drop(connection)
            problem += "; what was asked for may have been done."
            raise McpServerError(self.label, problem, may_have_happened=True)
        raise McpServerError(self.label, "closed the connection twice before it could be asked.")

    def succeeded(self) -> None:
        """Notes that a call ended, so that later failures are counted from one."""
        self._failed_starts = min(self._failed_starts, 1)

    async def call(self, type: str, args: Any = None) -> Any:
        """What AutoGen's workbench asks besides tools; it awaits the result itself."""
        options = cast("dict[str, Any]", args or {})
        call_arguments = cast("dict[str, Any]", options.get("kargs") or {})
        arguments: dict[str, Any] = {}
        if type == "get_prompt":
            arguments = {"name": options["name"], "arguments": call_arguments.get("arguments")}
        elif type == "read_resource":
            arguments = {"uri": AnyUrl(call_arguments["uri"])}
        return self.request(lambda session: session.other(type, arguments))

    async def initialize(self) -> None:
        """Starts the server now, however often that failed before."""
        self._failed_starts = 0
        await self.connection()

    async def close(self) -> None:
        """Ends the server, and waits for others that are still ending."""
        self._failed_starts = 0
        self._forget_another_loop()
        if self._connection is not None:
            self._drop(self._connection)
        if self._ending:
            await asyncio.wait(self._ending)

    def _drop(self, connection: McpConnection) -> None:
        """Ends a connection without waiting for it."""
        if connection is not self._connection:
            return
        self._connection = None
        ending = asyncio.create_task(connection.close())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    def _forget_another_loop(self) -> None:
        """What was started in an event loop that is over has ended with it."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._connection = None
            self._ending.clear()
            self._one_at_a_time = asyncio.Lock()
