"""What actions brought back, in a few words that two runs can be compared by."""

from __future__ import annotations

import json
from typing import Any, cast

from ._text import one_line

_LONGEST = 160
"""Characters of a result that are shown."""


def result_beside(result: str, other: str) -> str:
    """A result, cleaned and cut, beside the one that the other run got.

    Of two JSON objects, the fields in which this one differs; of an object that has no other one
    beside it the end, as the beginning is mostly alike; of a text the beginning.

    Args:
        result: What came back.
        other: What came back in the other run; empty if nothing did.
    """
    if len(result) <= _LONGEST:
        return one_line(result)
    ours, theirs = _object(result), _object(other)
    if ours is None:
        return one_line(result, _LONGEST)
    if theirs is not None:
        different = [
            f"{name}: {value}" for name, value in ours.items() if theirs.get(name, "") != value
        ]
        if different:
            return one_line(", ".join(different), _LONGEST)
    line = one_line(result, len(result))
    cut = len(line) - _LONGEST
    return line if cut <= 0 else f"[{cut} … ] {line[-_LONGEST:]}"


def _object(text: str) -> dict[str, str] | None:
    """The fields of a JSON object by their paths, each as JSON; None for anything else."""
    try:
        parsed: Any = json.loads(text)
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
