"""The tools of one server: listed, compared with what is pinned, and called."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from typing import Any

from autogen_core import CancellationToken
from autogen_core.tools import ToolOverride, ToolSchema

from coag.errors import ConfigurationError, UnknownNameError

from ._mcp_definitions import ToolDefinition
from ._mcp_errors import McpServerError, RefusedError
from ._mcp_limits import McpLimits
from ._mcp_offer import Offer, Selection, make_offer, refusal, select
from ._mcp_pins import PinBoard, QuarantinedTool
from ._mcp_results import McpToolResult, failed, read_result
from ._mcp_server import McpServer
from ._tool_effects import ToolEffects

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
