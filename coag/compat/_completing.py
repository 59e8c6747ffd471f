"""Arguments as a tool will get them: with its defaults, and converted by its own type."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, cast

from autogen_core.tools import BaseTool
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

_PROBLEM = 300
"""Characters of a problem that are shown."""


def completed(tool: BaseTool[Any, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as JSON from which the tool's own type makes exactly what the tool gets.

    Defaults of None are not filled in: a missing argument and None are the same to a rule.

    Raises:
        ValueError: The tool's type refuses them, or would make another value of its own value, so
            that what is judged could not be what is run.
    """
    kind = tool.args_type()
    try:
        made = kind.model_validate(arguments)
        plain = _plain(made, arguments)
        again = kind.model_validate(plain)
        if _plain(again, plain) == plain and _same(again, made):
            return plain
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where + ': ' if where else ''}{first['msg']}"[:_PROBLEM]) from error
    except PydanticSerializationError:
        return arguments  # a default that is no JSON: no rule can be shown it; see the docs
    raise ValueError(
        f"the type of {tool.name!r} makes other values of its own values, so what is judged would "
        "not be what is run; let its fields take what they are written as in JSON"
    )


def _same(one: BaseModel, other: BaseModel) -> bool:
    """Whether two values of a tool's type are equal; secrets and floats that are none are not."""
    return bool(one == other)


def _plain(made: BaseModel, written: Mapping[str, Any]) -> dict[str, Any]:
    """A value as JSON, without the nulls that nobody wrote; exact decimals are numbers."""
    dumped = made.model_dump(mode="json", by_alias=True)
    typed = made.model_dump(mode="python", by_alias=True)
    return cast("dict[str, Any]", _merged(dumped, typed, written))


def _merged(dumped: Any, typed: Any, written: Any) -> object:
    if isinstance(typed, Decimal) and isinstance(dumped, str):
        return _number(typed, dumped)
    if isinstance(dumped, dict) and isinstance(typed, Mapping):
        own = cast("Mapping[Any, Any]", typed)
        given: Mapping[str, Any] = {}
        if isinstance(written, Mapping):
            given = cast("Mapping[str, Any]", written)
        items = cast("dict[str, Any]", dumped).items()
        return {
            name: _merged(value, own.get(name), given.get(name))
            for name, value in items
            if value is not None or name in given
        }
    if isinstance(dumped, list) and isinstance(typed, list | tuple):
        values, own_values = cast("list[Any]", dumped), cast("list[Any]", typed)
        given_values = cast("list[Any]", written) if isinstance(written, list) else []
        padded = [*given_values, *([None] * len(values))]
        return [_merged(*each) for each in zip(values, own_values, padded, strict=False)]
    if isinstance(dumped, int | float) and not isinstance(dumped, bool) and dumped == written:
        return cast("object", written)  # 60 stays 60
    return cast("object", dumped)


def _number(value: Decimal, text: str) -> Any:
    """A decimal as the JSON number that is exactly it; as text where there is none."""
    if not value.is_finite():
        return text
    number = int(value) if value == value.to_integral_value() and abs(value) < 2**53 else None
    if number is None:
        number = float(value)
    return number if Decimal(repr(number)) == value else text
