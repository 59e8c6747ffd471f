"""The mcp package, major 1: sessions with servers, and servers.

The one module that imports it where it is installed, with what is not public: the number of the
next request, by which one is cancelled, and the check of results, which has no bound in it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence, Set
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, TextIO, TypeVar

import anyio
import httpx
from mcp import ClientSession, McpError
from mcp import types as mcp_types
from mcp.client import streamable_http
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.session import ServerSession
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared._httpx_utils import create_mcp_http_client
from pydantic import AnyUrl
from starlette.types import ASGIApp

from .parameters import ServerParams, StdioServerParams, StreamableHttpServerParams
from .server import (
    TOOLS_CHANGED,
    McpOffer,
    NoSuchResourceError,
    Outbox,
    ServedOffer,
    one_path,
    safe_names,
)
from .session import (
    MESSAGE_CHARACTERS,
    LostError,
    McpNotice,
    McpRefusedError,
    McpResource,
    McpText,
    McpTool,
    NotSentError,
    OnNotice,
    Sampler,
    check_structured,
)
from .streams import StreamWatch

ResultT = TypeVar("ResultT")
_TERMINATED = 32600
"""The mcp package's code for a session that the server does not know any more."""

# ---- A session with a server ----


class _BoundedSession(ClientSession):
    """A session that checks results by the server's schemas in bounded time."""

    def check(self, name: str, result: mcp_types.CallToolResult) -> None:
        """Raises RuntimeError if structured content does not fit the tool's schema."""
        schema = self._tool_output_schemas.get(name)
        if schema is not None:
            check_structured(name, result.structuredContent, json.dumps(schema))


class _SessionV1:
    """`McpSession` over the package's session."""

    def __init__(self, session: _BoundedSession) -> None:
        self._session = session
        has = session.get_server_capabilities() or mcp_types.ServerCapabilities()
        self.has_tools = has.tools is not None
        self.has_resources = has.resources is not None
        self.tells_updates = bool(has.resources and has.resources.subscribe)
        self._watched: frozenset[str] = frozenset()
        self._waiting: dict[int, asyncio.Task[Any]] = {}
        self._lost: set[int] = set()
        self._cancelling: set[asyncio.Task[None]] = set()

    async def page_of_tools(self, cursor: str | None) -> tuple[list[McpTool], str | None]:
        params = mcp_types.PaginatedRequestParams(cursor=cursor)
        page = await self._asked(lambda: self._session.list_tools(params=params))
        tools = [
            McpTool(tool.name, tool.description or "", tool.inputSchema, _hints(tool))
            for tool in page.tools
        ]
        return tools, page.nextCursor

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], meta: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        given: dict[str, Any] = {"name": name, "arguments": dict(arguments)}
        if meta:
            given["_meta"] = dict(meta)
        request = mcp_types.CallToolRequest(
            method="tools/call", params=mcp_types.CallToolRequestParams.model_validate(given)
        )

        async def called() -> mcp_types.CallToolResult:
            result = await self._session.send_request(
                mcp_types.ClientRequest(request), mcp_types.CallToolResult
            )
            if not result.isError:
                self._session.check(name, result)
            return result

        return (await self._asked(called)).model_dump(mode="json")

    async def page_of_resources(self, cursor: str | None) -> tuple[list[McpResource], str | None]:
        params = mcp_types.PaginatedRequestParams(cursor=cursor)
        page = await self._asked(lambda: self._session.list_resources(params=params))
        resources = [
            McpResource(str(each.uri), each.name, each.description or "", each.mimeType or "")
            for each in page.resources
        ]
        return resources, page.nextCursor

    async def read_resource(self, uri: str) -> McpText:
        read = await self._asked(lambda: self._session.read_resource(AnyUrl(uri)))
        texts = [
            each.text
            if isinstance(each, mcp_types.TextResourceContents)
            else f"[{len(each.blob) * 3 // 4:,} bytes]"
            for each in read.contents
        ]
        kind = read.contents[0].mimeType if read.contents else None
        return McpText("\n".join(texts), kind or "")

    async def watch(self, uris: Set[str]) -> None:
        for uri in self._watched - uris:
            await self._asked(lambda uri=uri: self._session.unsubscribe_resource(AnyUrl(uri)))
            self._watched -= {uri}
        for uri in uris - self._watched:
            await self._asked(lambda uri=uri: self._session.subscribe_resource(AnyUrl(uri)))
            self._watched |= {uri}

    async def ping(self) -> None:
        await self._asked(self._session.send_ping)

    async def other(self, method: str, arguments: Mapping[str, Any]) -> Any:
        given = {key: AnyUrl(value) if key == "uri" else value for key, value in arguments.items()}
        return await self._asked(lambda: getattr(self._session, method)(**given))

    async def _asked(self, ask: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """The answer; one that is not waited for any more is cancelled at the server."""
        number: int = getattr(self._session, "_request_id", -1)
        task = asyncio.current_task()
        assert task is not None
        self._waiting[number] = task
        try:
            with _translated():
                return await ask()
        except asyncio.CancelledError:
            if number in self._lost:
                task.uncancel()
                raise LostError from None
            cancelling = asyncio.create_task(self._cancel(number))
            self._cancelling.add(cancelling)
            cancelling.add_done_callback(self._cancelling.discard)
            raise
        finally:
            self._lost.discard(number)
            self._waiting.pop(number, None)

    def lost(self, number: int) -> None:
        """Ends the wait for an answer that does not come any more."""
        if (task := self._waiting.get(number)) is not None:
            self._lost.add(number)
            task.cancel()

    async def _cancel(self, number: int) -> None:
        params = mcp_types.CancelledNotificationParams(requestId=number, reason="given up")
        notification = mcp_types.CancelledNotification(
            method="notifications/cancelled", params=params
        )
        try:
            await self._session.send_notification(mcp_types.ClientNotification(notification))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return  # the server is gone, and the request with it

    def close(self) -> None:
        for cancelling in self._cancelling:
            cancelling.cancel()


def _hints(tool: mcp_types.Tool) -> dict[str, bool]:
    """What a tool says of its effects, where it says it."""
    notes = tool.annotations or mcp_types.ToolAnnotations()
    hints = {"read_only": notes.readOnlyHint, "idempotent": notes.idempotentHint}
    hints["destructive"] = notes.destructiveHint
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
        raise McpRefusedError(data.message[:MESSAGE_CHARACTERS], understood=True) from error
    except (RuntimeError, ValueError) as error:  # the answer does not fit MCP or its own schema
        raise McpRefusedError(str(error)[:MESSAGE_CHARACTERS], understood=False) from error


def _notice(message: object) -> McpNotice | None:
    """What a message of the server tells; None of what is no notice."""
    match getattr(message, "root", None):
        case mcp_types.ResourceUpdatedNotification() as it:
            return McpNotice("updated", uri=str(it.params.uri))
        case mcp_types.ToolListChangedNotification() | mcp_types.ResourceListChangedNotification():
            return McpNotice("tools")
        case mcp_types.LoggingMessageNotification() as it:
            return McpNotice("log", data=it.params.model_dump(mode="json"))
        case mcp_types.ProgressNotification() as it:
            return McpNotice("progress", data=it.params.model_dump(mode="json"))
        case _:
            return None


@asynccontextmanager
async def open_session(
    params: ServerParams, *, stderr: TextIO, on_notice: OnNotice, sampler: Sampler | None = None
) -> AsyncGenerator[_SessionV1]:
    """Starts or calls the server, and greets it (`OpenSession`)."""

    async def heard(message: object) -> None:
        if notice := _notice(message):
            on_notice(notice)

    async with AsyncExitStack() as stack:
        watch = StreamWatch(on_notice, httpx.AsyncByteStream)
        stack.callback(watch.close)
        over_http = isinstance(params, StreamableHttpServerParams)
        opening = _http(params, watch) if over_http else _stdio(params, stderr)
        streams = await stack.enter_async_context(opening)
        session = _BoundedSession(
            streams[0],
            streams[1],
            sampling_callback=_sampling(sampler) if sampler else None,
            message_handler=heard,
        )
        await stack.enter_async_context(session)
        await session.initialize()
        ours = _SessionV1(session)
        watch.on_lost = ours.lost
        stack.callback(ours.close)
        yield ours


def _sampling(sampler: Sampler) -> Any:
    async def answered(context: object, params: mcp_types.CreateMessageRequestParams) -> Any:
        try:
            result = await sampler(params.model_dump(mode="json", exclude_none=True))
            return mcp_types.CreateMessageResult.model_validate(result)
        except Exception as error:  # any error of the model client is the answer
            return mcp_types.ErrorData(code=mcp_types.INTERNAL_ERROR, message=str(error))

    return answered


def _stdio(params: StdioServerParams, stderr: TextIO) -> Any:
    given = params.model_dump(exclude={"type", "read_timeout_seconds"})
    return stdio_client(StdioServerParameters.model_validate(given), errlog=stderr)


@asynccontextmanager
async def _http(params: StreamableHttpServerParams, watch: StreamWatch) -> AsyncGenerator[Any]:
    """The streams to a server over HTTP, by what this version of the mcp package has for it."""
    settings: dict[str, Any] = {"terminate_on_close": params.terminate_on_close}
    timeout = httpx.Timeout(params.timeout, read=params.sse_read_timeout)

    def client_of(
        headers: dict[str, Any] | None, timeout: httpx.Timeout, auth: httpx.Auth | None = None
    ) -> httpx.AsyncClient:
        client = create_mcp_http_client(headers=headers, timeout=timeout, auth=auth)
        client.event_hooks = {"response": [watch.answered]}
        return client

    newer: Any = getattr(streamable_http, "streamable_http_client", None)
    if newer is None:  # before 1.24; later versions call the other one deprecated
        older: Any = getattr(streamable_http, "streamablehttp_client")  # noqa: B009 - see above
        settings |= {"timeout": params.timeout, "sse_read_timeout": params.sse_read_timeout}
        settings["httpx_client_factory"] = client_of
        async with older(params.url, params.headers, **settings) as streams:
            yield streams
        return
    client = client_of(params.headers, timeout)
    async with client, newer(params.url, http_client=client, **settings) as streams:
        yield streams


# ---- A server ----


_SDK_LOG = logging.getLogger("mcp.server.streamable_http")


def _is_a_fault(record: logging.LogRecord) -> bool:
    """Whether the package logs more than that a client is gone, which it takes for an error."""
    return not (record.exc_info and isinstance(record.exc_info[1], anyio.ClosedResourceError))


def make_server(offer: McpOffer) -> _ServingV1:
    """The server of what is offered (`MakeServer`)."""
    _SDK_LOG.addFilter(_is_a_fault)  # added once, however often it is asked for
    return _ServingV1(offer)


class _ServingV1(ServedOffer):
    """`McpServing` over the package's low-level server."""

    def __init__(self, offer: McpOffer) -> None:
        super().__init__(offer)
        self._server: Server[Outbox, Any] = Server(
            offer.name, offer.version, offer.instructions, lifespan=self._session_lifespan
        )
        self._server.request_handlers |= {
            mcp_types.ListToolsRequest: self._list_tools,
            mcp_types.CallToolRequest: self._call_tool,
            mcp_types.ListResourcesRequest: self._list_resources,
            mcp_types.ListResourceTemplatesRequest: self._list_templates,
            mcp_types.ReadResourceRequest: self._read,
            mcp_types.SubscribeRequest: self._subscribe,
            mcp_types.UnsubscribeRequest: self._unsubscribe,
        }
        setattr(self._server, "get_capabilities", self._capabilities)  # noqa: B010 - a method

    async def run_stdio(self) -> None:
        async with stdio_server() as (reading, writing):
            await self._server.run(reading, writing, self._server.create_initialization_options())

    @asynccontextmanager
    async def http_app(self, hosts: Sequence[str], path: str) -> AsyncGenerator[ASGIApp]:
        safe = TransportSecuritySettings.model_validate(safe_names(hosts))
        manager = StreamableHTTPSessionManager(self._server, security_settings=safe)
        async with manager.run():
            yield one_path(path, manager.handle_request)

    @asynccontextmanager
    async def _session_lifespan(self, server: object) -> AsyncGenerator[Outbox]:
        """What one session has: the package enters it when a session begins."""
        outbox = Outbox()
        self._outboxes.add(outbox)
        try:
            yield outbox
        finally:
            self._outboxes.discard(outbox)
            outbox.close()

    def _capabilities(self, *given: Any, **more: Any) -> mcp_types.ServerCapabilities:
        """As the package has them, and that resources are watched, which it leaves out."""
        changing = NotificationOptions(resources_changed=True, tools_changed=True)
        capabilities = Server.get_capabilities(self._server, changing, {})
        capabilities.resources = mcp_types.ResourcesCapability(subscribe=True, listChanged=True)
        return capabilities

    def _outbox(self) -> Outbox:
        """The outbox of the session that asks now; it is sent to from the first request on."""
        context = self._server.request_context
        context.lifespan_context.start(_sender(context.session))
        return context.lifespan_context

    async def _list_tools(self, request: Any) -> mcp_types.ServerResult:
        self._outbox()
        tools = mcp_types.ListToolsResult.model_validate(self._listed_tools())
        return mcp_types.ServerResult(tools)

    async def _call_tool(self, request: mcp_types.CallToolRequest) -> mcp_types.ServerResult:
        given = request.params
        meta = given.meta.model_dump() if given.meta else {}
        answer = await self._offer.call(given.name, given.arguments or {}, meta)
        result = mcp_types.CallToolResult.model_validate(answer.as_json())
        return mcp_types.ServerResult(result)

    async def _list_resources(self, request: Any) -> mcp_types.ServerResult:
        resources = mcp_types.ListResourcesResult.model_validate(self._listed_resources())
        return mcp_types.ServerResult(resources)

    async def _list_templates(self, request: Any) -> mcp_types.ServerResult:
        templates = mcp_types.ListResourceTemplatesResult.model_validate(self._listed_templates())
        return mcp_types.ServerResult(templates)

    async def _read(self, request: mcp_types.ReadResourceRequest) -> mcp_types.ServerResult:
        self._outbox()
        uri = request.params.uri
        try:
            read = await self._offer.read(str(uri))
        except NoSuchResourceError as error:
            raise McpError(mcp_types.ErrorData(code=-32002, message=str(error))) from None
        contents = mcp_types.TextResourceContents(uri=uri, text=read.text, mimeType=read.mime_type)
        return mcp_types.ServerResult(mcp_types.ReadResourceResult(contents=[contents]))

    async def _subscribe(self, request: mcp_types.SubscribeRequest) -> mcp_types.ServerResult:
        self._outbox().watched.add(str(request.params.uri))
        return mcp_types.ServerResult(mcp_types.EmptyResult())

    async def _unsubscribe(self, request: mcp_types.UnsubscribeRequest) -> mcp_types.ServerResult:
        self._outbox().watched.discard(str(request.params.uri))
        return mcp_types.ServerResult(mcp_types.EmptyResult())


def _sender(session: ServerSession) -> Callable[[str], Awaitable[None]]:
    """Sends what waits in an outbox to a session; does nothing when that has ended."""

    async def send(what: str) -> None:
        try:
            if what == TOOLS_CHANGED:
                await session.send_tool_list_changed()
                await session.send_resource_list_changed()
            else:
                await session.send_resource_updated(AnyUrl(what))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return

    return send
