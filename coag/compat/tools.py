"""What a tool is, and what its author declares of its effects: `@tool(read_only=True)`."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from autogen_core.tools import BaseTool, FunctionTool, StaticWorkbench, Workbench

from coag._util.json_schemas import schema_fault
from coag._util.text import well_formed
from coag.cycle import IDEMPOTENCY_KEY
from coag.errors import ConfigurationError
from coag.schema import ActionSpec, Reconciliation, UnsettledAction

ToolT = TypeVar("ToolT")
Tool = BaseTool[Any, Any] | Callable[..., Any]
"""An AutoGen tool, or a function with annotated arguments and a docstring."""
Reconcile = Callable[[UnsettledAction], Reconciliation | Awaitable[Reconciliation]]
"""Finds out what became of an action: it looks, and changes nothing. A plain function is run in a
thread of its own."""
_EFFECTS = "__coag_effects__"
_NAME = re.compile(r"\S{1,128}")
UNUSABLE_SCHEMA = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""What `spec_of` raises for a schema that cannot be offered."""


class StatelessWorkbench(Workbench):
    """A workbench that is neither started nor stopped and holds no state: its tools may."""

    async def start(self) -> None:
        """Nothing is to be started."""

    async def stop(self) -> None:
        """Nothing is to be stopped: whoever made connections closes them."""

    async def reset(self) -> None:
        """There is no state here."""

    async def save_state(self) -> Mapping[str, Any]:
        """Nothing."""
        return {}

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Nothing to load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEffects:
    """What is declared of a tool's effects; by default nothing, so anything is possible."""

    read_only: bool = False
    idempotent: bool = False
    critical: bool = False
    reconcile: Reconcile | None = None


_UNDECLARED = ToolEffects()


def tool(
    *,
    read_only: bool = False,
    idempotent: bool = False,
    critical: bool = False,
    reconcile: Reconcile | None = None,
) -> Callable[[ToolT], ToolT]:
    """Declares a tool's effects; the function or AutoGen tool itself stays what it is.

    Example:
        `@tool(read_only=True)` above a function that only looks something up.

    Args:
        read_only: It changes nothing outside. Calls of one answer run side by side, and one that
            gave no answer may simply be repeated.
        idempotent: Running it again with the same arguments does no more than running it once, so
            a call of unknown outcome may be repeated.
        critical: What it does cannot be undone, or costs money; `depth="auto"` then thinks twice.
        reconcile: Is asked what became of a call of unknown outcome, before the model is.

    Raises:
        ConfigurationError: What is declared cannot be kept with this tool.
    """
    if reconcile is not None and not callable(reconcile):
        raise ConfigurationError(
            f"@tool(reconcile={reconcile!r:.80}): give a function that takes the action and "
            "answers 'happened', 'did_not_happen' or 'unknown'."
        )
    effects = ToolEffects(
        read_only=read_only, idempotent=idempotent, critical=critical, reconcile=reconcile
    )

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
    return _UNDECLARED


def effects_in(workbench: Workbench, name: str) -> ToolEffects:
    """What is declared of a workbench's tool: by an MCP server's hints, or of the tool itself."""
    declared = getattr(workbench, "effects", None)
    if callable(declared):
        effects = declared(name)
        return effects if isinstance(effects, ToolEffects) else _UNDECLARED
    return effects_of(tool_in(workbench, name))


def tool_in(workbench: Workbench, name: str) -> BaseTool[Any, Any] | None:
    """The tool object behind a name of a workbench that holds its tools itself."""
    if not isinstance(workbench, StaticWorkbench):
        return None
    own = workbench._override_name_to_original.get(name, name)  # pyright: ignore[reportPrivateUsage] - AutoGen has no public way
    tools = workbench._tools  # pyright: ignore[reportPrivateUsage] - as above
    return next((tool for tool in tools if tool.name == own), None)


def as_tool(tool: Tool) -> BaseTool[Any, Any]:
    """The tool, or the function as one."""
    if isinstance(tool, BaseTool):
        return cast("BaseTool[Any, Any]", tool)
    if callable(tool):
        return FunctionTool(tool, description=(tool.__doc__ or "").strip())
    raise ConfigurationError(
        f"Unsupported tool type: {tool!r} is no tool. Give an AutoGen BaseTool, or a function with "
        "annotated arguments."
    )


# ---- A tool's schema as an action ----


def spec_of(schema: Mapping[str, Any], effects: ToolEffects) -> ActionSpec:
    """The tool as an action, without the idempotency key, which the guard gives."""
    name = schema["name"]
    parameters: Any = schema.get("parameters") or {"type": "object", "properties": {}}
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of at most 128 characters without blanks.")
    text = well_formed(json.dumps(parameters, allow_nan=False, ensure_ascii=False))
    plain: Any = json.loads(text)
    if not isinstance(plain, dict) or not isinstance(plain.get("properties", {}), dict):  # pyright: ignore[reportUnknownMemberType] - JSON
        raise ValueError(f"the parameters of {name!r} are no JSON Schema of an object.")
    if fault := schema_fault(text):
        raise ValueError(f"{name!r} cannot be checked: {fault}.")
    key = cast("dict[str, Any]", plain).get("properties", {}).get(IDEMPOTENCY_KEY)
    if key is not None and key.get("type", "string") != "string":
        raise ConfigurationError(
            f"Tool {name!r} cannot be offered: its parameter {IDEMPOTENCY_KEY!r} is of type "
            f"{key['type']!r}, and the key is a text. Declare it as str."
        )
    return ActionSpec(
        name=well_formed(name),
        description=well_formed(str(schema.get("description") or "")),
        parameters=without_key(cast("dict[str, Any]", plain)),
        idempotency_key=key is not None,
        read_only=effects.read_only,
        idempotent=effects.idempotent,
        critical=effects.critical,
    )


def without_key(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a tool as a model sees them, without the idempotency key."""
    properties: Mapping[str, Any] = parameters.get("properties", {})
    if IDEMPOTENCY_KEY not in properties:
        return parameters
    required: Sequence[str] = parameters.get("required", ())
    return {
        **parameters,
        "properties": {name: properties[name] for name in properties if name != IDEMPOTENCY_KEY},
        "required": [name for name in required if name != IDEMPOTENCY_KEY],
    }
