"""The mcp package, major 2: sessions with servers, and servers.

The one module that imports it where it is installed. It speaks the protocol of 2026-07-28, in
which a stream of notices is a request of its own, and the older one with servers and clients that
know no other. What is not public: the connection of a session, which knows when it ends.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Generator, Mapping, Sequence, Set
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import anyio
import httpx2
import mcp_types
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated, SubscriptionLost
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

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

if TYPE_CHECKING:
    from starlette.types import ASGIApp

ResultT = TypeVar("ResultT")
_PAUSES = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds between attempts to open a stream of notices again; after the last, none will come."""
_LISTENERS = 1024
"""Streams of notices that a server holds at once."""
_TERMINATED = "Session terminated"

# ---- A session with a server ----


class _SessionV2:
    """`McpSession` over the package's client."""

    def __init__(self, client: Client, on_notice: OnNotice) -> None:
        self._client = client
        self._on_notice = on_notice
        has = client.server_capabilities
        self.has_tools = has.tools is not None
        self.has_resources = has.resources is not None
        self.tells_updates = bool(has.resources and has.resources.subscribe)
        self.tells_tools = bool(has.tools and has.tools.list_changed)
        self._is_modern = client.protocol_version in MODERN_PROTOCOL_VERSIONS
        self._schemas: dict[str, str] = {}
        self._watched: frozenset[str] | None = None
        self._listening: asyncio.Task[None] | None = None
        setattr(client.session, "validate_tool_result", self._check)  # noqa: B010 - a method

    async def page_of_tools(self, cursor: str | None) -> tuple[list[McpTool], str | None]:
        page = await _asked(self._client.list_tools(cursor=cursor))
        for tool in page.tools:
            if tool.output_schema is not None:
                self._schemas[tool.name] = json.dumps(tool.output_schema)
        tools = [
            McpTool(tool.name, tool.description or "", tool.input_schema, _hints(tool))
            for tool in page.tools
        ]
        return tools, page.next_cursor

    async def _check(self, name: str, result: mcp_types.CallToolResult) -> None:
        """The package's check of results by the server's schemas, in bounded time."""
        schema = self._schemas.get(name)
        if schema is not None:
            check_structured(name, result.structured_content, schema)

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], meta: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        given: Any = dict(meta) if meta else None
        called = self._client.call_tool(
            name, dict(arguments), meta=given, progress_callback=self._progressed
        )
        return (await _asked(called)).model_dump(mode="json", by_alias=True)

    async def _progressed(self, progress: float, total: float | None, message: str | None) -> None:
        data = {"progress": progress, "total": total, "message": message}
        self._on_notice(McpNotice("progress", data=data))

    async def page_of_resources(self, cursor: str | None) -> tuple[list[McpResource], str | None]:
        page = await _asked(self._client.list_resources(cursor=cursor))
        resources = [
            McpResource(each.uri, each.name, each.description or "", each.mime_type or "")
            for each in page.resources
        ]
        return resources, page.next_cursor

    async def read_resource(self, uri: str) -> McpText:
        read = await _asked(self._client.read_resource(uri))
        texts = [
            each.text
            if isinstance(each, mcp_types.TextResourceContents)
            else f"[{len(each.blob) * 3 // 4:,} bytes]"
            for each in read.contents
        ]
        kind = read.contents[0].mime_type if read.contents else None
        return McpText("\n".join(texts), kind or "")

    async def watch(self, uris: Set[str]) -> None:
        if not self._is_modern:
            await self._subscribe(frozenset(uris))
        elif self._watched != uris or (self._listening and self._listening.done()):
            self._watched = frozenset(uris)
            before = self._listening
            opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._listening = asyncio.create_task(self._listen(sorted(uris), opened))
            try:
                await opened
            finally:
                if before is not None:
                    before.cancel()

    async def _subscribe(self, uris: frozenset[str]) -> None:
        """The same with a server of the older protocol."""
        self._watched = watched = self._watched or frozenset()
        for uri in watched - uris:
            old = mcp_types.UnsubscribeRequestParams(uri=uri)
            await self._sent(mcp_types.UnsubscribeRequest(params=old))
            self._watched = self._watched - {uri}
        for uri in uris - watched:
            new = mcp_types.SubscribeRequestParams(uri=uri)
            await self._sent(mcp_types.SubscribeRequest(params=new))
            self._watched = self._watched | {uri}

    async def _sent(self, request: Any) -> None:
        await _asked(self._client.session.send_request(request, mcp_types.EmptyResult))

    async def _listen(self, uris: list[str], opened: asyncio.Future[None]) -> None:
        """Holds a stream of notices, and opens it again when it breaks."""
        pauses = list(_PAUSES)
        while True:
            try:
                async with self._client.listen(
                    tools_list_changed=True,
                    resources_list_changed=True,
                    resource_subscriptions=uris,
                ) as stream:
                    if opened.done():
                        self._on_notice(McpNotice("missed"))
                    else:
                        opened.set_result(None)
                    pauses = list(_PAUSES)
                    async for event in stream:
                        self._on_notice(
                            McpNotice("updated", uri=event.uri)
                            if isinstance(event, ResourceUpdated)
                            else McpNotice("tools")
                        )
            except (SubscriptionLost, MCPError, httpx2.HTTPError) as error:
                if not opened.done():
                    opened.set_exception(_ours(error) or LostError())
                    return
            if not pauses:
                self._on_notice(McpNotice("deaf"))
                return
            await asyncio.sleep(pauses.pop(0))

    async def ping(self) -> None:
        if self._is_modern:
            await _asked(self._client.session.send_discover(self._client.protocol_version))
        else:
            await _asked(self._client.session.send_ping())

    async def other(self, method: str, arguments: Mapping[str, Any]) -> Any:
        return await _asked(getattr(self._client, method)(**arguments))

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait({self._listening})


def _hints(tool: mcp_types.Tool) -> dict[str, bool]:
    """What a tool says of its effects, where it says it."""
    notes = tool.annotations or mcp_types.ToolAnnotations()
    hints = {"read_only": notes.read_only_hint, "idempotent": notes.idempotent_hint}
    hints["destructive"] = notes.destructive_hint
    return {name: True for name, hint in hints.items() if hint}


async def _asked(answer: Awaitable[ResultT]) -> ResultT:
    with _translated():
        return await answer


@contextmanager
def _translated() -> Generator[None]:
    """What the mcp package raises, in our errors."""
    try:
        yield
    except (
        MCPError,
        httpx2.HTTPError,
        anyio.ClosedResourceError,
        anyio.BrokenResourceError,
        RuntimeError,
        ValueError,
    ) as error:
        raise _ours(error) or error from error


def _ours(error: Exception) -> Exception | None:
    match error:
        case MCPError() if error.code == mcp_types.CONNECTION_CLOSED:
            return LostError()
        case MCPError() if error.message == _TERMINATED:
            return NotSentError()
        case MCPError():
            return McpRefusedError(error.message[:MESSAGE_CHARACTERS], understood=True)
        case httpx2.ConnectError() | anyio.ClosedResourceError() | anyio.BrokenResourceError():
            return NotSentError()
        case httpx2.HTTPError() | SubscriptionLost():
            return LostError()
        case RuntimeError() | ValueError():  # the answer does not fit MCP or its own schema
            return McpRefusedError(str(error)[:MESSAGE_CHARACTERS], understood=False)
        case _:
            return None


@asynccontextmanager
async def open_session(
    params: ServerParams, *, stderr: TextIO, on_notice: OnNotice, sampler: Sampler | None = None
) -> AsyncGenerator[_SessionV2]:
    """Starts or calls the server, and greets it (`OpenSession`)."""

    async def heard(message: object) -> None:
        match message:
            case mcp_types.ResourceUpdatedNotification():
                on_notice(McpNotice("updated", uri=message.params.uri))
            case (
                mcp_types.ToolListChangedNotification()
                | mcp_types.ResourceListChangedNotification()
            ):
                on_notice(McpNotice("tools"))
            case mcp_types.LoggingMessageNotification():
                data = message.params.model_dump(mode="json", by_alias=True)
                on_notice(McpNotice("log", data=data))
            case _:
                return

    async with AsyncExitStack() as stack:
        if isinstance(params, StreamableHttpServerParams):
            watch = StreamWatch(on_notice, httpx2.AsyncByteStream)
            stack.callback(watch.close)
            timeout = httpx2.Timeout(params.timeout, read=params.sse_read_timeout)
            http = create_mcp_http_client(headers=params.headers, timeout=timeout)
            http.event_hooks = {"response": [watch.answered]}
            await stack.enter_async_context(http)
            end = params.terminate_on_close
            transport = streamable_http_client(params.url, http_client=http, terminate_on_close=end)
        else:
            transport = _stdio(params, stderr)
        client = Client(
            transport,
            message_handler=heard,
            sampling_callback=_sampling(sampler) if sampler else None,
            cache=None,
        )
        await stack.enter_async_context(client)
        session = _SessionV2(client, on_notice)
        stack.push_async_callback(session.close)
        if session.tells_tools:  # without a stream, it sends no notices of them
            with suppress(NotSentError, LostError, McpRefusedError):
                await session.watch(frozenset())
        yield session


def _stdio(params: StdioServerParams, stderr: TextIO) -> Any:
    given = params.model_dump(exclude={"type", "read_timeout_seconds"})
    return stdio_client(StdioServerParameters.model_validate(given), errlog=stderr)


def _sampling(sampler: Sampler) -> Any:
    async def answered(context: object, params: mcp_types.CreateMessageRequestParams) -> Any:
        try:
            asked = params.model_dump(mode="json", by_alias=True, exclude_none=True)
            return mcp_types.CreateMessageResult.model_validate(await sampler(asked))
        except Exception as error:  # any error of the model client is the answer
            return mcp_types.ErrorData(code=mcp_types.INTERNAL_ERROR, message=str(error))

    return answered


# ---- A server ----


def make_server(offer: McpOffer) -> _ServingV2:
    """The server of what is offered (`MakeServer`)."""
    return _ServingV2(offer)


_Context = ServerRequestContext[Any, Any]


class _ServingV2(ServedOffer):
    """`McpServing` over the package's low-level server."""

    def __init__(self, offer: McpOffer) -> None:
        super().__init__(offer)
        self._server: Server[Any] = Server(
            offer.name,
            version=offer.version,
            instructions=offer.instructions,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=self._listen,
        )

    async def run_stdio(self) -> None:
        async with stdio_server() as (reading, writing):
            await self._server.run(reading, writing, self._server.create_initialization_options())

    @asynccontextmanager
    async def http_app(self, hosts: Sequence[str], path: str) -> AsyncGenerator[ASGIApp]:
        safe = TransportSecuritySettings.model_validate(safe_names(hosts))
        manager = StreamableHTTPSessionManager(self._server, security_settings=safe)
        async with manager.run():
            try:
                yield one_path(path, manager.handle_request)
            finally:
                for outbox in self._outboxes:
                    outbox.close()

    async def _list_tools(self, context: _Context, given: Any) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult.model_validate(self._listed_tools())

    async def _call_tool(
        self, context: _Context, given: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        meta: Mapping[str, Any] = dict(context.meta or {})
        answer = await self._offer.call(given.name, given.arguments or {}, meta)
        return mcp_types.CallToolResult.model_validate(answer.as_json())

    async def _list_resources(self, context: _Context, given: Any) -> mcp_types.ListResourcesResult:
        return mcp_types.ListResourcesResult.model_validate(self._listed_resources())

    async def _list_templates(
        self, context: _Context, given: Any
    ) -> mcp_types.ListResourceTemplatesResult:
        return mcp_types.ListResourceTemplatesResult.model_validate(self._listed_templates())

    async def _read(
        self, context: _Context, given: mcp_types.ReadResourceRequestParams
    ) -> mcp_types.ReadResourceResult:
        try:
            read = await self._offer.read(given.uri)
        except NoSuchResourceError as error:
            raise MCPError(mcp_types.INVALID_PARAMS, str(error)) from None
        text = mcp_types.TextResourceContents(
            uri=given.uri, text=read.text, mime_type=read.mime_type
        )
        return mcp_types.ReadResourceResult(contents=[text])

    async def _listen(
        self, context: _Context, given: mcp_types.SubscriptionsListenRequestParams
    ) -> mcp_types.SubscriptionsListenResult:
        """A stream of notices, until the client ends it, by cancelling this, or the server."""
        number, wanted = context.request_id, given.notifications
        if number is None or len(self._outboxes) >= _LISTENERS:
            raise MCPError(mcp_types.INTERNAL_ERROR, "No more streams of notices can be held.")
        meta: Any = {SUBSCRIPTION_ID_META_KEY: number}

        async def send(what: str) -> None:
            for notice in _notices(what, wanted, meta):
                await context.session.send_notification(notice, related_request_id=number)

        outbox = Outbox()
        outbox.watched.update(wanted.resource_subscriptions or ())
        self._outboxes.add(outbox)
        try:
            honored = mcp_types.SubscriptionsAcknowledgedNotificationParams(
                notifications=wanted, _meta=meta
            )
            await context.session.send_notification(
                mcp_types.SubscriptionsAcknowledgedNotification(params=honored),
                related_request_id=number,
            )
            outbox.start(send)
            await outbox.closed()
        finally:
            outbox.close()
            self._outboxes.discard(outbox)
        return mcp_types.SubscriptionsListenResult(_meta=meta)

    async def _subscribe(
        self, context: _Context, given: mcp_types.SubscribeRequestParams
    ) -> mcp_types.EmptyResult:
        self._outbox(context).watched.add(given.uri)
        return mcp_types.EmptyResult()

    async def _unsubscribe(
        self, context: _Context, given: mcp_types.UnsubscribeRequestParams
    ) -> mcp_types.EmptyResult:
        self._outbox(context).watched.discard(given.uri)
        return mcp_types.EmptyResult()

    def _outbox(self, context: _Context) -> Outbox:
        """The outbox of a session of the older protocol."""
        connection = context.session._connection  # pyright: ignore[reportPrivateUsage] - see above
        kept = connection.state.get("outbox")
        if isinstance(kept, Outbox):
            return kept

        async def send(what: str) -> None:
            if what == TOOLS_CHANGED:
                await connection.send_tool_list_changed()
                await connection.send_resource_list_changed()
            else:
                await connection.send_resource_updated(what)

        outbox = connection.state["outbox"] = Outbox()
        outbox.start(send)
        self._outboxes.add(outbox)
        connection.exit_stack.callback(outbox.close)
        connection.exit_stack.callback(self._outboxes.discard, outbox)
        return outbox


def _notices(what: str, wanted: mcp_types.SubscriptionFilter, meta: Any) -> list[Any]:
    """What is sent for an entry of an outbox."""
    if what != TOOLS_CHANGED:
        updated = mcp_types.ResourceUpdatedNotificationParams(uri=what, _meta=meta)
        return [mcp_types.ResourceUpdatedNotification(params=updated)]
    notices: list[Any] = []
    params = mcp_types.NotificationParams(_meta=meta)
    if wanted.tools_list_changed:
        notices.append(mcp_types.ToolListChangedNotification(params=params))
    if wanted.resources_list_changed:
        notices.append(mcp_types.ResourceListChangedNotification(params=params))
    return notices
