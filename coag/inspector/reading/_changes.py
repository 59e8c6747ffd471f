"""What is different between two JSON values, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, cast

from coag.inspector.views import Change

_MOST = 200
"""Changes that are told."""
_DEEP = 20
"""Levels below which a field is told as a whole."""


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Change, ...]:
    """The fields that were added, changed or removed, by dotted path; lists count as one.

    Of many only the first are told.
    """
    return tuple(islice(_changes(before, after, "", _DEEP), _MOST))


def _changes(
    before: Mapping[str, Any], after: Mapping[str, Any], within: str, depth: int
) -> Iterator[Change]:
    for key in (*before, *(key for key in after if key not in before)):
        old, new = before.get(key), after.get(key)
        path = f"{within}.{key}" if within else key
        if depth and isinstance(old, dict) and isinstance(new, dict):
            yield from _changes(
                cast("dict[str, Any]", old), cast("dict[str, Any]", new), path, depth - 1
            )
        elif not _same(old, new):
            yield Change(path=path, before=old, after=new)


def _same(left: Any, right: Any) -> bool:
    """Equal as JSON: unlike in Python, true is not 1; within lists and objects that may pass."""
    return isinstance(left, bool) == isinstance(right, bool) and left == right
