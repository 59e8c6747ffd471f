"""The fields of a JSON state that can be followed over time, and which of two states' are alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

FieldPath = tuple[str, ...]
"""The keys that lead to a field; within a list of objects `key[name]`."""

_FIELDS = 400
"""Fields of one state that are looked at."""
_DEEP = 12
_PARTS = 4
"""Numbers in the longest list that is a field, such as a position."""
_TEXT = 200
"""Characters of a text that are kept."""


@dataclass(frozen=True, slots=True)
class Told:
    """What one state says of one field."""

    value: Any
    own: bool = False
    """True if it stands within what is said of the agent by its name."""


Fields = Mapping[FieldPath, Told]


def fields_of(state: object, agent: str = "") -> Fields:
    """The scalars and the short lists of numbers in a JSON state.

    Of a list of objects only the one is looked into whose `name` or `id` is the agent's.

    Args:
        state: Any JSON value.
        agent: The agent's name; empty to look into no list.
    """
    found: dict[FieldPath, Told] = {}
    for path, told in _walk(state, (), agent, own=False):
        found[path] = told
        if len(found) >= _FIELDS:
            break
    return found


def is_number(value: object) -> bool:
    """Whether a JSON value is a number that can be drawn."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 1e15 and math.isfinite(value)


def is_point(value: object) -> bool:
    """Whether a JSON value is a short list of numbers, such as a position."""
    if not isinstance(value, list):
        return False
    items = cast("list[object]", value)
    return 0 < len(items) <= _PARTS and all(map(is_number, items))


def paired(believed: Sequence[Fields], true: Sequence[Fields]) -> dict[FieldPath, FieldPath]:
    """Which field of the truth each field of the belief is about, where that is plain.

    They have the same last key and values of one sort wherever both are told. Of several the one
    under the same path is meant, or else the one that is said of the agent itself; if that
    decides nothing, none is.

    Args:
        believed: The fields of the belief, at several times.
        true: The fields of the truth, at the same times.
    """
    by_key: dict[str, dict[FieldPath, bool]] = {}
    for fields in true:
        for path, told in fields.items():
            by_key.setdefault(path[-1], {})[path] = told.own
    pairs: dict[FieldPath, FieldPath] = {}
    for path in dict.fromkeys(path for fields in believed for path in fields):
        rivals = by_key.get(path[-1], {})
        fitting = {of: own for of, own in rivals.items() if _alike(path, of, believed, true)}
        chosen = _chosen(path, fitting)
        if chosen is not None:
            pairs[path] = chosen
    return pairs


def _chosen(path: FieldPath, fitting: Mapping[FieldPath, bool]) -> FieldPath | None:
    if path in fitting:
        return path
    own = [of for of, is_own in fitting.items() if is_own]
    if len(own) == 1:
        return own[0]
    return next(iter(fitting)) if len(fitting) == 1 else None


def _alike(
    path: FieldPath, of: FieldPath, believed: Iterable[Fields], true: Iterable[Fields]
) -> bool:
    """Whether both are of one sort wherever both are told, and they are told together."""
    together = False
    for held, so in zip(believed, true, strict=True):
        if path in held and of in so:
            together = True
            if _sort(held[path].value) != _sort(so[of].value):
                return False
    return together


def _sort(value: object) -> object:
    if isinstance(value, list):
        return len(cast("list[object]", value))
    return "number" if is_number(value) else type(value)


def _walk(
    value: object, path: FieldPath, agent: str, *, own: bool
) -> Iterator[tuple[FieldPath, Told]]:
    if len(path) > _DEEP:
        return
    if isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield from _walk(item, (*path, key[:_TEXT]), agent, own=own)
    elif path and isinstance(value, list):
        yield from _walk_list(cast("list[object]", value), path, agent, own=own)
    elif path and isinstance(value, str):
        yield path, Told(value[:_TEXT], own)
    elif path and (isinstance(value, bool) or is_number(value)):
        yield path, Told(value, own)


def _walk_list(
    items: list[object], path: FieldPath, agent: str, *, own: bool
) -> Iterator[tuple[FieldPath, Told]]:
    if is_point(items):
        yield path, Told(items, own)
        return
    selves = [item for item in items if agent and _is_called(item, agent)]
    if len(selves) == 1:
        inside = (*path[:-1], f"{path[-1]}[{agent}]")
        yield from _walk(selves[0], inside, agent, own=True)


def _is_called(item: object, agent: str) -> bool:
    if not isinstance(item, dict):
        return False
    told = cast("dict[str, object]", item)
    return agent in (told.get("name"), told.get("id"))
