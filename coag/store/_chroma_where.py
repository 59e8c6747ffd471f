"""Our filters in Chroma's language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._fields import CURRENT
from ._filters import AllOf, AnyOf, Condition, InRange, OneOf
from ._search import Search

ChromaWhere = dict[str, Any]


def chroma_where(search: Search, condition: Condition) -> ChromaWhere | None:
    """Everything a search asks of a record besides similarity; None if it asks nothing."""
    parts: list[Condition] = [condition]
    if search.scopes is not None:
        parts.append(OneOf(field="scope", values=search.scopes))
    if not search.include_superseded:
        parts.append(OneOf(field=CURRENT, values=(True,)))
    return _translated(AllOf(parts=tuple(parts)))


def _translated(condition: Condition) -> ChromaWhere | None:
    """None stands for a condition that everything meets, which Chroma cannot write."""
    match condition:
        case OneOf(field=field, values=values):
            return _one_of(field, values)
        case InRange(field=field, operator=operator, bound=bound):
            return {field: {operator: bound}}
        case AllOf(parts=parts):
            return _joined("$and", [t for t in map(_translated, parts) if t is not None])
        case AnyOf(parts=parts):
            translated = [_translated(part) for part in parts]
            if None in translated:
                return None
            return _joined("$or", [t for t in translated if t is not None])


def _one_of(field: str, values: Sequence[str | float | bool]) -> ChromaWhere | None:
    """Chroma wants the values of one `$in` to be of one type."""
    by_type: dict[type, list[str | float | bool]] = {}
    for value in values:
        by_type.setdefault(type(value), []).append(value)
    return _joined("$or", [{field: {"$in": group}} for group in by_type.values()])


def _joined(operator: str, parts: list[ChromaWhere]) -> ChromaWhere | None:
    """Chroma wants at least two parts to combine."""
    if len(parts) <= 1:
        return parts[0] if parts else None
    return {operator: parts}
