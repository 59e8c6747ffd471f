"""The arguments of a local tool, validated and completed by its own type, as JSON.

Rules judge, people approve and traces hold what comes out, and the tool is run with it.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections import deque
from collections.abc import Iterator, Mapping, Set
from decimal import Decimal
from enum import Enum
from typing import Any, cast

from pydantic import AliasChoices, BaseModel, RootModel, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from coag._util.timeouts import describe_error
from coag._util.validation import first_error
from coag.cycle import identity

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
            stable = _text(dump.object(again)) == _text(fields) and (dump.lazy or again == value)
        except (ValueError, PydanticSerializationError, RecursionError) as error:
            problem = problem or _reason(error)
            continue
        if stable:
            return {key: _as_written(key, own, arguments) for key, own in fields.items()}
        problem = problem or "the type makes other values of its own values"
    raise ValueError(
        f"what {name!r} would run with cannot be judged: {problem}. Give its parameters types "
        "and defaults that JSON can show"
    )


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
