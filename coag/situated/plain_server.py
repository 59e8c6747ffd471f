"""A server of MCP tools that is not enhanced, as one tool: operations and properties, no more."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from coag.mcp import McpRefusedError, McpResource, McpSession, McpTool

from .records import (
    Acknowledgement,
    Cursor,
    OperationDescription,
    PropertyDescription,
    PropertyReading,
    ToolDescription,
)

T = TypeVar("T")
_EPOCH = "plain"
"""Such a server does not say when it loses its state."""
_PAGES = 32
_OPERATIONS = 128
_PROPERTIES = 32
"""Resources that are read as properties; further ones are left out."""
_CHARACTERS = 20_000
"""Of each property and each answer."""


class PlainServer:
    """What is known of such a server, and what its answers mean.

    Args:
        name: The id of the tool that it is.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._operations: dict[str, McpTool] = {}
        self._resources: dict[str, McpResource] = {}
        self._seen: Mapping[str, Any] | None = None
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
            # Milliseconds, so that it is higher than what another process has seen before.
            self._rev = max(self._rev + 1, time.time_ns() // 1_000_000)
        return PropertyReading(
            tool=self._name, epoch=_EPOCH, rev=self._rev, properties=now, cursor=self.cursor
        )

    def acknowledgement(self, answer: Mapping[str, Any]) -> Acknowledgement:
        """What a tool returned; an error of its own is one that was not accepted."""
        parts: list[Mapping[str, Any]] = answer.get("content") or []
        texts = (part.get("text") or f"[{part.get('type', 'content')}]" for part in parts)
        return Acknowledgement(
            accepted=not answer.get("isError"),
            message="\n".join(texts)[:_CHARACTERS],
            data=answer.get("structuredContent"),
            epoch=_EPOCH,
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
