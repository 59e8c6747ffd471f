"""The lists of a JSON state that can be followed over time, and what changed in them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from coag.inspector.views import ListChange, ListTrack

from ._fields import is_point

Lists = Mapping[str, tuple[str, ...]]
"""The items of each list as JSON, by its dotted path."""

_LISTS = 16
"""Lists of one state that are looked at."""
_ITEMS = 400
"""Items of the longest list that is followed."""
_ITEM = 80
"""Characters of an item."""
_DEEP = 6


def lists_of(state: object) -> Lists:
    """The lists of scalars and of positions in a JSON state; others are none that can be told."""
    found: dict[str, tuple[str, ...]] = {}
    for path, items in _walk(state, ()):
        found[".".join(path)] = items
        if len(found) >= _LISTS:
            break
    return found


def list_tracks(moments: Sequence[tuple[int, Lists]]) -> tuple[ListTrack, ...]:
    """The lists that changed.

    Args:
        moments: Cycles in order, each with the lists that were held at its beginning.
    """
    paths = dict.fromkeys(path for _, lists in moments for path in lists)
    tracks = [ListTrack(path=path, changes=tuple(_changes(path, moments))) for path in paths]
    return tuple(track for track in tracks if len(track.changes) > 1)


def _changes(path: str, moments: Sequence[tuple[int, Lists]]) -> Iterator[ListChange]:
    before: Counter[str] | None = None
    for cycle, lists in moments:
        if path not in lists:
            continue
        now = Counter(lists[path])
        if now != before:
            yield ListChange(
                cycle=cycle,
                added=tuple((now - (before or Counter())).elements()),
                removed=tuple((before - now).elements()) if before else (),
                length=now.total(),
            )
        before = now


def _walk(
    value: object, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    if isinstance(value, dict) and len(path) < _DEEP:
        for key, item in cast("dict[str, object]", value).items():
            yield from _walk(item, (*path, key[:_ITEM]))
    elif path and isinstance(value, list):
        items = cast("list[Any]", value)
        if is_point(items):
            return
        if len(items) <= _ITEMS and all(map(_is_told, items)):
            yield path, tuple(json.dumps(item, ensure_ascii=False)[:_ITEM] for item in items)


def _is_told(item: object) -> bool:
    return is_point(item) or item is None or isinstance(item, str | int | float)
