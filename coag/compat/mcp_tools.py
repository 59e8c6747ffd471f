"""The tools of an MCP server as actions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from autogen_core import CancellationToken, ComponentModel
from autogen_core.models import ChatCompletionClient
from autogen_core.tools import ToolOverride, ToolSchema
from autogen_ext.tools.mcp import StdioServerParams, StreamableHttpServerParams
from pydantic import BaseModel, ConfigDict, Field

from coag.errors import ConfigurationError, UnknownNameError

from .mcp_server import McpServer
from .mcp_values import (
    McpLimits,
    McpServerError,
    McpToolResult,
    PinBoard,
    QuarantinedTool,
    RefusedError,
    ServerParams,
    ToolDefinition,
    dumpable,
    failed,
    read_result,
    shown_schema,
    unfit,
)
from .tools import ToolEffects

# ---- What of a server's tools is offered to a model now, and why not the rest ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The tools of a server that could be offered."""

    tools: Mapping[str, ToolDefinition] = field(default_factory=dict[str, ToolDefinition])
    """Their definitions, by their names at the server."""
    left_out: tuple[str, ...] = ()
    """One sentence for each tool that cannot be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The tools of a server as they were listed last."""

    selection: Selection = Selection()
    """What could be offered."""
    quarantined: Mapping[str, QuarantinedTool] = field(default_factory=dict[str, QuarantinedTool])
    """What of it is not, until somebody approves it."""
    schemas: tuple[ToolSchema, ...] = ()
    """What a model is told."""
    own_names: Mapping[str, str] = field(default_factory=dict[str, str])
    """From the name that a model is told to the one at the server."""
    left_out: tuple[str, ...] = ()
    """One sentence for each tool that cannot be offered."""


def select(found: Iterable[ToolDefinition], limits: McpLimits) -> Selection:
    """The tools that have a name of their own, are no giants, and are not too many."""
    tools: dict[str, ToolDefinition] = {}
    left_out: list[str] = []
    beyond = 0
    for definition in found:
        why = unfit(definition, limits)
        if why is not None:
            left_out.append(f"Left out: {why}.")
        elif definition.name in tools:
            left_out.append(f"Left out: a second tool with the name {definition.name!r}.")
        elif len(tools) == limits.tools:
            beyond += 1
        else:
            tools[definition.name] = definition
    if beyond:
        left_out.append(f"Left out: {beyond} tools beyond the first {limits.tools}.")
    return Selection(tools=tools, left_out=tuple(left_out))


def make_offer(
    selection: Selection,
    quarantined: Mapping[str, QuarantinedTool],
    overrides: Mapping[str, ToolOverride],
    limits: McpLimits,
) -> Offer:
    """What is left to offer of the selection, under the names and descriptions given for it."""
    schemas: dict[str, ToolSchema] = {}
    own_names: dict[str, str] = {}
    left_out = list(selection.left_out)
    for name, definition in selection.tools.items():
        if name in quarantined:
            continue
        schema = shown_schema(definition, overrides.get(name), limits)
        if schema["name"] in schemas:
            left_out.append(f"Left out: {name!r}, a second tool shown as {schema['name']!r}.")
            continue
        schemas[schema["name"]] = schema
        own_names[schema["name"]] = name
    return Offer(
        selection=selection,
        quarantined=quarantined,
        schemas=tuple(schemas.values()),
        own_names=own_names,
        left_out=tuple(left_out),
    )


def refusal(offer: Offer, name: str, overrides: Mapping[str, ToolOverride]) -> str:
    """Why a tool that is not offered cannot be called; no word of what the server says of it."""
    shown = {override.name or own: own for own, override in overrides.items()}
    held = offer.quarantined.get(shown.get(name, name))
    if held is None:
        return f"There is no tool {name!r}. Nothing was done."
    return (
        f"Tool {name!r} is quarantined: {held.changed}. Nothing was done. A person can look at "
        f"`quarantined[{held.name!r}].diff` of the workbench, and then "
        f"`await approve({held.name!r})`."
    )


# ---- A pinned workbench as a component, and which servers it can be for ----


class PinnedMcpConfig(BaseModel):
    """A `PinnedMcpWorkbench` as a component: no secret, no pins, only where they are."""

    model_config = ConfigDict(extra="forbid")

    server_params: StdioServerParams | StreamableHttpServerParams = Field(discriminator="type")
    """How the server is reached; values of `env` and `headers` are references `${NAME}`."""
    pins: str | None = None
    """The file of pins."""
    trust_first_use: bool = True
    """Whether what the server offers first is trusted without approval."""
    limits: McpLimits = McpLimits()
    """The bounds."""
    tool_overrides: dict[str, ToolOverride] = {}
    """Other names and descriptions, by the tools' names at the server."""
    model_client: ComponentModel | dict[str, Any] | None = None
    """The client that answers the server's requests for sampling."""


def config_of(
    params: ServerParams,
    board: PinBoard,
    limits: McpLimits,
    tool_overrides: dict[str, ToolOverride],
    model_client: ChatCompletionClient | None,
) -> PinnedMcpConfig:
    """How a workbench of these parts is written down.

    Raises:
        ConfigurationError: The parameters hold a secret that cannot be left out.
    """
    return PinnedMcpConfig(
        server_params=dumpable(params),
        pins=str(board.path) if board.path else None,
        trust_first_use=board.trust_first_use,
        limits=limits,
        tool_overrides=tool_overrides,
        model_client=model_client.dump_component() if model_client else None,
    )


def settings_of(config: PinnedMcpConfig) -> dict[str, Any]:
    """What the workbench's constructor takes besides the server."""
    client = config.model_client
    return {
        "pins": config.pins,
        "trust_first_use": config.trust_first_use,
        "limits": config.limits,
        "tool_overrides": config.tool_overrides,
        "model_client": ChatCompletionClient.load_component(client) if client else None,
    }


def supported(params: object) -> ServerParams:
    """The parameters, if they are of a transport that is supported.

    Raises:
        ConfigurationError: They are not.
    """
    if isinstance(params, StdioServerParams | StreamableHttpServerParams):
        return params
    raise ConfigurationError(
        f"{type(params).__name__} is no server that can be used here: give StdioServerParams, "
        "StreamableHttpServerParams (which took the place of SSE), or a McpWorkbench with them."
    )


def limits_of(params: ServerParams) -> McpLimits:
    """The default bounds, with the read time-out of the parameters where one was given."""
    own = "read_timeout_seconds" if isinstance(params, StdioServerParams) else "sse_read_timeout"
    if own not in params.model_fields_set:
        return McpLimits()
    return McpLimits(call_seconds=getattr(params, own))


# ---- The tools of one server: listed, compared with what is pinned, and called ----


_LOG = logging.getLogger("coag.compat.mcp")


class ServerTools:
    """What a server offers, as far as it is trusted.

    Args:
        server: The server.
        board: What is trusted.
        overrides: Other names and descriptions, by the tools' names at the server.
        limits: The bounds.
    """

    def __init__(
        self,
        server: McpServer,
        board: PinBoard,
        overrides: Mapping[str, ToolOverride],
        limits: McpLimits,
    ) -> None:
        self.offer: Offer | None = None
        """What was found at the last listing; None before the first."""
        self._server = server
        self._board = board
        self._overrides = overrides
        self._limits = limits

    @property
    def quarantined(self) -> dict[str, QuarantinedTool]:
        """What is not trusted, by name, as of the last listing."""
        return dict(self.offer.quarantined) if self.offer else {}

    async def approve(self, name: str, digest: str | None) -> None:
        """Trusts a quarantined tool as it was listed last.

        Raises:
            UnknownNameError: No such tool is quarantined.
            ConfigurationError: Its digest is another one, or the pins cannot be saved.
        """
        held = self.quarantined
        if name not in held or self.offer is None:
            raise UnknownNameError("quarantined tool", name, held)
        definition = held.pop(name).new
        if digest not in (None, definition.digest):
            raise ConfigurationError(
                f"Tool {name!r} changed again: its digest is {definition.digest!r} now, not "
                f"{digest!r}. Look at its diff once more."
            )
        selection = self.offer.selection
        await asyncio.to_thread(self._board.approve, definition)
        self.offer = self._offered(selection, held)

    async def schemas(self) -> list[ToolSchema]:
        """What a model is told; what was listed last where listing is of no use now.

        Raises:
            McpServerError: The server was never listed and cannot be.
            ConfigurationError: A variable of the environment is missing, or the pins are unusable.
        """
        if self.offer is not None and self._server.busy:
            return list(self.offer.schemas)
        try:
            offer = await self.listed()
        except McpServerError as error:
            if self.offer is None:
                raise
            _LOG.warning("%s Its tools are shown as they were listed last.", error)
            offer = self.offer
        return list(offer.schemas)

    def effects(self, name: str) -> ToolEffects:
        """What the server says of the effects of a tool that is offered under this name."""
        offer = self.offer
        own = offer.own_names.get(name) if offer else None
        hints = offer.selection.tools[own].hints if offer and own else {}
        return ToolEffects(
            read_only=hints.get("read_only", False), idempotent=hints.get("idempotent", False)
        )

    async def listed(self) -> Offer:
        """What the server offers now, judged.

        Raises:
            McpServerError: It cannot be listed.
            ConfigurationError: As for `schemas`.
        """
        await self._server.connection()
        self._server.changed = False  # a change that comes during the listing counts
        found: list[ToolDefinition] = []
        cursor: str | None = None
        for _ in range(self._limits.tools):
            page, cursor = await self._page(cursor)
            found += page
            if cursor is None or len(found) > self._limits.tools:
                break
        selection = select(found, self._limits)
        held = await asyncio.to_thread(self._board.judge, selection.tools)
        for name in held.keys() - self.quarantined.keys():
            told = (self._server.label, name, held[name].changed)
            _LOG.warning("MCP server %r: tool %r is quarantined: %s.", *told)
        self.offer = self._offered(selection, held)
        return self.offer

    async def _page(self, cursor: str | None) -> tuple[list[ToolDefinition], str | None]:
        try:
            return await self._server.request(lambda session: session.page_of_tools(cursor))
        except RefusedError as error:
            raise McpServerError(self._server.label, f"did not list its tools: {error}") from error

    def _offered(self, selection: Selection, held: Mapping[str, QuarantinedTool]) -> Offer:
        return make_offer(selection, held, self._overrides, self._limits)

    async def call(self, name: str, arguments: dict[str, Any]) -> McpToolResult:
        """Calls a tool, if it is trusted; every failure is a result."""
        try:
            await self._server.connection()
            offer = self.offer
            if offer is None or (self._server.changed and not self._server.busy):
                offer = await self.listed()
            own = offer.own_names.get(name)
            if own is None:
                return failed(name, refusal(offer, name, self._overrides))
            returned = await self._server.request(lambda session: session.call_tool(own, arguments))
        except McpServerError as error:
            return failed(name, str(error), may_have_happened=error.may_have_happened)
        except ConfigurationError as error:
            return failed(name, f"{error} Nothing was done.")
        except RefusedError as error:
            text = f"The server did not accept {name}, or its answer is no MCP: {error}"
            return failed(name, text, may_have_happened=not error.understood)
        self._server.succeeded()
        return read_result(name, returned, self._limits)


async def cancellable(
    name: str, call: Coroutine[Any, Any, McpToolResult], token: CancellationToken | None
) -> McpToolResult:
    """The result of a call, or one that says that the token cancelled it.

    A stock agent hangs where a workbench raises. That this very task is cancelled is raised.
    """
    if token is not None and token.is_cancelled():
        call.close()
        return failed(name, f"{name} was cancelled before it began. Nothing was done.")
    calling = asyncio.create_task(call)
    if token is not None:
        token.link_future(calling)
    try:
        await asyncio.wait({calling})
    finally:
        calling.cancel()
    if calling.cancelled():
        text = f"{name} was cancelled while it ran; it may have been done all the same."
        return failed(name, text, may_have_happened=True)
    return calling.result()
