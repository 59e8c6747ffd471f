"""Filters over records: a small language, read once, meaning the same in every store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from coag.schema import folded

from .records import FIXED_FIELDS, METADATA_PREFIX, Fields, Scalars, exact

_FOLDED_FIELDS = frozenset({"subject", "attribute"})
"""Fields of which the folded form is stored; filters fold what they compare with."""
_RANGES: dict[str, Callable[[float, float], bool]] = {
    "$gt": lambda stored, bound: stored > bound,
    "$gte": lambda stored, bound: stored >= bound,
    "$lt": lambda stored, bound: stored < bound,
    "$lte": lambda stored, bound: stored <= bound,
}
_COMPARISONS = ("$eq", "$in", *_RANGES)
_COMBINATIONS = ("$and", "$or")

Where = dict[str, Any]
"""A filter in Chroma's language over flat fields."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A filter that was read: what it asks of flat fields, and the same for Chroma."""

    matches: Callable[[Fields], bool]
    """Whether a record with these flat fields passes."""
    where: Where | None
    """None means a filter that everything passes, which Chroma cannot write."""


EVERYTHING = Condition(lambda _: True, None)


def one_of(field: str, values: Sequence[Scalars]) -> Condition:
    """The field has one of these values; text, numbers and truth values are never equal."""
    typed = frozenset((type(value), value) for value in values)
    by_type: dict[type, list[Scalars]] = {}
    for value in values:  # Chroma wants the values of one `$in` to be of one type
        by_type.setdefault(type(value), []).append(value)

    def matches(fields: Fields) -> bool:
        stored = fields.get(field)
        return (type(stored), stored) in typed

    return Condition(matches, _joined("$or", [{field: {"$in": one}} for one in by_type.values()]))


def in_range(field: str, operator: str, bound: float) -> Condition:
    """The field is a number on one side of a bound."""
    compare = _RANGES[operator]

    def matches(fields: Fields) -> bool:
        stored = fields.get(field)
        return type(stored) is float and compare(stored, bound)

    return Condition(matches, {field: {operator: bound}})


def all_of(parts: Sequence[Condition]) -> Condition:
    """Every part passes; without parts, everything does."""
    wheres = [part.where for part in parts if part.where is not None]
    return Condition(lambda fields: all(p.matches(fields) for p in parts), _joined("$and", wheres))


def any_of(parts: Sequence[Condition]) -> Condition:
    """At least one part passes."""
    wheres = [part.where for part in parts if part.where is not None]
    where = _joined("$or", wheres) if len(wheres) == len(parts) else None
    return Condition(lambda fields: any(part.matches(fields) for part in parts), where)


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
        return EVERYTHING
    if not isinstance(where, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # user input
        raise ValueError(f"A filter must be a mapping of fields, not {where!r}.")
    return all_of([part for name, value in where.items() for part in _parse_entry(name, value)])


def _parse_entry(name: str, value: Any) -> list[Condition]:
    if name in _COMBINATIONS:
        parts = [parse_where(part) for part in _filled_list(name, value)]
        return [all_of(parts) if name == "$and" else any_of(parts)]
    if name.startswith("$"):
        raise ValueError(f"Unknown operator {name!r}. Known here: {', '.join(_COMBINATIONS)}.")
    if not isinstance(value, Mapping):
        return [_parse_comparison(name, "$eq", value)]
    if not value:
        raise ValueError(f"The comparison of {name!r} is empty; give it a value.")
    comparisons = cast("Mapping[str, Any]", value)
    return [_parse_comparison(name, key, operand) for key, operand in comparisons.items()]


def _parse_comparison(name: str, operator: str, operand: Any) -> Condition:
    field = name if name in FIXED_FIELDS else METADATA_PREFIX + name
    if operator == "$eq":
        return one_of(field, (_comparable(name, operand),))
    if operator == "$in":
        operands = _filled_list(f"$in of {name!r}", operand)
        return one_of(field, [_comparable(name, one) for one in operands])
    if operator not in _RANGES:
        raise ValueError(
            f"Unknown operator {operator!r} for {name!r}. Known: {', '.join(_COMPARISONS)}."
        )
    bound = _comparable(name, operand)
    if not isinstance(bound, float):
        raise ValueError(f"{operator} of {name!r} compares numbers, not {operand!r}.")
    return in_range(field, operator, bound)


def _comparable(name: str, value: object) -> Scalars:
    if name in _FOLDED_FIELDS and isinstance(value, str):
        value = folded(value)
    return exact(value, what=f"The value to compare {name!r} with")


def _filled_list(what: str, value: Any) -> Sequence[Any]:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(f"{what} takes a list with at least one entry, not {value!r}.")
    return cast("Sequence[Any]", value)


def _joined(operator: str, parts: list[Where]) -> Where | None:
    """Chroma wants at least two parts to combine."""
    if len(parts) <= 1:
        return parts[0] if parts else None
    return {operator: parts}
