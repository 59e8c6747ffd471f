"""Which tools there are now, and whose each one is."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, cast

from autogen_core.tools import BaseTool, Workbench

from coag.cycle import (
    IDEMPOTENCY_KEY,
    LateError,
    SelfCancelledError,
    schema_fault,
    told,
    within,
)
from coag.errors import ConfigurationError
from coag.schema import ActionSpec, well_formed

from ._tool_effects import ToolEffects, effects_in, effects_of

GIVEN = 0
"""Owns the tools that were given without a workbench; the nth workbench is n."""
_NAME = re.compile(r"\S{1,128}")
_PROBLEM = 500
"""Characters of a problem that are kept."""
_TAKEN = "the one that was offered first under this name stays. Rename one of them."
_UNUSABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""What a tool's schema raises that cannot be offered."""


class ToolNames:
    """Whose each name is: its who offered it first, and never another's afterwards.

    What was judged and approved as the tool of one workbench is thus never run by another, be the
    first one away, late or without the tool by then.

    Args:
        given: The names of tools without a workbench.
    """

    def __init__(self, given: Iterable[str] = ()) -> None:
        self._owners = dict.fromkeys(given, GIVEN)

    def belongs(self, name: str, owner: int) -> bool:
        """Whether the name is this owner's; a name that nobody has had becomes it."""
        return self._owners.setdefault(name, owner) == owner

    def owner(self, name: str) -> int | None:
        """Whose the name is; None if nobody has had it."""
        return self._owners.get(name)


class ToolListing:
    """Lists tools and the tools of workbenches; what cannot be offered is left out and told.

    Args:
        tools: Tools without a workbench.
        workbenches: Are asked anew each time.
        timeout: Seconds that one may take to list its tools.
        reserved: Names that no tool may have.

    Raises:
        ConfigurationError: Two tools have the same name, one has a reserved name, or its schema
            cannot be offered.
    """

    def __init__(
        self,
        tools: Sequence[BaseTool[Any, Any]],
        workbenches: Sequence[Workbench],
        timeout: float,
        reserved: Collection[str],
    ) -> None:
        _check_names([tool.name for tool in tools], reserved)
        self.names = ToolNames(tool.name for tool in tools)
        self.problems: tuple[str, ...] = ()
        """What the last listing left out, and why."""
        self._specs = tuple(_given_spec(tool) for tool in tools)
        self._workbenches = tuple(workbenches)
        self._timeout = timeout
        self._reserved = frozenset(reserved)

    async def specs(self) -> list[ActionSpec]:
        """The tools that exist now, each name once."""
        found = {spec.name: spec for spec in self._specs}
        problems: list[str] = []
        for number, workbench in enumerate(self._workbenches, start=1):
            bench = type(workbench).__name__
            for spec in await self._offered(workbench, problems):
                if spec.name in found or not self.names.belongs(spec.name, number):
                    problems.append(f"{bench} has a tool {spec.name!r}: {_TAKEN}")
                else:
                    found[spec.name] = spec
        self.problems = tuple(problems)
        return list(found.values())

    async def _offered(self, workbench: Workbench, problems: list[str]) -> list[ActionSpec]:
        """What a workbench offers now; what it cannot offer is left out and told."""
        bench = type(workbench).__name__
        try:
            schemas = list(await within(self._timeout, workbench.list_tools))
        except LateError:
            problems.append(f"{bench} did not list its tools within {self._timeout:g} s.")
            return []
        except SelfCancelledError:
            problems.append(f"{bench} was cancelled by itself when it was to list its tools.")
            return []
        except Exception as error:  # a workbench may raise anything; the turn goes on without it
            problems.append(f"{bench} could not list its tools: {told(error)}"[:_PROBLEM])
            return []
        specs: list[ActionSpec] = []
        for schema in schemas:
            try:
                spec = _spec(schema)
            except _UNUSABLE as error:
                problems.append(f"{bench} has a tool that is left out: {told(error)}"[:_PROBLEM])
                continue
            if spec.name in self._reserved:
                problems.append(f"{bench} has a tool {spec.name!r}: the agent's own action stays.")
                continue
            specs.append(_with_effects(spec, effects_in(workbench, spec.name)))
        return specs


def _check_names(names: Sequence[str], reserved: Collection[str]) -> None:
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ConfigurationError(f"Tool names must be unique; given more than once: {doubled}.")
    if taken := sorted(set(reserved).intersection(names)):
        raise ConfigurationError(
            f"These tools have the names of the agent's own actions: {taken}. Rename them."
        )


def _given_spec(tool: BaseTool[Any, Any]) -> ActionSpec:
    try:
        spec = _spec(tool.schema)
    except _UNUSABLE as error:
        raise ConfigurationError(f"Tool {tool.name!r} cannot be offered: {told(error)}") from error
    return _with_effects(spec, effects_of(tool))


def _with_effects(spec: ActionSpec, effects: ToolEffects) -> ActionSpec:
    """The spec with what is declared, and without the key that the model does not give."""
    update: dict[str, Any] = {"read_only": effects.read_only, "idempotent": effects.idempotent}
    key = spec.parameters.get("properties", {}).get(IDEMPOTENCY_KEY)
    if key is not None and key.get("type", "string") != "string":
        raise ConfigurationError(
            f"Tool {spec.name!r} cannot be offered: its parameter {IDEMPOTENCY_KEY!r} is of type "
            f"{key['type']!r}, and the key is a text. Declare it as str."
        )
    if key is not None:
        update |= {"parameters": without_key(spec.parameters), "idempotency_key": True}
    return spec.model_copy(update=update)


def without_key(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a tool as a model is told of them, without the idempotency key."""
    properties: Mapping[str, Any] = parameters["properties"]
    required: Sequence[str] = parameters.get("required", ())
    return {
        **parameters,
        "properties": {name: properties[name] for name in properties if name != IDEMPOTENCY_KEY},
        "required": [name for name in required if name != IDEMPOTENCY_KEY],
    }


def _spec(schema: Mapping[str, Any]) -> ActionSpec:
    """The tool as an action.

    Raises:
        ValueError: Its name has no or too many characters or a blank, or its arguments are not
            described by a JSON Schema of an object that can be checked in bounded time.
            (Or TypeError, KeyError, RecursionError.)
    """
    nothing: dict[str, Any] = {"type": "object", "properties": {}}
    name, parameters = schema["name"], schema.get("parameters") or nothing
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of at most 128 characters without blanks.")
    text = well_formed(json.dumps(parameters, allow_nan=False, ensure_ascii=False))
    plain: Any = json.loads(text)
    if not isinstance(plain, dict) or not isinstance(plain.get("properties", {}), dict):  # pyright: ignore[reportUnknownMemberType] - JSON
        raise ValueError(f"the parameters of {name!r} are no JSON Schema of an object.")
    if fault := schema_fault(text):
        raise ValueError(f"{name!r} cannot be checked: {fault}.")
    return ActionSpec(
        name=well_formed(name),
        description=well_formed(str(schema.get("description") or "")),
        parameters=cast("dict[str, Any]", plain),
    )
