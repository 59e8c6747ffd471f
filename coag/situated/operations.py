"""Operations of a tool: what they need, what they lead to, and how a call is checked.

An operation is acknowledged at once. What takes time is done by an internal operation, and seen
in properties and signals. What a tool declares is what holds: types of Python become JSON Schema,
and values are checked by them strictly - `true` is no integer and `"3"` no number. What JSON
cannot express (NaN, an infinite number) is refused.
"""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple, TypeVar, cast, get_type_hints, overload

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PydanticSchemaGenerationError,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic_core import to_jsonable_python

from coag._util.text import in_a_line, well_formed
from coag._util.validation import first_error
from coag.errors import CoagError, ConfigurationError

from .records import OperationDescription


class ValueType:
    """One type, e.g. of a property's value, with the smallest and the largest number allowed."""

    def __init__(
        self, annotation: Any, minimum: float | None = None, maximum: float | None = None
    ) -> None:
        if minimum is not None or maximum is not None:
            annotation = Annotated[annotation, Field(ge=minimum, le=maximum)]
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(annotation)
            self.schema = _plain(self._adapter.json_schema())
        except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
            raise _no_schema(annotation, error) from error

    def check(self, value: Any) -> tuple[Any, Any]:
        """The value as it was checked, and as JSON; a `ValueError` says why it does not fit."""
        try:
            checked = self._adapter.validate_python(value, strict=True)
        except ValidationError as error:
            raise ValueError(first_error(error)) from error
        return checked, as_json(checked)


class FieldType(NamedTuple):
    """A field of an object: its type, what it means, and its value where none is given."""

    annotation: Any
    description: str | None = None
    default: Any = ...


class Fields:
    """An object with named fields, e.g. the arguments of an operation or a signal's payload."""

    def __init__(self, fields: Mapping[str, FieldType]) -> None:
        self._names = tuple(fields)
        # A trailing underscore keeps a field called `json` or `copy` apart from the model's own.
        parts: Any = {
            f"{name}_": (
                field.annotation,
                Field(default=field.default, alias=name, description=field.description),
            )
            for name, field in fields.items()
        }
        config = ConfigDict(extra="forbid", protected_namespaces=())
        try:
            self._model: type[BaseModel] = create_model("Fields", __config__=config, **parts)
            self.schema = _plain(self._model.model_json_schema())
        except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
            raise _no_schema(
                {name: one.annotation for name, one in fields.items()}, error
            ) from error

    def values(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a JSON object as Python values, defaults filled in; raises as `as_json`."""
        try:
            text = json.dumps(given, allow_nan=False)
            checked = self._model.model_validate_json(text, strict=True)
        except ValidationError as error:
            raise ValueError(first_error(error)) from error
        except (TypeError, RecursionError) as error:
            raise ValueError(f"it is not JSON: {error}") from error
        return {name: getattr(checked, f"{name}_") for name in self._names}

    def as_json(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Python values as a JSON object; a `ValueError` says why they do not fit."""
        try:
            checked = self._model.model_validate(dict(given), strict=True)
        except ValidationError as error:
            raise ValueError(first_error(error)) from error
        return as_json({name: getattr(checked, f"{name}_") for name in self._names})


def as_json(value: Any) -> Any:
    """A copy of a value that has only types of JSON; `ValueError` where JSON cannot express it.

    Lone surrogates, which UTF-8 cannot carry, become `?`.
    """
    try:
        plain = to_jsonable_python(value, inf_nan_mode="constants")
        return json.loads(well_formed(json.dumps(plain, allow_nan=False, ensure_ascii=False)))
    except (TypeError, RecursionError) as error:
        raise ValueError(f"it cannot be expressed in JSON: {error}") from error


_VALUES = frozenset({"default", "const", "enum", "examples"})
"""Parts of a schema that hold values."""


def _plain(schema: Any) -> Any:
    """A schema without the titles that pydantic makes from names."""
    if isinstance(schema, list):
        return [_plain(part) for part in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    parts = cast("dict[str, Any]", schema)
    return {
        key: part if key in _VALUES else _plain(part)
        for key, part in parts.items()
        if not (key == "title" and isinstance(part, str))
    }


def _no_schema(annotation: Any, error: Exception) -> ConfigurationError:
    reason = str(error).partition("\n")[0]
    return ConfigurationError(
        f"{annotation!r} has no JSON Schema: {reason} Use types that JSON can express: numbers, "
        "texts, lists, dictionaries, pydantic models."
    )


CallableT = TypeVar("CallableT", bound=Callable[..., Any])
_MARK = "__enhanced_tool_operation__"


class OperationRefusedError(Exception):
    """Raised by an operation that is not to be done now; it must have done nothing.

    The call is acknowledged as refused, with this message: for preconditions that depend on the
    arguments. For others there is `check`.
    """


class OperationFailedError(CoagError):
    """An operation raised: what it did before is not known, and it is not run again.

    Attributes:
        tool: The tool's id.
        operation: The operation's name.
    """

    def __init__(self, tool: str, operation: str, problem: str) -> None:
        self.tool = tool
        self.operation = operation
        super().__init__(
            f"Operation {operation!r} of tool {tool!r} failed: {problem}. What it did before is "
            "not known: read the tool's properties."
        )


class DeclaredOperation(NamedTuple):
    """An operation as it was declared."""

    run: Callable[..., Any]
    """Called with the tool and the arguments by name; returns the answer or an awaitable of it."""
    check: Callable[[Any], bool] | None
    parameters: Fields
    says: OperationDescription
    """What the manual and the catalogue say of it."""

    def describe(self, *, compare_and_set: bool) -> OperationDescription:
        """What is said of it, with the conditions that a call may name."""
        if not compare_and_set:
            return self.says
        schema = self.says.parameters
        properties = {**schema.get("properties", {}), **_CONDITIONS}
        return self.says.model_copy(update={"parameters": {**schema, "properties": properties}})


@overload
def operation(function: CallableT, /) -> CallableT: ...
@overload
def operation(
    *,
    preconditions: str = "",
    effects: str = "",
    behavior: str = "",
    latency: float | None = None,
    completed_by: str | None = None,
    check: Callable[[Any], bool] | None = None,
    critical: bool = False,
    read_only: bool = False,
) -> Callable[[CallableT], CallableT]: ...
def operation(  # noqa: PLR0913 - all by name, and each is a line of the manual
    function: Any = None,
    /,
    *,
    preconditions: str = "",
    effects: str = "",
    behavior: str = "",
    latency: float | None = None,
    completed_by: str | None = None,
    check: Callable[[Any], bool] | None = None,
    critical: bool = False,
    read_only: bool = False,
) -> Any:
    """Declares a method, plain or async, as an operation.

    Its annotations give the schema of the arguments, its docstring the description and, under
    `Args:`, what each argument means. What it returns is acknowledged: a text as the message, any
    other value as data.

    Args:
        function: The method, where nothing else is said: `@operation`.
        preconditions: What must hold before, in words.
        effects: What it changes, in properties.
        behavior: What it does at once, and how the state then changes.
        latency: Seconds within which its effect is usually complete.
        completed_by: The signal by which its effect is complete.
        check: Given the tool, says whether the preconditions hold; a call is refused where not.
        critical: Whether a wrong use cannot be undone.
        read_only: Whether it changes nothing.

    Raises:
        ConfigurationError: What was given cannot work together.
    """
    if check is not None and not preconditions:
        raise ConfigurationError(
            "An operation with a `check` says in words what it needs: give `preconditions`."
        )
    if latency is not None and not latency > 0:
        raise ConfigurationError(f"A latency is above 0 seconds (got {latency!r}).")

    def declare(method: Callable[..., Any]) -> Any:
        description, meanings = _documented(method)
        parameters = Fields(_parameters(method, meanings))
        says = OperationDescription(
            name=method.__name__,
            description=description,
            behavior=in_a_line(behavior),
            preconditions=in_a_line(preconditions),
            effects=in_a_line(effects),
            parameters=parameters.schema,
            latency=latency,
            completed_by=completed_by,
            critical=critical,
            read_only=read_only,
        )
        setattr(method, _MARK, DeclaredOperation(method, check, parameters, says))
        return method

    return declare if function is None else declare(function)


def declared_operation(member: object) -> DeclaredOperation | None:
    """The operation that a member of a class was declared as; None for any other member."""
    return getattr(member, _MARK, None) if inspect.isfunction(member) else None


# ---- Compare and set ----

_CONDITIONS: Mapping[str, Any] = {
    "if_rev": {
        "type": "integer",
        "description": "Only if the properties have this revision; refused otherwise.",
    },
    "if_value": {
        "type": "object",
        "description": "Only if these properties have these values; refused otherwise.",
    },
}


class Conditions(NamedTuple):
    """What a call asks to be still true when it is run."""

    rev: int | None = None
    values: Mapping[str, Any] | None = None

    def refusal(self, rev: int, properties: Mapping[str, Any]) -> str | None:
        """Why the call is refused; None if all holds."""
        if self.rev is not None and self.rev != rev:
            return f"if_rev: the properties have revision {rev}, not {self.rev}"
        for name, value in (self.values or {}).items():
            if name not in properties:
                return f"if_value: there is no property {name!r}"
            if properties[name] != value:
                return f"if_value: {name!r} is {properties[name]!r}, not {value!r}"
        return None


_CONDITION_FIELDS = Fields(
    {
        "if_rev": FieldType(int | None, default=None),
        "if_value": FieldType(dict[str, Any] | None, default=None),
    }
)


def split_conditions(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], Conditions]:
    """The arguments without `if_rev` and `if_value`, and these; `ValueError` for a wrong type."""
    given = {name: arguments[name] for name in _CONDITIONS if name in arguments}
    rest = {name: value for name, value in arguments.items() if name not in _CONDITIONS}
    checked = _CONDITION_FIELDS.values(given)
    return rest, Conditions(checked["if_rev"], checked["if_value"])


# ---- Reading a method: its docstring and its signature ----


def _documented(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The first paragraph of a docstring, and what it says under `Args:` of each argument."""
    text = inspect.cleandoc(function.__doc__ or "")
    if not text:
        raise ConfigurationError(
            f"Operation {function.__qualname__} does not say what it does: give it a docstring."
        )
    found = re.search(r"^Args:\n((?:[ \t]+.*\n?|\n)*)", text, re.MULTILINE)
    listed = textwrap.dedent(found[1]) if found else ""
    entries = re.findall(r"^(\w+)(?: \([^)]*\))?:((?:.*\n?)(?:[ \t]+.*\n?)*)", listed, re.MULTILINE)
    return in_a_line(text.partition("\n\n")[0]), {name: in_a_line(says) for name, says in entries}


def _parameters(function: Callable[..., Any], meanings: Mapping[str, str]) -> dict[str, FieldType]:
    try:
        annotations = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise ConfigurationError(
            f"Operation {function.__qualname__}: {error}. Its annotations must be names of its "
            "module, imported when the class is made."
        ) from error
    parameters = list(inspect.signature(function).parameters.values())[1:]
    fields: dict[str, FieldType] = {}
    for one in parameters:
        if one.kind not in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY):
            raise ConfigurationError(
                f"Operation {function.__qualname__} takes {one}: arguments are given by name."
            )
        if one.name not in annotations or one.name.startswith("_") or one.name in _CONDITIONS:
            raise ConfigurationError(
                f"Operation {function.__qualname__}: argument {one.name!r} needs an annotation, "
                "begins with a letter, and is neither 'if_rev' nor 'if_value'."
            )
        default = ... if one.default is one.empty else one.default
        fields[one.name] = FieldType(annotations[one.name], meanings.get(one.name), default)
    return fields
