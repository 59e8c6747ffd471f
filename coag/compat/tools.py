"""What a tool is, and what its author declares of its effects: `@tool(read_only=True)`."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, TypeVar, cast

from autogen_core.tools import BaseTool, FunctionTool, StaticWorkbench, Workbench
from pydantic import AliasChoices, BaseModel, RootModel, ValidationError
from pydantic_core import to_jsonable_python

from coag._util.json_schemas import schema_fault
from coag._util.text import well_formed
from coag._util.timeouts import describe_error
from coag._util.validation import first_error
from coag.cycle import IDEMPOTENCY_KEY, identity
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
        """Nothing is to be stopped: connections are closed where they were made."""

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

    A tool that raises has failed, and the call may be tried again. Its outcome is unknown if no
    answer came in time or the connection broke, and for any error of a `critical` tool; then it is
    not tried again before it is settled. An error may say so itself: by an attribute
    `may_have_happened`, True or False.

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
        ask = "a function that answers 'happened', 'did_not_happen' or 'unknown'"
        raise ConfigurationError(f"@tool(reconcile={reconcile!r:.80}): give {ask}.")
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
    problem = f"Unsupported tool type: {tool!r} is no tool"
    raise ConfigurationError(f"{problem}. Give a BaseTool, or a function with annotated arguments.")


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
        problem = f"its parameter {IDEMPOTENCY_KEY!r} is of type {key['type']!r}, not a text"
        raise ConfigurationError(f"Tool {name!r} cannot be offered: {problem}. Declare it as str.")
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


# ---- The arguments of a local tool, validated and completed by its own type ----


_DIGITS = 100
"""Digits of a decimal without fraction that is shown as an integer."""
_LEVELS = 60


def completed_arguments(
    kind: type[BaseModel], name: str, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments as JSON, as the tool's type takes them: another round changes nothing.

    Decimals become numbers where that is exact. Defaults of None are not filled in: a missing
    argument and None are the same to a rule.

    Args:
        kind: The type of the tool's arguments.
        name: The tool.
        arguments: What was given.

    Raises:
        ValueError: The type refuses them, or JSON cannot show what it makes of them.
    """
    problem = ""
    for numbers in (True, False):
        value, dump = _validated(kind, arguments, name), _Dump(numbers=numbers)
        try:
            fields = dump.object(value)
            again = kind.model_validate(fields)
            shown = dump.object(again)  # a default of 1 is a 1.0 to a float
            same = _text(shown) == _text(fields) or identity(name, shown) == identity(name, fields)
            stable = same and (dump.lazy or again == value)
        except (ValueError, RecursionError) as error:
            problem = problem or _reason(error)
            continue
        if stable:
            return {key: _as_written(key, own, arguments) for key, own in fields.items()}
        problem = problem or "the type makes other values of its own values"
    why = f"what {name!r} would run with cannot be judged: {problem}"
    raise ValueError(f"{why}. Give its parameters types and defaults that JSON can show")


def _validated(kind: type[BaseModel], given: Mapping[str, Any], name: str) -> BaseModel:
    try:
        return kind.model_validate(given)
    except ValueError as error:
        raise ValueError(_reason(error)) from error
    except Exception as error:  # a validator of the tool's author may raise anything
        raise ValueError(
            f"{name} could not check its arguments: {describe_error(error)}"
        ) from error


def _as_written(name: str, shown: Any, given: Mapping[str, Any]) -> Any:
    """What was written, where JSON calls it the same: 60 stays 60, also where a float is meant."""
    if name in given and identity(name, {name: given[name]}) == identity(name, {name: shown}):
        return given[name]
    return shown


def _reason(error: Exception) -> str:
    return first_error(error) if isinstance(error, ValidationError) else describe_error(error)


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False)


class _Dump:
    """Shows a validated value as JSON: what the tool really gets, whatever its serializers say."""

    def __init__(self, *, numbers: bool) -> None:
        self._numbers = numbers
        self.lazy = False
        """Whether the last value had iterators in it, which are never equal."""

    def object(self, value: BaseModel) -> dict[str, Any]:
        self.lazy = False
        fields = self._any(value, 0)
        if not isinstance(fields, dict):
            raise ValueError("its arguments are no JSON object")
        return cast("dict[str, Any]", fields)

    def _any(self, value: Any, level: int) -> Any:
        if level > _LEVELS:
            raise ValueError(f"they have more than {_LEVELS} levels")
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Enum):
            return self._any(value.value, level + 1)
        if isinstance(value, str):
            return str(value)
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            if not math.isfinite(value):
                raise ValueError(f"{value!r} is no JSON number")
            return float(value)
        if isinstance(value, Decimal):
            return _number(value) if self._numbers else str(value)
        return self._parts(value, level + 1)

    def _parts(self, value: Any, level: int) -> Any:
        if isinstance(value, RootModel):
            return self._any(value.root, level)  # pyright: ignore[reportUnknownMemberType] - any type
        if isinstance(value, BaseModel):
            return self._model(value, level)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = dataclasses.fields(value)
            return {each.name: self._any(getattr(value, each.name), level) for each in fields}
        if isinstance(value, Mapping):
            items = cast("Mapping[Any, Any]", value).items()
            return {_name(key): self._any(item, level) for key, item in items}
        if isinstance(value, Set):
            return sorted((self._any(item, level) for item in cast("Set[Any]", value)), key=_text)
        if isinstance(value, list | tuple | deque | Iterator):
            self.lazy = self.lazy or isinstance(value, Iterator)
            return [self._any(item, level) for item in cast("Iterator[Any]", value)]
        return to_jsonable_python(value)

    def _model(self, value: BaseModel, level: int) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for name, field in type(value).model_fields.items():
            own = getattr(value, name)
            if own is None and name not in value.model_fields_set:
                continue
            alias = field.validation_alias
            first = alias.choices[0] if isinstance(alias, AliasChoices) else alias
            fields[first if isinstance(first, str) else name] = self._any(own, level)
        for name, own in (value.model_extra or {}).items():
            fields[name] = self._any(own, level)
        return fields


def _name(key: Any) -> str:
    return key if type(key) is str else next(iter(to_jsonable_python({key: None})))


def _number(value: Decimal) -> int | float | str:
    """A decimal as a JSON number of the same value; as text where there is none."""
    if not value.is_finite():
        return str(value)
    if value == value.to_integral_value() and value.adjusted() < _DIGITS:
        return int(value)
    near = float(value)
    return near if math.isfinite(near) and Decimal(repr(near)) == value else str(value)
