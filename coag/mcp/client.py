"""A client of one MCP server: its connection is made when it is needed, and again when it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from coag._util.timeouts import LateError

from .connection import McpBounds, McpConnection, StderrTail
from .installed import sdk
from .parameters import ServerParams, StreamableHttpServerParams, expanded, label
from .session import (
    LostError,
    McpNotice,
    McpServerError,
    McpSession,
    NotSentError,
    OnNotice,
    Sampler,
)

_LOG = logging.getLogger("coag.mcp")
ResultT = TypeVar("ResultT")


class McpClient:
    """Asks one server, which is started, or called, at the first request.

    Args:
        params: How it is reached; `${NAME}` is filled in when it is.
        bounds: How long is waited, and how often it is started.
        on_notice: Called with the server's notices.
        sampler: Answers its requests for sampling; None refuses them.
    """

    def __init__(
        self,
        params: ServerParams,
        *,
        bounds: McpBounds,
        on_notice: OnNotice | None = None,
        sampler: Sampler | None = None,
    ) -> None:
        self.label = label(params)
        """How the server is called in messages."""
        self._params = params
        self._bounds = bounds
        self._on_notice = on_notice
        self._sampler = sampler
        self._connection: McpConnection | None = None
        self._failed_starts = 0
        self._started = 0.0
        self._last_problem = ""
        self._ending: dict[asyncio.Task[None], McpConnection] = {}
        self._one_at_a_time = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def busy(self) -> bool:
        """Whether requests are waiting for an answer."""
        return self._connection is not None and self._connection.requests > 0

    async def connection(self) -> McpConnection:
        """A connection that is open, as far as is known; starts the server where need be.

        Raises:
            McpServerError: It cannot be opened, or could not too often.
            ConfigurationError: An environment variable is missing.
        """
        self._forget_another_loop()
        while True:
            async with self._one_at_a_time:
                now = await self._usable()
                is_new = now is None
                if now is None:
                    now = self._connection = self._start()
            try:
                await now.opened()
            except McpServerError as error:
                self._last_problem = str(error)
                self._drop(now)
                if is_new:
                    raise
                continue  # it began before this was asked for: by now the server may be there
            return now

    async def _usable(self) -> McpConnection | None:
        """The connection that there is, if nothing speaks against it."""
        now = self._connection
        if now is not None and now.suspect and not now.gone and not now.requests:
            now.gone = not await now.answers()
            self._last_problem = "it gave no sign of life after a call was given up"
        if now is not None and now.gone:
            self._drop(now)
            return None
        return now

    def _start(self) -> McpConnection:
        now, pause = asyncio.get_running_loop().time(), self._bounds.pause_seconds
        if self._failed_starts > self._bounds.restarts and now - self._started < pause:
            raise McpServerError(
                self.label,
                f"was started {self._failed_starts} times in a row without a call that succeeded, "
                f"and is started again after a pause of {pause:g} s, or by `start` or `reset`. "
                f"Last: {self._last_problem}",
            )
        params = expanded(self._params)
        self._failed_starts += 1
        self._started = now
        made: list[McpConnection] = []

        def notify(notice: McpNotice) -> None:
            if notice.kind == "deaf":
                made[0].retire()
            elif self._on_notice is not None:
                self._on_notice(notice)

        def opening(tail: StderrTail) -> AbstractAsyncContextManager[McpSession]:
            open_session = sdk().open_session
            return open_session(params, stderr=tail.file, on_notice=notify, sampler=self._sampler)

        notify(McpNotice("opened"))
        over_http = isinstance(params, StreamableHttpServerParams)
        made.append(McpConnection(self.label, opening, self._bounds, pulse=over_http))
        return made[0]

    async def request(
        self, ask: Callable[[McpSession], Awaitable[ResultT]], seconds: float | None = None
    ) -> ResultT:
        """What the server answers, once it runs; asked again where the request never left.

        Args:
            ask: The request.
            seconds: How long it may take; None for the bound of calls.

        Raises:
            McpServerError: It cannot be reached, ended or was late.
            McpRefusedError: It answered with an error.
            ConfigurationError: An environment variable is missing.
        """
        for _ in range(2):
            connection = await self.connection()
            try:
                return await connection.request(ask, seconds or self._bounds.call_seconds)
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

    async def start(self) -> None:
        """Starts the server now, however often that failed before.

        Raises:
            McpServerError: It cannot be started.
            ConfigurationError: An environment variable is missing.
        """
        self._failed_starts = 0
        await self.connection()

    async def close(self) -> None:
        """Ends the server, and waits for others that are still ending."""
        self._failed_starts = 0
        self._forget_another_loop()
        if self._connection is not None:
            self._drop(self._connection)
        for connection in self._ending.values():
            connection.hang_up()
        if self._ending:
            await asyncio.wait(self._ending)

    def _drop(self, connection: McpConnection) -> None:
        """Ends a connection when its requests are answered; waits for nothing."""
        if connection is not self._connection:
            return
        self._connection = None
        ending = asyncio.create_task(connection.finish())
        self._ending[ending] = connection
        ending.add_done_callback(lambda done: self._ending.pop(done, None))

    def _forget_another_loop(self) -> None:
        """What was started in an event loop that is over has ended with it."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._connection = None
            self._ending.clear()
            self._one_at_a_time = asyncio.Lock()
