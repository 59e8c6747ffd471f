"""Workbenches that show what their tools do."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Protocol, TypeGuard, cast, runtime_checkable

from autogen_core import CancellationToken
from autogen_core.tools import StaticWorkbench, ToolOverride, Workbench


@runtime_checkable
class Streams(Protocol):
    """A workbench that shows what its tools do (AutoGen's `StreamWorkbench`, not public)."""

    def call_tool_stream(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> AsyncGenerator[Any, None]: ...


def streams(workbench: Workbench, name: str) -> TypeGuard[Streams]:
    """Whether a call of this tool is to be made as a stream."""
    return isinstance(workbench, Streams) and not _renamed(workbench, name)


def _renamed(workbench: Workbench, name: str) -> bool:
    """Whether a tool has its name from an override.

    AutoGen's StaticStreamWorkbench knows such names only where it does not stream.
    """
    if not isinstance(workbench, StaticWorkbench):
        return False
    overrides = cast("Mapping[str, ToolOverride]", getattr(workbench, "_tool_overrides", {}))
    return any(given.name == name != tool for tool, given in overrides.items())
