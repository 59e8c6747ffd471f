"""What tools there are, written down when that changes, and read again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from autogen_core.tools import ToolSchema

from coag.schema import ActionsListed, ActionSpec, Note, TraceRecord

from ._plain_json import plain_json

SCHEMAS_NOTE = "tools"
"""The sort of note in which schemas stand that say more, or less, than an `ActionSpec`."""
_IN_SPEC = ("name", "description", "parameters")
_SAME = True
"""Stands in that note for those of them that are as in the spec."""


class ListedTools:
    """The tools of all workbenches of a run, by name: the later of two with the same name counts.

    Args:
        write: Writes a record down.
    """

    def __init__(self, write: Callable[[TraceRecord], None]) -> None:
        self._write = write
        self._listed: dict[str, ToolSchema] = {}
        self._owners: dict[str, object] = {}

    def take(self, owner: object, schemas: Sequence[ToolSchema], at: datetime, cycle: int) -> None:
        """Takes a workbench's tools down, and writes all there are if they have changed.

        Args:
            owner: The workbench.
            schemas: Its tools now.
            at: The time.
            cycle: The turn that is going on.

        Raises:
            TraceError: They cannot be written.
        """
        of_others = {n: s for n, s in self._listed.items() if self._owners[n] is not owner}
        listed = of_others | {schema["name"]: schema for schema in schemas}
        self._owners |= {schema["name"]: owner for schema in schemas}
        if listed == self._listed:
            return
        specs = tuple(_spec(schema) for schema in listed.values())
        self._write(ActionsListed(at=at, cycle=cycle, specs=specs))
        pairs = zip(specs, listed.values(), strict=True)
        beside = {spec.name: _beside(spec, schema) for spec, schema in pairs}
        details = {name: told for name, told in beside.items() if told is not None}
        if details:
            text = "Schemas of tools that are not as their specs have them."
            self._write(Note(at=at, cycle=cycle, about=SCHEMAS_NOTE, text=text, details=details))
        self._listed = listed


def schemas_of(specs: Sequence[ActionSpec], beside: Mapping[str, Any]) -> list[ToolSchema]:
    """The schemas of recorded tools.

    Args:
        specs: The tools.
        beside: The details of the note about them; empty if there is none.
    """
    return [_restored(spec, beside.get(spec.name)) for spec in specs]


def _restored(spec: ActionSpec, told: Mapping[str, Any] | None) -> ToolSchema:
    plain = cast("dict[str, Any]", _plain(spec))
    if told is None:
        return _plain(spec)
    restored = {
        key: plain[key] if key in _IN_SPEC and value is _SAME else value
        for key, value in told.items()
    }
    return cast("ToolSchema", restored | {"name": spec.name})


def _spec(schema: ToolSchema) -> ActionSpec:
    told: dict[str, Any] = {
        "name": schema["name"],
        "description": plain_json(schema.get("description", "")),
    }
    if "parameters" in schema:
        told["parameters"] = plain_json(schema["parameters"])
    return ActionSpec.model_validate(told)


def _plain(spec: ActionSpec) -> ToolSchema:
    """The schema of most tools: what `FunctionTool` gives."""
    parameters = cast("Any", spec.parameters)
    return ToolSchema(
        name=spec.name, description=spec.description, parameters=parameters, strict=False
    )


def _beside(spec: ActionSpec, schema: ToolSchema) -> dict[str, Any] | None:
    """The keys of a schema with what differs from its spec; None if nothing does."""
    plain, own = cast("dict[str, Any]", _plain(spec)), cast("dict[str, Any]", plain_json(schema))
    if own == plain:
        return None
    return {
        key: _SAME if key in _IN_SPEC and plain[key] == value else value
        for key, value in own.items()
    }
