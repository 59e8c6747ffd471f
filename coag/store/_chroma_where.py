"""Our filters in Chroma's language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._filters import AllOf, AnyOf, Condition, InRange, OneOf

ChromaWhere = dict[str, Any]


def chroma_where(condition: Condition) -> ChromaWhere | None:
    """The filter; None stands for one that everything meets, which Chroma cannot write."""
    match condition:
        case OneOf(field=field, values=values):
            return _one_of(field, values)
        case InRange(field=field, operator=operator, bound=bound):
            return {field: {operator: bound}}
        case AllOf(parts=parts):
            return _joined("$and", [w for w in map(chroma_where, parts) if w is not None])
        case AnyOf(parts=parts):
            wheres = [chroma_where(part) for part in parts]
            some = [where for where in wheres if where is not None]
            return _joined("$or", some) if len(some) == len(wheres) else None


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
