"""What a tool's author declares of its effects: `@tool(read_only=True)`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from autogen_core.tools import BaseTool, StaticWorkbench, Workbench

from coag.errors import ConfigurationError
from coag.schema import Reconciliation, UnsettledAction

ToolT = TypeVar("ToolT")
Reconcile = Callable[[UnsettledAction], Reconciliation | Awaitable[Reconciliation]]
"""Finds out what became of an action: it looks, and changes nothing. A plain function is run in a
thread of its own."""
_EFFECTS = "__coag_effects__"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEffects:
    """What is declared of a tool's effects; by default nothing, so anything is possible."""

    read_only: bool = False
    idempotent: bool = False
    reconcile: Reconcile | None = None


def tool(
    *, read_only: bool = False, idempotent: bool = False, reconcile: Reconcile | None = None
) -> Callable[[ToolT], ToolT]:
    """Declares a tool's effects; the function or AutoGen tool itself stays what it is.

    Example:
        `@tool(read_only=True)` above a function that only looks something up.

    Args:
        read_only: It changes nothing outside. Calls of one answer run side by side, and one that
            gave no answer may simply be repeated.
        idempotent: Running it again with the same arguments does no more than running it once, so
            a call of unknown outcome may be repeated.
        reconcile: Is asked what became of a call of unknown outcome, before the model is.

    Raises:
        ConfigurationError: What is declared cannot be kept with this tool.
    """
    if reconcile is not None and not callable(reconcile):
        raise ConfigurationError(
            f"@tool(reconcile={reconcile!r:.80}): give a function that takes the action and "
            "answers 'happened', 'did_not_happen' or 'unknown'."
        )
    effects = ToolEffects(read_only=read_only, idempotent=idempotent, reconcile=reconcile)

    def declare(declared: ToolT) -> ToolT:
        try:
            setattr(declared, _EFFECTS, effects)
        except AttributeError as error:
            raise ConfigurationError(
                f"@tool cannot mark {declared!r}: give a function or a tool object."
            ) from error
        return declared

    return declare


def effects_of(tool: object) -> ToolEffects:
    """What was declared of a tool, or of the function that it was made of."""
    for each in (tool, getattr(tool, "_func", None)):
        declared = getattr(each, _EFFECTS, None)
        if isinstance(declared, ToolEffects):
            return declared
    return _NOTHING


def effects_in(workbench: Workbench, name: str) -> ToolEffects:
    """What is declared of a workbench's tool: by an MCP server's hints, or of the tool itself."""
    declared = getattr(workbench, "effects", None)
    if callable(declared):
        effects = declared(name)
        return effects if isinstance(effects, ToolEffects) else _NOTHING
    tool = tool_in(workbench, name)
    return _NOTHING if tool is None else effects_of(tool)


def tool_in(workbench: Workbench, name: str) -> BaseTool[Any, Any] | None:
    """The tool object behind a name of a workbench that holds its tools itself."""
    if not isinstance(workbench, StaticWorkbench):
        return None
    own = workbench._override_name_to_original.get(name, name)  # pyright: ignore[reportPrivateUsage] - AutoGen tells it nowhere else
    tools = workbench._tools  # pyright: ignore[reportPrivateUsage] - as above
    return next((tool for tool in tools if tool.name == own), None)


_NOTHING = ToolEffects()
