"""Comparing JSON values, and the patches that turn one into another (RFC 7396)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final, cast

from .text import clip, visible

_SHOWN = 300
"""Characters of a value that are shown."""
_AROUND = 60
"""Characters that are shown before the first one that differs in a long text."""
_DEEP = 100
"""Levels below which a value is compared as a whole."""
_Same = Callable[[object, object], bool]


class _Absent:
    """Takes the place of a missing value; JSON's null is a value."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class JsonDifference:
    """One place where two JSON values differ."""

    path: str
    """The way there, as in `messages[1].content`; empty for the values as a whole."""
    before: Any
    """The value there in the first one; `ABSENT` for none."""
    after: Any
    """The value there in the second one."""

    def shown(self, limit: int = _SHOWN) -> tuple[str, str]:
        """Both values as JSON that is safe to show; long texts from just before they differ."""
        start = 0
        if isinstance(self.before, str) and isinstance(self.after, str):
            pairs = zip(self.before, self.after, strict=False)
            shorter = min(len(self.before), len(self.after))
            place = next((n for n, (one, other) in enumerate(pairs) if one != other), shorter)
            longer = max(len(self.before), len(self.after))
            start = max(0, place - _AROUND) if longer > limit else 0
        return _shown(self.before, start, limit), _shown(self.after, start, limit)


def same_value(left: object, right: object) -> bool:
    """Whether two JSON values without parts are equal: unlike in Python, true is not 1."""
    return isinstance(left, bool) is isinstance(right, bool) and left == right


def differences(
    before: Any,
    after: Any,
    *,
    same: _Same = same_value,
    in_lists: bool = True,
    depth: int = _DEEP,
    missing: Any = ABSENT,
) -> Iterator[JsonDifference]:
    """The places where two JSON values differ, deepest first, in the order of the first one.

    Args:
        before: The first value.
        after: The second value.
        same: Whether two values that are not both objects or both lists are equal.
        in_lists: Whether lists are compared item by item; else a list differs as a whole.
        depth: Levels below which values are compared as a whole.
        missing: The value that a key of only one object has in the other.
    """

    def walk(old: Any, new: Any, path: str, levels: int) -> Iterator[JsonDifference]:
        if levels and isinstance(old, dict) and isinstance(new, dict):
            one, other = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
            for key in (*one, *(key for key in other if key not in one)):
                place = f"{path}.{key}" if path else str(key)
                yield from walk(one.get(key, missing), other.get(key, missing), place, levels - 1)
        elif levels and in_lists and isinstance(old, list) and isinstance(new, list):
            items: tuple[list[Any], list[Any]] = (cast("list[Any]", old), cast("list[Any]", new))
            for number, (one, other) in enumerate(zip_longest(*items, fillvalue=ABSENT)):
                yield from walk(one, other, f"{path}[{number}]", levels - 1)
        elif not same(cast("object", old), cast("object", new)):
            yield JsonDifference(path, old, new)

    yield from walk(before, after, "", depth)


def first_difference(before: Any, after: Any) -> JsonDifference | None:
    """The first of the `differences`; None for equal values."""
    return next(differences(before, after), None)


def merge_patch(target: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """`target` changed by `patch`: a null removes a key, an object merges, all else replaces."""
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            old = result.get(key)
            base = cast("Mapping[str, Any]", old if isinstance(old, Mapping) else {})
            result[key] = merge_patch(base, cast("Mapping[str, Any]", value))
        else:
            result[key] = value
    return result


def diff_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The smallest patch for which `merge_patch(before, patch) == after`.

    Nulls cannot be values in a merge patch: `after` must hold none outside lists.
    """
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        if key in before and _same_json(before[key], value):
            continue
        old = before.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            patch[key] = diff_patch(
                cast("Mapping[str, Any]", old), cast("Mapping[str, Any]", value)
            )
        else:
            patch[key] = value
    return patch


def _same_json(left: Any, right: Any) -> bool:
    """Equal as JSON in every part."""
    if type(left) is type(right) and isinstance(left, str | int):
        return left == right
    return left is right or json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def _shown(value: Any, start: int, limit: int) -> str:
    if value is ABSENT:
        return repr(value)
    part: Any = value[start:] if isinstance(value, str) else value
    text = clip(json.dumps(part, ensure_ascii=False, default=str), limit)
    return f"{'…' if start else ''}{visible(text)}"
