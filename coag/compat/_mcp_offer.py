"""What of a server's tools is offered to a model now, and why not the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from autogen_core.tools import ToolOverride, ToolSchema

from ._mcp_definitions import ToolDefinition, shown_schema, unfit
from ._mcp_limits import McpLimits
from ._mcp_pins import QuarantinedTool


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
