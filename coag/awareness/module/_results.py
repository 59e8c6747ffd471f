"""What stands in a structured tool result, by the names of its keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import cast

from coag.awareness.state import folded

_DEPTH = 4
"""How deep a result is looked into."""
_ENTRIES = 500
"""How many entries of a result are looked at."""

Entries = Mapping[str, object]


def objects_in(data: object) -> Iterator[Entries]:
    """The objects of a result, the outer before the inner ones."""
    waiting: list[tuple[object, int]] = [(data, 0)]
    looked_at = 0
    for value, depth in waiting:
        inner: list[object] = []
        if isinstance(value, Mapping):
            entries = {str(key): one for key, one in cast("Mapping[object, object]", value).items()}
            yield entries
            inner = list(entries.values())
        elif isinstance(value, list):
            inner = cast("list[object]", value)
        looked_at += len(inner)
        if depth == _DEPTH or looked_at > _ENTRIES:
            continue
        waiting += [(one, depth + 1) for one in inner if isinstance(one, Mapping | list)]


def scalars_of(entries: Entries) -> dict[str, str | int | float | bool]:
    """The plain values of an object; no nulls, nothing nested, no numbers JSON cannot carry."""
    return {
        key: value
        for key, value in entries.items()
        if isinstance(value, str | bool | int) or (isinstance(value, float) and isfinite(value))
    }


def amount_of(value: object) -> float | None:
    """A value as what is left of a resource; None where it is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    return max(0.0, float(value))


def same(one: str, other: str) -> bool:
    """Whether two names are the same without case and spacing."""
    return folded(one) == folded(other)
