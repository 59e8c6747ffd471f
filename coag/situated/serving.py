"""A workspace as an MCP server, which any MCP client can use.

Each operation is a tool `TOOL__OPERATION`, which returns its acknowledgement at once. Properties,
signals, manuals and what became of calls are resources at the addresses in `records`. A change of
a tool is sent as an update of `tool://TOOL/properties`: that reading has the end of the signal log
in it, so that it is new whenever a property or the log is. `tool://TOOL/signals` is sent, too.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from coag.errors import UnknownNameError
from coag.mcp import (
    McpAnswer,
    McpResource,
    McpServing,
    McpText,
    McpTool,
    NoSuchResourceError,
    http_server,
    sdk,
)

from .calls import CallOrigin, calling, lineage_of
from .operations import OperationFailedError
from .records import (
    CATALOGUE_URI,
    KEY_META,
    READ_MANUAL,
    READ_PROPERTIES,
    READERS,
    Catalogue,
    Wire,
    call_name,
    manual_uri,
    parts_of,
    place_of,
    properties_uri,
    signals_uri,
)
from .workspace import Workspace

_INSTRUCTIONS = (
    "Tools with a state of their own. An operation is acknowledged at once; what it leads to is "
    "seen in the tool's properties and signals, which are resources. Read a tool's manual first."
)


async def serve_stdio(workspace: Workspace, *, name: str = "workspace") -> None:
    """Serves the process that started this one, until it closes our standard input.

    Nothing else may write to standard output meanwhile. The server calls itself by the name.

    Raises:
        ConfigurationError: The mcp package is missing, or cannot be used.
    """
    async with _serving(workspace, name) as serving:
        await serving.run_stdio()


@asynccontextmanager
async def serve_http(
    workspace: Workspace,
    *,
    name: str = "workspace",
    host: str = "127.0.0.1",
    port: int = 0,
    hosts: Sequence[str] = (),
) -> AsyncGenerator[str]:
    """Serves by Streamable HTTP as long as it is held; gives the address.

    Args:
        workspace: What is served.
        name: How the server calls itself.
        host: The address that is listened on.
        port: The port; 0 takes a free one.
        hosts: Names that requests may use beside this machine's own, `NAME:PORT` or `NAME:*`;
            needed where `host` can be reached from other machines.

    Raises:
        ConfigurationError: The mcp package is missing, or `hosts` is.
        McpServerError: The address cannot be had.
    """
    async with (
        _serving(workspace, name) as serving,
        http_server(serving, host=host, port=port, hosts=hosts) as address,
    ):
        yield address


@asynccontextmanager
async def _serving(workspace: Workspace, name: str) -> AsyncGenerator[McpServing]:
    serving = sdk().make_server(_WorkspaceOffer(workspace, name))

    def notify(tool: str | None) -> None:
        if tool is None:
            serving.tools_changed()
            serving.updated(CATALOGUE_URI)
        else:
            serving.updated(properties_uri(tool))
            serving.updated(signals_uri(tool))

    unsubscribe = workspace.subscribe(notify)
    try:
        yield serving
    finally:
        unsubscribe()


_BY_TOOL = {
    "type": "object",
    "properties": {"tool": {"type": "string", "description": "The tool's id."}},
    "required": ["tool"],
    "additionalProperties": False,
}
_URIS = {READ_MANUAL: manual_uri, READ_PROPERTIES: properties_uri}
"""What the tools read that read: it is a resource, too."""


class _WorkspaceOffer:
    """What a workspace offers (`McpOffer`)."""

    version = "1"
    instructions = _INSTRUCTIONS

    def __init__(self, workspace: Workspace, name: str) -> None:
        self.name = name
        self._workspace = workspace

    def tools(self) -> list[McpTool]:
        """One for each operation of each tool, and those that read."""
        tools = [
            McpTool(name, described, _BY_TOOL, {"read_only": True})
            for name, described in READERS.items()
        ]
        for tool in self._workspace.catalogue():
            for one in tool.operations:
                words = (
                    one.description,
                    f"Preconditions: {one.preconditions}." if one.preconditions else "",
                    f"Effects: {one.effects}." if one.effects else "",
                    f"Manual: {manual_uri(tool.id)}",
                )
                hints = {"read_only": one.read_only, "destructive": one.critical}
                described = " ".join(filter(None, words))
                name = call_name(tool.id, one.name)
                tools.append(McpTool(name, described, one.parameters, hints))
        return tools

    def resources(self) -> list[McpResource]:
        """The catalogue, and what is read of each tool."""
        resources = [McpResource(CATALOGUE_URI, "catalogue", "What all tools are for")]
        for tool in self._workspace.catalogue():
            resources += [
                McpResource(properties_uri(tool.id), f"{tool.id} properties", "Its state now"),
                McpResource(signals_uri(tool.id), f"{tool.id} signals", "Its signals so far"),
                McpResource(
                    manual_uri(tool.id), f"{tool.id} manual", tool.description, "text/markdown"
                ),
            ]
        return resources

    def templates(self) -> list[McpResource]:
        """Signals after a cursor, and what became of a call."""
        return [
            McpResource("tool://{tool}/signals/{cursor}", "signals after a cursor"),
            McpResource("tool://{tool}/calls/{key}", "what became of a call"),
        ]

    async def call(
        self, name: str, arguments: Mapping[str, Any], meta: Mapping[str, Any]
    ) -> McpAnswer:
        if name in _URIS:
            uri = _URIS[name](str(arguments.get("tool", "")))
            try:
                return McpAnswer((await self.read(uri)).text)
            except NoSuchResourceError as error:
                return McpAnswer(str(error), is_error=True)
        tool, operation = parts_of(name) or ("", name)
        key = meta.get(KEY_META)
        key = key if isinstance(key, str) else None
        try:
            origin = CallOrigin(lineage=lineage_of(meta))
        except ValueError as error:
            return McpAnswer(str(error), is_error=True)
        try:
            with calling(origin):
                done = await self._workspace.invoke(tool, operation, arguments, key)
        except UnknownNameError as error:
            return McpAnswer(str(error), is_error=True)
        except OperationFailedError as error:
            return McpAnswer(str(error), {"mayHaveHappened": True}, is_error=True)
        data = done.model_dump(mode="json", by_alias=True)
        text = done.message or ("Accepted." if done.accepted else "Refused.")
        if done.data is not None:
            text += f"\n{json.dumps(data['data'], ensure_ascii=False)}"
        return McpAnswer(text, data, is_error=not done.accepted)

    async def read(self, uri: str) -> McpText:
        """What is at an address."""
        place = place_of(uri)
        if uri == CATALOGUE_URI:
            return _text(Catalogue(tools=self._workspace.catalogue()))
        if place is None:
            raise NoSuchResourceError(f"There is no resource {uri!r}.")
        tool, what, rest = place
        try:
            match what:
                case "properties" if rest is None:
                    return _text(self._workspace.properties(tool))
                case "signals":
                    return _text(self._workspace.signals(tool, rest))
                case "manual" if rest is None:
                    return McpText(self._workspace.manual(tool), "text/markdown")
                case "calls" if rest is not None:
                    return _text(self._workspace.became_of(tool, rest))
                case _:
                    raise NoSuchResourceError(f"There is no resource {uri!r}.")
        except (UnknownNameError, ValueError) as error:  # no such tool, or no cursor
            raise NoSuchResourceError(str(error)) from error


def _text(value: Wire) -> McpText:
    return McpText(value.model_dump_json(by_alias=True), "application/json")
