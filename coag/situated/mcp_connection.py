"""A connection to a server of tools over MCP: enhanced ones, and any other.

Whatever a notice said or did not say, the truth is read. A connection that was lost is made again
by the next call, or, while a tool is in focus, by a task that waits for its end; then everything
may be new, and the hint says so.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from uuid import uuid4

from pydantic import ValidationError

from coag._util.timeouts import end_task
from coag.errors import ConfigurationError
from coag.mcp import (
    McpBounds,
    McpClient,
    McpNotice,
    McpRefusedError,
    McpResource,
    McpServerError,
    McpSession,
    McpTool,
    supported,
)
from coag.schema import Reconciliation

from .calls import LINEAGE_META, PAGE, current_call
from .connection import Hint, ToolConnectionError
from .records import (
    CATALOGUE_URI,
    KEY_META,
    Acknowledgement,
    CallStatus,
    Catalogue,
    Cursor,
    OperationDescription,
    PropertyDescription,
    PropertyReading,
    SignalPage,
    ToolDescription,
    call_name,
    call_uri,
    manual_uri,
    place_of,
    properties_uri,
    signals_uri,
)

T = TypeVar("T")
_EPOCH = "plain"
"""Of signals that never come: such a server does not say when it loses its state."""
_PAGES = 32
_OPERATIONS = 128
_PROPERTIES = 32
"""Resources that are read as properties; further ones are left out."""
_CHARACTERS = 20_000
"""Of each property and each answer."""


class PlainServer:
    """What is known of such a server, the tool `name`, and what its answers mean."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._operations: dict[str, McpTool] = {}
        self._resources: dict[str, McpResource] = {}
        self._seen: Mapping[str, Any] | None = None
        self._epoch = uuid4().hex
        """Revisions are counted here, so those of another process are no older and no newer."""
        self._rev = 0

    @property
    def cursor(self) -> str:
        """The end of the signals that it never sends."""
        return str(Cursor(_EPOCH, 0))

    @property
    def uris(self) -> frozenset[str]:
        """Where its properties are read."""
        return frozenset(one.uri for one in self._resources.values())

    def own_name(self, operation: str) -> str:
        """What the server calls an operation; the same where it is not known."""
        known = self._operations.get(operation)
        return known.name if known else operation

    async def describe(self, session: McpSession) -> ToolDescription:
        """The tool, by what the server lists now."""
        tools = await _listed(session.page_of_tools, _OPERATIONS) if session.has_tools else []
        resources: list[McpResource] = []
        if session.has_resources:
            resources = await _listed(session.page_of_resources, _PROPERTIES)
        self._operations = _named({tool.name: tool for tool in tools})
        self._resources = _named({one.name: one for one in resources})
        return ToolDescription(
            id=self._name,
            description=f"Tools of the MCP server {self._name}",
            operations=tuple(
                OperationDescription(
                    name=name,
                    description=tool.description,
                    parameters=tool.parameters,
                    read_only=tool.hints.get("read_only", False),
                )
                for name, tool in self._operations.items()
            ),
            properties=tuple(
                PropertyDescription(name=name, description=one.description or one.uri)
                for name, one in self._resources.items()
            ),
            has_manual=False,
        )

    async def properties(self, session: McpSession) -> PropertyReading:
        """The resources now; the revision rises when one has changed since the last reading."""
        read = await asyncio.gather(
            *(_content(session, one.uri) for one in self._resources.values())
        )
        now = dict(zip(self._resources, read, strict=True))
        if now != self._seen:
            self._seen = now
            self._rev += 1
        return PropertyReading(
            tool=self._name, epoch=self._epoch, rev=self._rev, properties=now, cursor=self.cursor
        )

    def acknowledgement(self, answer: Mapping[str, Any]) -> Acknowledgement:
        """What a tool returned; an error of its own is one that was not accepted."""
        parts: list[Mapping[str, Any]] = answer.get("content") or []
        texts = (part.get("text") or f"[{part.get('type', 'content')}]" for part in parts)
        return Acknowledgement(
            accepted=not answer.get("isError"),
            message="\n".join(texts)[:_CHARACTERS],
            data=answer.get("structuredContent"),
            epoch=self._epoch,
            rev=self._rev,
            cursor=self.cursor,
        )


async def _listed(
    page_of: Callable[[str | None], Awaitable[tuple[list[T], str | None]]], most: int
) -> list[T]:
    """What a server lists page by page, as far as it is wanted."""
    found: list[T] = []
    cursor = None
    for _ in range(_PAGES):
        page, cursor = await page_of(cursor)
        found += page
        if cursor is None or len(found) >= most:
            break
    return found[:most]


async def _content(session: McpSession, uri: str) -> Any:
    """What a resource says: JSON where it is, else text; why, where it cannot be read."""
    try:
        read = await session.read_resource(uri)
    except McpRefusedError as error:
        return f"[cannot be read: {error}]"
    text = read.text[:_CHARACTERS]
    try:
        return json.loads(text) if "json" in read.mime_type else text
    except ValueError:
        return text


def _named(found: Mapping[str, T]) -> dict[str, T]:
    """By names that operations and properties may have, each once."""
    named: dict[str, T] = {}
    for own, one in found.items():
        plain = re.sub(r"[^A-Za-z0-9]+", "_", own).strip("_") or "x"
        name = plain if plain[0].isalpha() else f"x_{plain}"
        number = 2
        while name in named:
            name, number = f"{plain}_{number}", number + 1
        named[name] = one
    return named


_LOG = logging.getLogger(__name__)
ResultT = TypeVar("ResultT")

_BOUNDS = McpBounds(call_seconds=60, start_seconds=30, restarts=3, pause_seconds=1)
_READ_SECONDS = 10.0
"""Within which something is read; a server that takes longer counts as one that hangs."""
_FAULTS = (McpServerError, McpRefusedError, ConfigurationError)
"""What a client raises that cannot reach or understand its server."""
_BACKOFF_SECONDS = (0.1, 5.0)
"""The first pause before a lost connection is made again, and the longest."""


class McpToolConnection:
    """A connection to an MCP server. It is a `ToolConnection`.

    A server that is not enhanced is one tool with this connection's name: each of its MCP tools is
    an operation, each of its resources a property, and it has neither signals nor a manual.

    Args:
        params: How the server is reached: `StdioServerParams` or `StreamableHttpServerParams` of
            `coag.mcp` or of AutoGen.
        name: How it is called; unique within an agent.
        bounds: How long is waited, and how often it is started; None for the defaults.

    Raises:
        ConfigurationError: The server is reached by another transport.
    """

    def __init__(self, params: object, name: str, *, bounds: McpBounds | None = None) -> None:
        self.name = name
        self.params = supported(params)
        """How the server is reached."""
        self._client = McpClient(self.params, bounds=bounds or _BOUNDS, on_notice=self._noticed)
        self._plain: PlainServer | None = None
        self._is_known = False
        """Whether it is known if the server is enhanced."""
        self._focus: frozenset[str] = frozenset()
        self._hint: Hint | None = None
        self._keeper: asyncio.Task[None] | None = None

    # ---- What is read ----

    async def catalogue(self) -> Sequence[ToolDescription]:
        """See `ToolConnection.catalogue`."""
        async with self._translated():
            enhanced = await self._read(_catalogue)
            self._is_known = True
            if enhanced is not None:
                self._plain = None
                return Catalogue.model_validate_json(enhanced).tools
            if self._plain is None:
                self._plain = PlainServer(self.name)
            return (await self._read(self._plain.describe),)

    async def manual(self, tool: str) -> str:
        """See `ToolConnection.manual`."""
        async with self._translated():
            if await self._plain_server() is not None:
                raise ToolConnectionError(self.name, f"{tool!r} has no manual.")
            return await self._text(manual_uri(tool))

    async def read_properties(self, tool: str) -> PropertyReading:
        """See `ToolConnection.read_properties`."""
        async with self._translated():
            if plain := await self._plain_server():
                return await self._read(plain.properties)
            return PropertyReading.model_validate_json(await self._text(properties_uri(tool)))

    async def read_signals(self, tool: str, after: str | None, limit: int = PAGE) -> SignalPage:
        """See `ToolConnection.read_signals`."""
        async with self._translated():
            if plain := await self._plain_server():
                return SignalPage(cursor=plain.cursor)
            page = SignalPage.model_validate_json(await self._text(signals_uri(tool, after)))
        if len(page.events) <= limit:
            return page
        events = page.events[:limit]
        return SignalPage(events=events, cursor=events[-1].cursor, truncated=page.truncated)

    async def became_of(self, tool: str, key: str) -> Reconciliation:
        """See `ToolConnection.became_of`."""
        async with self._translated():
            if await self._plain_server() is not None:
                return "unknown"
            return CallStatus.model_validate_json(await self._text(call_uri(tool, key))).status

    # ---- What is done ----

    async def invoke(
        self, tool: str, operation: str, arguments: Mapping[str, Any], key: str
    ) -> Acknowledgement:
        """See `ToolConnection.invoke`."""
        async with self._translated():
            plain = await self._plain_server()
            name = plain.own_name(operation) if plain else call_name(tool, operation)
            meta: dict[str, Any] = {KEY_META: key}
            if lineage := current_call().lineage:
                meta[LINEAGE_META] = list(lineage)
            answer = await self._client.request(
                lambda session: session.call_tool(name, arguments, meta)
            )
            self._client.succeeded()
            if plain:
                return plain.acknowledgement(answer)
            return self._acknowledgement(name, answer)

    def _acknowledgement(self, name: str, answer: Mapping[str, Any]) -> Acknowledgement:
        """What an enhanced tool answered."""
        data: Any = answer.get("structuredContent") or {}
        texts = (part.get("text", "") for part in answer.get("content", ()))
        said = " ".join(texts)[:500]
        if "accepted" not in data:
            open_end = bool(data.get("mayHaveHappened")) or not answer.get("isError")
            problem = f"{name!r} was not acknowledged: {said or 'it answered nothing'}"
            raise ToolConnectionError(self.name, problem, may_have_happened=open_end)
        try:
            return Acknowledgement.model_validate(data)
        except ValidationError as error:
            problem = f"{name!r} gave an acknowledgement that cannot be read: {error}"
            raise ToolConnectionError(self.name, problem, may_have_happened=True) from error

    # ---- What is watched ----

    async def focus(self, tools: AbstractSet[str]) -> None:
        """See `ToolConnection.focus`; a server that does not answer now gets it when it does."""
        self._focus = frozenset(tools)
        if self._focus and (self._keeper is None or self._keeper.done()):
            self._keeper = asyncio.create_task(self._keep(), name=f"coag.mcp.{self.name}")
        if not self._focus:
            await self._stop_keeping()
        async with self._translated():
            await self._watch()

    def on_hint(self, hint: Hint) -> None:
        """Sets who is called when something may be new."""
        self._hint = hint

    async def close(self) -> None:
        """Ends the connection; the server stays, unless it was started by it."""
        await self._stop_keeping()
        await self._client.close()

    async def _stop_keeping(self) -> None:
        if self._keeper is not None:
            await end_task(self._keeper)
            self._keeper = None

    async def _keep(self) -> None:
        """Makes the connection again whenever it ends, for as long as tools are in focus."""
        pause, longest = _BACKOFF_SECONDS
        while True:
            try:
                connection = await self._client.connection()
                await self._watch()
            except (ToolConnectionError, *_FAULTS) as error:
                _LOG.debug("The tools of %r cannot be watched now: %s", self.name, error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, longest)
                continue
            pause = _BACKOFF_SECONDS[0]
            self._tell(None)
            await connection.over()

    async def _watch(self) -> None:
        """Has the server say when what is in focus is new, where it can."""
        plain = await self._plain_server()
        uris = frozenset(map(properties_uri, self._focus))
        if plain is not None:
            uris = plain.uris if self.name in self._focus else frozenset[str]()

        async def watch(session: McpSession) -> None:
            if session.tells_updates:
                await session.watch(uris)

        await self._client.request(watch, _READ_SECONDS)

    def _noticed(self, notice: McpNotice) -> None:
        if notice.kind == "updated" and self._plain is None:
            place = place_of(notice.uri or "")
            self._tell(place[0] if place else None)
        elif notice.kind == "updated":
            self._tell(self.name)
        elif notice.kind in ("tools", "missed"):
            self._tell(None)

    def _tell(self, tool: str | None) -> None:
        if self._hint is not None and (tool is None or tool in self._focus):
            self._hint(tool)

    # ---- How it is asked ----

    async def _plain_server(self) -> PlainServer | None:
        """What is known of a server that is not enhanced; None of one that is."""
        if not self._is_known:
            await self.catalogue()
        return self._plain

    async def _text(self, uri: str) -> str:
        return (await self._read(lambda session: session.read_resource(uri))).text

    async def _read(self, ask: Callable[[McpSession], Awaitable[ResultT]]) -> ResultT:
        """What is read: asked again if the connection broke meanwhile, since nothing is done."""
        try:
            read = await self._client.request(ask, _READ_SECONDS)
        except McpServerError as error:
            if not error.may_have_happened:
                raise
            read = await self._client.request(ask, _READ_SECONDS)
        self._client.succeeded()
        return read

    @asynccontextmanager
    async def _translated(self) -> AsyncGenerator[None]:
        try:
            yield
        except (McpServerError, ConfigurationError) as error:
            may = isinstance(error, McpServerError) and error.may_have_happened
            raise ToolConnectionError(self.name, str(error), may_have_happened=may) from error
        except McpRefusedError as error:
            raise ToolConnectionError(
                self.name, str(error), may_have_happened=not error.understood
            ) from error
        except ValidationError as error:
            raise ToolConnectionError(self.name, f"gave what cannot be read: {error}") from error


async def _catalogue(session: McpSession) -> str | None:
    """The catalogue of an enhanced server; None of another."""
    if not session.has_resources:
        return None
    try:
        return (await session.read_resource(CATALOGUE_URI)).text
    except McpRefusedError as error:
        if not error.understood:
            raise
        return None
