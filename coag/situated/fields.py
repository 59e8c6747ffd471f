"""Types of Python as JSON Schema, and values checked by them: what tools declare is what holds.

Checks are strict: `true` is no integer and `"3"` no number. Values that are given are JSON, or
become JSON at once; what JSON cannot express (NaN, an infinite number) is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, cast

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

from coag._util.validation import first_error
from coag.errors import ConfigurationError


class ValueType:
    """One type, e.g. of a property's value.

    Args:
        annotation: The type as it is written in Python.
        minimum: The smallest number that is allowed.
        maximum: The largest one.

    Raises:
        ConfigurationError: No schema can be made of the type.
    """

    def __init__(
        self, annotation: Any, minimum: float | None = None, maximum: float | None = None
    ) -> None:
        if minimum is not None or maximum is not None:
            annotation = _ranged(annotation, minimum, maximum)
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(annotation)
            self.schema = _plain(self._adapter.json_schema())
        except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
            raise _no_schema(annotation, error) from error

    def check(self, value: Any) -> tuple[Any, Any]:
        """The value as it was checked, and the same as JSON.

        Raises:
            ValueError: It does not fit; the message says why.
        """
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
    """An object with named fields, e.g. the arguments of an operation or a signal's payload.

    Args:
        fields: Each field by its name.

    Raises:
        ConfigurationError: No schema can be made of a field's type.
    """

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
        """The fields of a JSON object as Python values, defaults filled in.

        Raises:
            ValueError: The object does not fit; the message says why.
        """
        try:
            text = json.dumps(given, allow_nan=False)
            checked = self._model.model_validate_json(text, strict=True)
        except ValidationError as error:
            raise ValueError(first_error(error)) from error
        except (TypeError, RecursionError) as error:
            raise ValueError(f"it is not JSON: {error}") from error
        return {name: getattr(checked, f"{name}_") for name in self._names}

    def as_json(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Python values as a JSON object.

        Raises:
            ValueError: They do not fit; the message says why.
        """
        try:
            checked = self._model.model_validate(dict(given), strict=True)
        except ValidationError as error:
            raise ValueError(first_error(error)) from error
        return as_json({name: getattr(checked, f"{name}_") for name in self._names})


def as_json(value: Any) -> Any:
    """A copy of a value that has only types of JSON.

    Raises:
        ValueError: It cannot be expressed in JSON.
    """
    try:
        return json.loads(
            json.dumps(to_jsonable_python(value, inf_nan_mode="constants"), allow_nan=False)
        )
    except (TypeError, RecursionError) as error:
        raise ValueError(f"it cannot be expressed in JSON: {error}") from error


_VALUES = frozenset({"default", "const", "enum", "examples"})
"""Parts of a schema that hold values."""


def _ranged(annotation: Any, minimum: float | None, maximum: float | None) -> Any:
    return Annotated[annotation, Field(ge=minimum, le=maximum)]


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
