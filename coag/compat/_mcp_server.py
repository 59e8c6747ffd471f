"""A server that is started when it is needed, and again when it died, so often and no oftener."""

from __future__ import annotations

import asyncio
import atexit
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar, cast

from autogen_core.models import ChatCompletionClient
from autogen_ext.tools.mcp import McpSessionActor, StreamableHttpServerParams
from pydantic import AnyUrl

from ._mcp_connection import Connection, Session
from ._mcp_errors import LateError, LostError, McpServerError, NotSentError
from ._mcp_limits import McpLimits
from ._mcp_params import ServerParams, expanded, label
from ._mcp_stderr import StderrTail

_LOG = logging.getLogger("coag.compat.mcp")
ResultT = TypeVar("ResultT")
OpenSession = Callable[[ServerParams, Any, Callable[[], None], StderrTail], Any]
"""Opens a session: parameters, callback for sampling, what to do when tools changed, stderr."""


class McpServer(McpSessionActor):
    """What `McpWorkbench` talks to, in place of AutoGen's own actor, which hangs where this ends.

    Args:
        params: How the server is reached.
        open_session: Opens a session with it.
        limits: How long things may take, and how often it is started again.
        model_client: Answers the server's requests for sampling; None refuses them.
    """

    def __init__(
        self,
        params: ServerParams,
        *,
        open_session: OpenSession,
        limits: McpLimits,
        model_client: ChatCompletionClient | None,
    ) -> None:
        super().__init__(params, model_client)
        atexit.unregister(self._sync_shutdown)  # it would keep this alive until the process ends
        self.label = label(params)
        self.changed = True
        """Whether the server may have other tools than when they were listed last."""
        self._params = params
        self._open_session = open_session
        self._limits = limits
        self._connection: Connection | None = None
        self._starts_in_vain = 0
        self._started = 0.0
        self._last_problem = ""
        self._ending: set[asyncio.Task[None]] = set()
        self._one_at_a_time = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def busy(self) -> bool:
        """Whether requests are waiting for an answer."""
        return self._connection is not None and self._connection.requests > 0

    async def connection(self) -> Connection:
        """A connection that is open, as far as can be told; starts the server where need be.

        Raises:
            McpServerError: There is none, and trying again is not allowed or has failed.
        """
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
        await self._open(now)
        return now

    def _start(self) -> Connection:
        now, pause = asyncio.get_running_loop().time(), self._limits.pause_seconds
        if self._starts_in_vain > self._limits.restarts and now - self._started < pause:
            raise McpServerError(
                self.label,
                f"was started {self._starts_in_vain} times in a row without a call that succeeded, "
                f"and is started again after a pause of {pause:g} s, or by `start` or `reset`. "
                f"Last: {self._last_problem}",
            )
        params = expanded(self._params)
        self._starts_in_vain += 1
        self._started = now
        self.changed = True
        over_http = isinstance(params, StreamableHttpServerParams)

        def opening(tail: StderrTail) -> AbstractAsyncContextManager[Session]:
            return self._open_session(params, self._sampling_callback, self._tools_changed, tail)

        return Connection(self.label, opening, self._limits, pulse=over_http)

    async def _open(self, connection: Connection) -> None:
        try:
            await connection.opened()
        except McpServerError as error:
            self._last_problem = str(error)
            self._drop(connection)
            raise

    async def request(self, ask: Callable[[Session], Awaitable[ResultT]]) -> ResultT:
        """What the server answers, once it runs; asked again where the request never left.

        Raises:
            McpServerError: There is no answer; `may_have_happened` tells whether it was asked.
            RefusedError: The answer was an error of the protocol.
        """
        for _ in range(2):
            connection = await self.connection()
            try:
                return await connection.request(ask, self._limits.call_seconds)
            except NotSentError:
                self._last_problem = f"it had ended.{await connection.last_words()}"
            except LostError:
                words = await connection.last_words()
                self._last_problem = f"it ended during a request.{words}"
                _LOG.warning("MCP server %r: %s", self.label, self._last_problem)
                problem = "ended before it answered; what was asked for may have been done."
                raise McpServerError(self.label, problem, may_have_happened=True) from None
            except LateError:
                problem = (
                    f"gave no answer within {self._limits.call_seconds:g} s; what was asked for "
                    "may have been done."
                )
                raise McpServerError(self.label, problem, may_have_happened=True) from None
            finally:
                if connection.gone:
                    self._drop(connection)
        raise McpServerError(self.label, "closed the connection twice before it could be asked.")

    def succeeded(self) -> None:
        """Notes that a call came to its end, so that later deaths are counted anew."""
        self._starts_in_vain = min(self._starts_in_vain, 1)

    async def call(self, type: str, args: Any = None) -> Any:
        """What AutoGen's workbench asks besides tools; it awaits the result itself."""
        told = cast("dict[str, Any]", args or {})
        given = cast("dict[str, Any]", told.get("kargs") or {})
        arguments: dict[str, Any] = {}
        if type == "get_prompt":
            arguments = {"name": told["name"], "arguments": given.get("arguments")}
        elif type == "read_resource":
            arguments = {"uri": AnyUrl(given["uri"])}
        return self.request(lambda session: session.other(type, arguments))

    async def initialize(self) -> None:
        """Starts the server now, however often it was in vain before."""
        self._starts_in_vain = 0
        await self.connection()

    async def close(self) -> None:
        """Ends the server, and waits for others that are still ending."""
        self._starts_in_vain = 0
        self._forget_another_loop()
        if self._connection is not None:
            self._drop(self._connection)
        if self._ending:
            await asyncio.wait(self._ending)

    def _drop(self, connection: Connection) -> None:
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

    def _tools_changed(self) -> None:
        self.changed = True
