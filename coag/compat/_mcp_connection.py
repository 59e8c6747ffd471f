"""One connection to an MCP server: a task that holds it open, and requests that survive its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar, cast

import anyio

from ._mcp_definitions import ToolDefinition
from ._mcp_errors import LateError, LostError, McpServerError, NotSentError
from ._mcp_limits import McpLimits
from ._mcp_results import Returned
from ._mcp_stderr import StderrTail

_LOG = logging.getLogger("coag.compat.mcp")
_ENDING_SECONDS = 10.0
"""Time for a server to end; on stdio it is asked, then told by a signal, for two seconds each."""
_WORDS_SECONDS = 0.3
"""Time to wait for the last words of a server that broke the connection."""
_REASON = 500
"""Characters of an error that are kept."""
ResultT = TypeVar("ResultT")


class Session(Protocol):
    """What a connection asks of an MCP session. Its methods raise the errors of `_mcp_errors`."""

    def next_request(self) -> int | None:
        """The number that the next request will have."""
        ...

    async def ping(self) -> None:
        """Returns when the server has given a sign of life."""
        ...

    async def cancel(self, request: int) -> None:
        """Tells the server that nobody waits for a request any more."""
        ...

    async def page_of_tools(self, cursor: str | None) -> tuple[list[ToolDefinition], str | None]:
        """Some of the server's tools, and where the next ones begin."""
        ...

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Returned:
        """What the tool returned."""
        ...

    async def other(self, method: str, arguments: dict[str, Any]) -> Any:
        """What AutoGen's workbench may ask besides: prompts and resources."""
        ...


class Connection:
    """A session that was opened, or is being opened.

    Args:
        server: How the server is called in messages.
        open_session: Gives the session; its exit ends the server.
        limits: How long things may take.
        pulse: Whether a death of the server shows only when it is asked (over HTTP).
    """

    def __init__(
        self,
        server: str,
        open_session: Callable[[StderrTail], AbstractAsyncContextManager[Session]],
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
        self._session: asyncio.Future[Session] = self.loop.create_future()
        self._tail = StderrTail()
        self._telling: set[asyncio.Task[None]] = set()
        self._task = asyncio.create_task(self._hold(open_session))
        self._task.add_done_callback(self._ended)

    async def _hold(
        self, open_session: Callable[[StderrTail], AbstractAsyncContextManager[Session]]
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
        """Waits until the session is there.

        Raises:
            McpServerError: It cannot be opened, or not in time; nothing was asked of it.
        """
        waiting: set[asyncio.Future[Any]] = {self._task, self._session}
        seconds = self._limits.start_seconds
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if self._session.done() and not self._task.done():
            return
        if not self._task.done():
            raise McpServerError(self._server, f"did not start within {seconds:g} s.{self.said}")
        error = None if self._task.cancelled() else self._task.exception()
        why = "it was closed" if error is None else _reason(error)
        raise McpServerError(self._server, f"could not be started: {why}.{self.said}")

    @property
    def said(self) -> str:
        """The last lines of the server's standard error, as the end of a message."""
        return f" It said: {self._tail.text}" if self._tail.text else ""

    async def last_words(self) -> str:
        """The same of a server that broke the connection, which may still be ending."""
        self._closing.set()
        await asyncio.wait({self._task}, timeout=_WORDS_SECONDS)
        return self.said

    async def request(
        self, ask: Callable[[Session], Awaitable[ResultT]], seconds: float
    ) -> ResultT:
        """What the server answers; the session must be open.

        Raises:
            LateError: There was no answer in time.
            LostError: The connection broke meanwhile.
            NotSentError: It was broken before.
            RefusedError: The answer was an error of the protocol.
        """
        session = self._session.result()
        number: int | None = None

        async def asked() -> ResultT:
            nonlocal number
            number = session.next_request()
            return await ask(session)

        asking = _task(asked())
        pulse = _task(self._beat(session)) if self._pulse else None
        self.requests += 1
        try:
            await _first({asking, self._task} | ({pulse} if pulse else set()), seconds)
            if asking.done() and not asking.cancelled():
                return asking.result()
            if asking.cancelled() or self._task.done() or (pulse and pulse.done()):
                raise LostError
            raise LateError
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

    async def _beat(self, session: Session) -> None:
        """Ends by raising when the server is not there any more; one that hangs just goes on."""
        while True:
            await asyncio.sleep(self._limits.check_seconds)
            await session.ping()

    def _give_up(self, session: Session, number: int | None) -> None:
        self.suspect = True
        if number is None or self.gone:
            return
        telling = _task(session.cancel(number))
        self._telling.add(telling)
        telling.add_done_callback(self._telling.discard)

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
        for telling in tuple(self._telling):
            telling.cancel()
        if not self._session.done():
            self._task.cancel()
        await asyncio.wait({self._task}, timeout=_ENDING_SECONDS)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=_ENDING_SECONDS)


def _task(work: Coroutine[Any, Any, ResultT]) -> asyncio.Task[ResultT]:
    """The work as a task whose error, where nobody asks for it, is no complaint of asyncio's."""
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
