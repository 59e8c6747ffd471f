"""Filters over records: a small language, read once, meaning the same in every store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as given
from typing import Any, cast

from coag.schema import folded

from ._fields import CURRENT, FOLDED_FIELDS, exact, field_name
from ._search import Search

Fields = Mapping[str, str | float | bool]

_RANGES: dict[str, Callable[[float, float], bool]] = {
    "$gt": lambda stored, bound: stored > bound,
    "$gte": lambda stored, bound: stored >= bound,
    "$lt": lambda stored, bound: stored < bound,
    "$lte": lambda stored, bound: stored <= bound,
}
_COMPARISONS = ("$eq", "$in", *_RANGES)
_COMBINATIONS = ("$and", "$or")


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOf:
    """The field has one of these values; text, numbers and truth values are never equal."""

    field: str
    values: tuple[str | float | bool, ...]
    _typed: frozenset[tuple[type, str | float | bool]] = given(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        typed = frozenset((type(value), value) for value in self.values)
        object.__setattr__(self, "_typed", typed)

    def matches(self, fields: Fields) -> bool:
        """Whether a record with these flat fields passes."""
        stored = fields.get(self.field)
        return (type(stored), stored) in self._typed


@dataclass(frozen=True, slots=True, kw_only=True)
class InRange:
    """The field is a number on one side of a bound."""

    field: str
    operator: str
    bound: float

    def matches(self, fields: Fields) -> bool:
        """Whether a record with these flat fields passes."""
        stored = fields.get(self.field)
        return type(stored) is float and _RANGES[self.operator](stored, self.bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllOf:
    """Every part passes; without parts, everything does."""

    parts: tuple[Condition, ...]

    def matches(self, fields: Fields) -> bool:
        """Whether a record with these flat fields passes."""
        return all(part.matches(fields) for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOf:
    """At least one part passes."""

    parts: tuple[Condition, ...]

    def matches(self, fields: Fields) -> bool:
        """Whether a record with these flat fields passes."""
        return any(part.matches(fields) for part in self.parts)


Condition = OneOf | InRange | AllOf | AnyOf


def parse_where(where: Mapping[str, Any] | None) -> Condition:
    """Reads a filter.

    `{"type": "obstacle", "x": {"$gte": 2, "$lt": 5}}` holds where all of it holds. Values are
    compared with `$eq` (or just by giving them), `$in`, `$gt`, `$gte`, `$lt`, `$lte`; whole
    filters are combined with `$and` and `$or`. The names in `FIXED_FIELDS` read the record
    itself (`created_at` in seconds since 1970, or a datetime; `subject` and `attribute` of its
    fact, see `folded`), others its metadata. A record without the key does not pass.

    Raises:
        ValueError: Naming what is malformed and what is known.
    """
    if where is None:
        return AllOf(parts=())
    if not isinstance(where, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # user input
        raise ValueError(f"A filter must be a mapping of fields, not {where!r}.")
    parts = [part for name, value in where.items() for part in _parse_entry(name, value)]
    return parts[0] if len(parts) == 1 else AllOf(parts=tuple(parts))


def condition_of(search: Search) -> Condition:
    """Everything that a search asks of a record besides similarity.

    Raises:
        ValueError: If its filter is malformed.
    """
    parts = [parse_where(search.where)]
    if search.scopes is not None:
        parts.append(OneOf(field="scope", values=search.scopes))
    if not search.include_superseded:
        parts.append(OneOf(field=CURRENT, values=(True,)))
    return AllOf(parts=tuple(parts))


def _parse_entry(name: str, value: Any) -> list[Condition]:
    if name in _COMBINATIONS:
        parts = tuple(parse_where(part) for part in _filled_list(name, value))
        return [AllOf(parts=parts) if name == "$and" else AnyOf(parts=parts)]
    if name.startswith("$"):
        raise ValueError(f"Unknown operator {name!r}. Known here: {', '.join(_COMBINATIONS)}.")
    if not isinstance(value, Mapping):
        return [OneOf(field=field_name(name), values=(_comparable(name, value),))]
    if not value:
        raise ValueError(f"The comparison of {name!r} is empty; give it a value.")
    comparisons = cast("Mapping[str, Any]", value)
    return [_parse_comparison(name, key, operand) for key, operand in comparisons.items()]


def _parse_comparison(name: str, operator: str, operand: Any) -> Condition:
    if operator == "$eq":
        return OneOf(field=field_name(name), values=(_comparable(name, operand),))
    if operator == "$in":
        operands = _filled_list(f"$in of {name!r}", operand)
        return OneOf(
            field=field_name(name), values=tuple(_comparable(name, one) for one in operands)
        )
    if operator not in _RANGES:
        raise ValueError(
            f"Unknown operator {operator!r} for {name!r}. Known: {', '.join(_COMPARISONS)}."
        )
    bound = _comparable(name, operand)
    if not isinstance(bound, float):
        raise ValueError(f"{operator} of {name!r} compares numbers, not {operand!r}.")
    return InRange(field=field_name(name), operator=operator, bound=bound)


def _comparable(name: str, value: object) -> str | float | bool:
    if name in FOLDED_FIELDS and isinstance(value, str):
        value = folded(value)
    return exact(value, what=f"The value to compare {name!r} with")


def _filled_list(what: str, value: Any) -> Sequence[Any]:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(f"{what} takes a list with at least one entry, not {value!r}.")
    return cast("Sequence[Any]", value)
