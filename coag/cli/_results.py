"""What actions brought back, in a few words that two runs can be compared by."""

from __future__ import annotations

import json
from typing import Any, cast

from coag.schema import one_line

_LONGEST = 160
"""Characters of a result that are shown."""


def result_beside(result: str, *others: str) -> str:
    """A result, cleaned and cut, beside others that it is compared with.

    Of a JSON object, the fields in which it differs from the first of the others that is one and
    differs; where there is none, its end, as the beginning is mostly alike. What stands behind an
    object is left out. Of a text the beginning.

    Args:
        result: What came back.
        others: What came back elsewhere: in the other run, in the cycle before.
    """
    ours = None if len(result) <= _LONGEST else _object(result)
    if ours is None:
        return one_line(result, _LONGEST)
    for theirs in filter(None, map(_object, others)):
        different = [
            f"{name}: {value}" for name, value in ours.items() if theirs.get(name) != value
        ]
        if different:
            return one_line(", ".join(different), _LONGEST)
    line = one_line(", ".join(f"{name}: {value}" for name, value in ours.items()), len(result) * 2)
    cut = len(line) - _LONGEST
    return line if cut <= 0 else f"[{cut} more …] {line[-_LONGEST:]}"


def _object(text: str) -> dict[str, str] | None:
    """The fields of the JSON object that a text begins with, each as JSON; None without one."""
    try:
        parsed, _ = json.JSONDecoder().raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return None
    return _fields(cast("dict[str, Any]", parsed)) if isinstance(parsed, dict) else None


def _fields(parsed: dict[str, Any]) -> dict[str, str]:
    """The fields, those of objects within by their own; no deeper than that."""
    found: dict[str, str] = {}
    for name, value in parsed.items():
        if isinstance(value, dict):
            within = cast("dict[str, Any]", value)
            found |= {f"{name}.{key}": _json(one) for key, one in within.items()}
        else:
            found[name] = _json(value)
    return found


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
