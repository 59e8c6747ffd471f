"""Tools of MCP servers, pinned. The one module that knows the mcp package, which it imports.

An MCP server is somebody else's process. It may start slowly or not at all, hang, die during a
call, return megabytes, or tell a model today what it did not say when you looked at it. AutoGen's
`McpWorkbench` speaks the protocol; what is here bounds it, survives it and compares it:

- a server is started when it is needed, and again, a bounded number of times, when it died;
- a call that is cancelled, late or lost says whether it may have happened;
- what a server says of its tools is pinned at first sight; a tool that changes, or that comes
  later, is quarantined until a person approves it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Self

import anyio
import httpx
from autogen_core import CancellationToken, trace_tool_span
from autogen_core.models import ChatCompletionClient
from autogen_core.tools import ToolOverride, ToolSchema

from coag.cycle import value_fault

from .mcp_version import check_mcp, installed_mcp, unusable_mcp

try:
    from autogen_ext.tools.mcp import McpServerParams, McpWorkbench
    from mcp import ClientSession, McpError
    from mcp import types as mcp_types
    from mcp.client import streamable_http
    from mcp.client.stdio import stdio_client
    from mcp.shared._httpx_utils import create_mcp_http_client
except ImportError as error:
    raise unusable_mcp(installed_mcp()) from error
else:
    check_mcp(installed_mcp())

# These import autogen_ext.tools.mcp, and so come after the check.
from .mcp_server import McpServer, StderrTail
from .mcp_tools import (
    PinnedMcpConfig,
    ServerTools,
    cancellable,
    config_of,
    limits_of,
    settings_of,
    supported,
)
from .mcp_values import (
    LostError,
    McpLimits,
    McpServerError,
    McpToolResult,
    NotSentError,
    PinBoard,
    QuarantinedTool,
    RefusedError,
    Returned,
    ServerParams,
    StdioServerParams,
    StreamableHttpServerParams,
    ToolDefinition,
)
from .tools import ToolEffects

__all__ = [
    "PinnedMcpWorkbench",
    "StdioServerParams",
    "StreamableHttpServerParams",
    "McpLimits",
    "McpToolResult",
    "McpServerError",
    "QuarantinedTool",
]

_MESSAGE = 500  # characters of a server's error that are kept
_TERMINATED = 32600
"""The mcp package's code for a session that the server does not know any more."""


class PinnedMcpWorkbench(McpWorkbench):
    """The tools of an MCP server, for `CoagAgent` and `AssistantAgent` alike.

    The server is started at the first listing or call, by `start()`, or by `async with`, and ends
    with `stop()` or with the event loop. Prompts and resources are asked for as of `McpWorkbench`.

    Args:
        server: How the server is reached, or a `McpWorkbench` whose settings are taken over.
            `${NAME}` in arguments, `env`, `url` and `headers` stands for an environment variable.
        pins: File in which trusted definitions are kept; None keeps them in memory.
        trust_first_use: Whether what the server offers first is trusted without approval.
        limits: The bounds; None takes the defaults, and the parameters' own read time-out where
            one was given.
        tool_overrides: Other names and descriptions, by the tools' names at the server.
        model_client: Answers the server's requests for sampling; None refuses them.

    Raises:
        ConfigurationError: The server is reached by another transport than stdio and Streamable
            HTTP.
        ValueError: Two tools are given the same name.
    """

    component_provider_override = "coag.compat.mcp.PinnedMcpWorkbench"
    component_config_schema = PinnedMcpConfig  # pyright: ignore[reportAssignmentType] - our own

    def __init__(
        self,
        server: McpServerParams | McpWorkbench,
        *,
        pins: str | Path | None = None,
        trust_first_use: bool = True,
        limits: McpLimits | None = None,
        tool_overrides: Mapping[str, ToolOverride] | None = None,
        model_client: ChatCompletionClient | None = None,
    ) -> None:
        if isinstance(server, McpWorkbench):
            tool_overrides = server._tool_overrides if tool_overrides is None else tool_overrides
            model_client = model_client or server._model_client
            server = server.server_params
        params = supported(server)
        super().__init__(params, dict(tool_overrides or {}), model_client)
        self._params = params
        self._limits = limits or limits_of(params)
        self._board = PinBoard(Path(pins) if pins else None, trust_first_use=trust_first_use)
        self._server = McpServer(
            params, open_session=_open_session, limits=self._limits, model_client=model_client
        )
        self._actor = self._server  # which is what McpWorkbench asks for prompts and resources
        self._tools = ServerTools(self._server, self._board, self._tool_overrides, self._limits)

    @property
    def quarantined(self) -> Mapping[str, QuarantinedTool]:
        """Tools that changed or came later, by name, as of the last listing."""
        return self._tools.quarantined

    @property
    def left_out(self) -> tuple[str, ...]:
        """Why tools could not be offered at the last listing, one sentence each."""
        return self._tools.offer.left_out if self._tools.offer else ()

    async def approve(self, name: str, *, digest: str | None = None) -> None:
        """Trusts a quarantined tool as it is in `quarantined` now.

        Args:
            name: Its name at the server.
            digest: The `new.digest` that was looked at; refuses if it has changed since.

        Raises:
            UnknownNameError: No such tool is quarantined.
            ConfigurationError: The digest is another one by now, or the pins cannot be saved.
        """
        await self._tools.approve(name, digest)

    def effects(self, name: str) -> ToolEffects:
        """What the server says of a tool's effects; nothing of one that is not offered."""
        return self._tools.effects(name)

    async def list_tools(self) -> list[ToolSchema]:
        """The trusted tools that the server offers now.

        While a call runs, or when the server has died, these are the ones listed last: a stock
        agent hangs where a listing raises in the middle of its turn. A call then tells of it.

        Raises:
            McpServerError: The server was never listed and cannot be.
            ConfigurationError: An environment variable is missing, or the pins cannot be used.
        """
        return await self._tools.schemas()

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> McpToolResult:
        """Calls a tool; whatever happens but a cancellation of this task is a result."""
        with trace_tool_span(tool_name=name, tool_call_id=call_id):
            call = self._tools.call(name, dict(arguments or {}))
            return await cancellable(name, call, cancellation_token)

    async def start(self) -> None:
        """Starts the server and lists its tools; forgets how often it died.

        Raises:
            McpServerError: It cannot be started.
            ConfigurationError: An environment variable is missing, or the pins cannot be used.
        """
        await self._server.initialize()
        await self._tools.listed()

    async def stop(self) -> None:
        """Ends the server, if it runs."""
        await self._server.close()

    async def reset(self) -> None:
        """Starts the server anew; what is pinned stays."""
        await self.stop()
        await self.start()

    async def save_state(self) -> Mapping[str, Any]:
        """The pins, where no file keeps them."""
        return self._board.save_state()

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes over pins that `save_state` gave; where a file keeps them, the file stays right.

        Raises:
            ConfigurationError: They are none.
        """
        self._board.load_state(state)

    def _to_config(self) -> PinnedMcpConfig:  # pyright: ignore[reportIncompatibleMethodOverride] - ours
        client = self._model_client
        return config_of(self._params, self._board, self._limits, self._tool_overrides, client)

    @classmethod
    def _from_config(cls, config: PinnedMcpConfig) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride] - ours
        return cls(config.server_params, **settings_of(config))


class _BoundedSession(ClientSession):
    """A session that checks results by the server's schemas in bounded time."""

    async def _validate_tool_result(self, name: str, result: mcp_types.CallToolResult) -> None:
        schema = self._tool_output_schemas.get(name)
        if schema is None:
            return
        if result.structuredContent is None:
            raise RuntimeError(
                f"tool {name!r} has an output schema, but gave no structured content"
            )
        if fault := value_fault(result.structuredContent, json.dumps(schema)):
            raise RuntimeError(f"tool {name!r} gave structured content that does not fit: {fault}")


class _SdkSession:
    """A session of the mcp package, behind our `Session`."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    def next_request(self) -> int | None:
        return getattr(self._session, "_request_id", None)

    async def ping(self) -> None:
        with _translated():
            await self._session.send_ping()

    async def cancel(self, request: int) -> None:
        params = mcp_types.CancelledNotificationParams(requestId=request, reason="given up")
        told = mcp_types.CancelledNotification(method="notifications/cancelled", params=params)
        with _translated():
            await self._session.send_notification(mcp_types.ClientNotification(told))

    async def page_of_tools(self, cursor: str | None) -> tuple[list[ToolDefinition], str | None]:
        with _translated():
            params = mcp_types.PaginatedRequestParams(cursor=cursor)
            page = await self._session.list_tools(params=params)
        tools = [
            ToolDefinition.of(tool.name, tool.description or "", tool.inputSchema, _hints(tool))
            for tool in page.tools
        ]
        return tools, page.nextCursor

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Returned:
        with _translated():
            result = await self._session.call_tool(name, arguments)
        return Returned(
            contents=[content.model_dump(mode="json") for content in result.content],
            structured=result.structuredContent,
            is_error=result.isError,
        )

    async def other(self, method: str, arguments: dict[str, Any]) -> Any:
        with _translated():
            return await getattr(self._session, method)(**arguments)


def _hints(tool: mcp_types.Tool) -> dict[str, bool]:
    """What a tool says of its effects, where it says it."""
    said = tool.annotations
    if said is None:
        return {}
    hints = {"read_only": said.readOnlyHint, "idempotent": said.idempotentHint}
    return {name: True for name, hint in hints.items() if hint}


@contextmanager
def _translated() -> Generator[None]:
    """What the mcp package raises, in our errors."""
    try:
        yield
    except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
        raise NotSentError from error
    except McpError as error:
        told = error.error
        if told.code == mcp_types.CONNECTION_CLOSED and told.message == "Connection closed":
            raise LostError from error
        if told.code == _TERMINATED and told.message == "Session terminated":
            raise NotSentError from error
        raise RefusedError(told.message[:_MESSAGE], understood=True) from error
    except (RuntimeError, ValueError) as error:  # the answer does not fit MCP or its own schema
        raise RefusedError(str(error)[:_MESSAGE], understood=False) from error


@asynccontextmanager
async def _open_session(
    params: ServerParams, sampling: Any, tools_changed: Callable[[], None], tail: StderrTail
) -> AsyncGenerator[_SdkSession]:
    """Starts or calls the server, and greets it."""

    async def heard(message: object) -> None:
        root = getattr(message, "root", None)
        if isinstance(root, mcp_types.ToolListChangedNotification):
            tools_changed()

    async with AsyncExitStack() as stack:
        over_http = isinstance(params, StreamableHttpServerParams)
        opening: Any = _http(params) if over_http else stdio_client(params, errlog=tail.file)
        streams = await stack.enter_async_context(opening)
        session = _BoundedSession(
            streams[0], streams[1], sampling_callback=sampling, message_handler=heard
        )
        await stack.enter_async_context(session)
        await session.initialize()
        yield _SdkSession(session)


@asynccontextmanager
async def _http(params: StreamableHttpServerParams) -> AsyncGenerator[Any]:
    """The streams to a server over HTTP, by what this version of the mcp package has for it."""
    settings: dict[str, Any] = {"terminate_on_close": params.terminate_on_close}
    timeout = httpx.Timeout(params.timeout, read=params.sse_read_timeout)
    newer: Any = getattr(streamable_http, "streamable_http_client", None)
    if newer is None:  # an older version of the mcp package; the newer one calls this deprecated
        older: Any = getattr(streamable_http, "streamablehttp_client")  # noqa: B009 - see above
        settings |= {"timeout": params.timeout, "sse_read_timeout": params.sse_read_timeout}
        async with older(params.url, params.headers, **settings) as streams:
            yield streams
        return
    client = create_mcp_http_client(headers=params.headers, timeout=timeout)
    async with client, newer(params.url, http_client=client, **settings) as streams:
        yield streams
