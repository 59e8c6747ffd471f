"""JSON merge patches (RFC 7396): how a change of state is written down."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast


def merge_patch(target: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """`target` changed by `patch`: a null removes a key, an object merges, all else replaces."""
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            old = result.get(key)
            empty: Mapping[str, Any] = {}
            base = cast("Mapping[str, Any]", old) if isinstance(old, Mapping) else empty
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
        if key in before and _same(before[key], value):
            continue
        old = before.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            patch[key] = diff_patch(
                cast("Mapping[str, Any]", old), cast("Mapping[str, Any]", value)
            )
        else:
            patch[key] = value
    return patch


def _same(left: Any, right: Any) -> bool:
    """Equal as JSON: unlike in Python, true is not 1."""
    if type(left) is type(right) and isinstance(left, str | int):
        return left == right
    return left is right or json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)
