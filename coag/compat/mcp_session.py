"""A session with an MCP server: how it is reached, and what is asked of it.

The one module that knows the mcp package, which it imports.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import PurePath
from typing import Any, TextIO
from urllib.parse import urlsplit

import anyio
import httpx

from coag._util.json_schemas import value_fault
from coag.errors import CoagError, ConfigurationError
from coag.schema import REDACTED, Redactor, is_secret_setting

from .mcp_tools import ToolDefinition

MCP_BOUND = "mcp>=1.21.2,<2"
"""Older ones fail with today's pydantic; 2.0 took away what AutoGen 0.7 imports."""
_LOWEST = (1, 21, 2)
_ADVICE = f'AutoGen 0.7 works with {MCP_BOUND}. Run: pip install "coag[mcp]"'


try:
    _INSTALLED = version("mcp")
except PackageNotFoundError:
    raise ConfigurationError(f"Tools of MCP servers need the package mcp. {_ADVICE}") from None
_UNUSABLE = ConfigurationError(f"mcp {_INSTALLED} is installed and cannot be used. {_ADVICE}")
try:
    from autogen_ext.tools.mcp import (
        StdioServerParams,
        StreamableHttpServerParams,
    )
    from mcp import ClientSession, McpError
    from mcp import types as mcp_types
    from mcp.client import streamable_http
    from mcp.client.stdio import stdio_client
    from mcp.shared._httpx_utils import create_mcp_http_client
except ImportError as error:
    raise _UNUSABLE from error
if not _LOWEST <= tuple(map(int, re.findall(r"\d+", _INSTALLED)[:3])) < (2,):
    raise _UNUSABLE


# ---- What can go wrong between this process and a server ----


class McpServerError(CoagError):
    """An MCP server could not be started, asked or understood.

    Attributes:
        server: How the server is called in messages.
        may_have_happened: Whether what was asked for may have been done all the same.
    """

    def __init__(self, server: str, problem: str, *, may_have_happened: bool = False) -> None:
        self.server = server
        self.may_have_happened = may_have_happened
        super().__init__(f"MCP server {server!r} {problem}")


class NotSentError(Exception):
    """A request never reached the server: the connection was closed before."""


class LostError(Exception):
    """The connection broke while the server had a request."""


class RefusedError(Exception):
    """The server answered with an error of the protocol, or with something unintelligible."""

    def __init__(self, problem: str, *, understood: bool) -> None:
        self.understood = understood
        super().__init__(problem)


# ---- How a server is reached: secrets by reference, and what of it may be shown or dumped ----


ServerParams = StdioServerParams | StreamableHttpServerParams
"""How a server is reached: as a process of its own, or by Streamable HTTP."""
_ONLY_REFERENCE = re.compile(r"(?:(?:Bearer|Basic|[Tt]oken) )?\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def label(params: ServerParams) -> str:
    """How the server is called in messages: command and script, or address; no secret."""
    if isinstance(params, StreamableHttpServerParams):
        address = urlsplit(params.url)
        port = f":{address.port}" if address.port else ""
        return f"{address.scheme}://{address.hostname}{port}{address.path}"
    public = [after for before, after in pairwise(("", *params.args)) if not _is_secret(before)]
    script = next((arg for arg in public if not re.search(r"^-|\s", arg)), "")
    named = " ".join(PurePath(part).name for part in (params.command, script) if part)
    return Redactor().clean_text(named)


def expanded(params: ServerParams) -> ServerParams:
    """The parameters with every `${NAME}` replaced by the environment variable of that name."""

    def value_of(found: re.Match[str]) -> str:
        if found[1] not in os.environ:
            raise ConfigurationError(
                f"MCP server {label(params)!r} needs the environment variable {found[1]!r}, which "
                "is not set."
            )
        return os.environ[found[1]]

    def filled(values: Mapping[str, Any] | None) -> dict[str, Any] | None:
        return (
            None
            if values is None
            else {
                name: _REFERENCE.sub(value_of, value) if isinstance(value, str) else value
                for name, value in values.items()
            }
        )

    if isinstance(params, StreamableHttpServerParams):
        url = _REFERENCE.sub(value_of, params.url)
        return params.model_copy(update={"url": url, "headers": filled(params.headers)})
    args = [_REFERENCE.sub(value_of, arg) for arg in params.args]
    return params.model_copy(update={"args": args, "env": filled(params.env)})


def dumpable(params: ServerParams) -> ServerParams:
    """The parameters as they may be written down.

    Each value of `env` and `headers` that is not a reference (`Bearer ${NAME}` is one, too) is
    replaced by one to the environment variable of the same name; of a header: in capitals, with
    `_` for `-`.
    """
    over_http = isinstance(params, StreamableHttpServerParams)
    texts = [params.url] if over_http else params.args
    secret = _has_more_than_a_place(params.url) if over_http else _has_secret_option(params.args)
    plain = _REFERENCE.sub(REDACTED, " ".join(texts))
    if secret or Redactor.from_environment().clean_text(plain) != plain:
        raise ConfigurationError(
            f"MCP server {label(params)!r} cannot be dumped: an argument or its address seems to "
            "hold a secret. Write ${NAME} there, the name of an environment variable that has it."
        )
    if over_http:
        headers = params.headers or {}
        references = {name: _by_reference(headers[name], name.upper()) for name in headers}
        return params.model_copy(update={"headers": params.headers and references})
    env = params.env and {name: _by_reference(value, name) for name, value in params.env.items()}
    return params.model_copy(update={"env": env})


def _by_reference(value: Any, variable: str) -> str:
    if isinstance(value, str) and _ONLY_REFERENCE.fullmatch(value):
        return value
    return f"${{{re.sub(r'[^A-Za-z0-9_]', '_', variable)}}}"


def _has_more_than_a_place(url: str) -> bool:
    """Whether an address says more than where the server is, beside references."""
    address = urlsplit(_REFERENCE.sub("", url))
    values = (part.partition("=") for part in address.query.split("&"))
    has_value = any(value or not equals for name, equals, value in values if name)
    return "@" in address.netloc or has_value or bool(address.fragment)


def _has_secret_option(args: Sequence[str]) -> bool:
    """Whether an option that is named like a secret has a value that is no reference."""
    for option, after in pairwise((*args, "")):
        name, equals, value = option.partition("=")
        if not equals:
            value = "" if after.startswith("-") else after
        if value and _is_secret(name) and not _ONLY_REFERENCE.fullmatch(value):
            return True
    return False


def _is_secret(option: str) -> bool:
    return option.startswith("-") and is_secret_setting(option)


# ---- A session of the mcp package ----


_MESSAGE = 500
"""Characters of a server's error that are kept."""
_TERMINATED = 32600
"""The mcp package's code for a session that the server does not know any more."""


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


class McpSession:
    """A session of the mcp package; its methods raise our errors."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    def next_request(self) -> int | None:
        """The number that the next request will have."""
        return getattr(self._session, "_request_id", None)

    async def ping(self) -> None:
        """Returns when the server has given a sign of life."""
        with _translated():
            await self._session.send_ping()

    async def cancel(self, request: int) -> None:
        """Reports to the server that a request is no longer waited for."""
        params = mcp_types.CancelledNotificationParams(requestId=request, reason="given up")
        notification = mcp_types.CancelledNotification(
            method="notifications/cancelled", params=params
        )
        with _translated():
            await self._session.send_notification(mcp_types.ClientNotification(notification))

    async def page_of_tools(self, cursor: str | None) -> tuple[list[ToolDefinition], str | None]:
        """Some of the server's tools, and where the next ones begin."""
        with _translated():
            params = mcp_types.PaginatedRequestParams(cursor=cursor)
            page = await self._session.list_tools(params=params)
        tools = [
            ToolDefinition.of(tool.name, tool.description or "", tool.inputSchema, _hints(tool))
            for tool in page.tools
        ]
        return tools, page.nextCursor

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """What the tool returned, as MCP's JSON has it."""
        with _translated():
            result = await self._session.call_tool(name, arguments)
        return result.model_dump(mode="json")

    async def other(self, method: str, arguments: dict[str, Any]) -> Any:
        """What AutoGen's workbench may ask besides: prompts and resources."""
        with _translated():
            return await getattr(self._session, method)(**arguments)


def _hints(tool: mcp_types.Tool) -> dict[str, bool]:
    """What a tool says of its effects, where it says it."""
    notes = tool.annotations or mcp_types.ToolAnnotations()
    hints = {"read_only": notes.readOnlyHint, "idempotent": notes.idempotentHint}
    return {name: True for name, hint in hints.items() if hint}


@contextmanager
def _translated() -> Generator[None]:
    """What the mcp package raises, in our errors."""
    try:
        yield
    except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
        raise NotSentError from error
    except McpError as error:
        data = error.error
        if data.code == mcp_types.CONNECTION_CLOSED and data.message == "Connection closed":
            raise LostError from error
        if data.code == _TERMINATED and data.message == "Session terminated":
            raise NotSentError from error
        raise RefusedError(data.message[:_MESSAGE], understood=True) from error
    except (RuntimeError, ValueError) as error:  # the answer does not fit MCP or its own schema
        raise RefusedError(str(error)[:_MESSAGE], understood=False) from error


@asynccontextmanager
async def open_session(
    params: ServerParams, sampling: Any, tools_changed: Callable[[], None], stderr: TextIO
) -> AsyncGenerator[McpSession]:
    """Starts or calls the server, and greets it."""

    async def on_message(message: object) -> None:
        root = getattr(message, "root", None)
        if isinstance(root, mcp_types.ToolListChangedNotification):
            tools_changed()

    async with AsyncExitStack() as stack:
        over_http = isinstance(params, StreamableHttpServerParams)
        opening: Any = _http(params) if over_http else stdio_client(params, errlog=stderr)
        streams = await stack.enter_async_context(opening)
        session = _BoundedSession(
            streams[0], streams[1], sampling_callback=sampling, message_handler=on_message
        )
        await stack.enter_async_context(session)
        await session.initialize()
        yield McpSession(session)


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
