"""Foreign texts and values in a bounded number of characters."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, cast

from coag._util.json_diff import JsonDifference, differences
from coag._util.text import clip

LINE = 300
"""Characters of a text in a row."""
_WIDE, _DEEP = 40, 6
"""How many items of a list or an object, and how many levels of them, are shown in a row."""
_READ = 20_000
"""Characters of a text that are read as JSON."""
_MOST_CHANGES, _DEEPEST = 200, 20
"""Changes that are given, and levels below which a field is compared as a whole."""


def in_a_line(text: str, limit: int = LINE) -> str:
    """The beginning of a text with every run of blanks and line breaks as one blank."""
    line = " ".join(text[: 2 * limit].split())
    complete = len(text) <= 2 * limit
    return clip(line, limit) if complete else f"{line[:limit]} [… {len(text) - limit:,} more]"


def value_in_a_line(value: Any, limit: int = LINE) -> str:
    """A JSON value on one line; what is long or deep within it is cut first."""
    return in_a_line(json.dumps(bounded(value, limit), ensure_ascii=False), limit)


def fields_in_a_line(text: str, limit: int = LINE) -> str:
    """A result on one line; of a JSON object its fields, as `ok true · battery 17`.

    Fields without a value are left out; an ellipsis replaces what follows the object. Other texts
    are not changed.
    """
    head = text[:_READ].lstrip()
    fields: dict[str, Any] = {}
    if head.startswith("{"):
        try:
            value, end = json.JSONDecoder().raw_decode(head)
        except (ValueError, RecursionError):
            return in_a_line(text, limit)
        fields = {name: item for name, item in value.items() if item is not None}
        head = head[end:]
    if not fields:
        return in_a_line(text, limit)
    parts = [
        f"{in_a_line(name, limit)} "
        + (in_a_line(item, limit) if isinstance(item, str) else value_in_a_line(item, limit))
        for name, item in islice(fields.items(), _WIDE)
    ]
    more = len(fields) - _WIDE
    line = in_a_line(" · ".join([*parts, *([f"{more:,} more fields"] if more > 0 else [])]), limit)
    return f"{line} …" if (head.strip() or text[_READ:]) and len(line) <= limit else line


def call_in_a_line(name: str, arguments: Mapping[str, Any] | None) -> str:
    """An action with its arguments on one line; without empty ones."""
    action = in_a_line(name, LINE)
    return f"{action} {value_in_a_line(arguments, LINE)}" if arguments else action


def named_values(arguments: Mapping[str, Any]) -> str:
    """Arguments on one line, as `direction=west, far=true`."""
    pairs = [
        f"{name}={value if isinstance(value, str) else value_in_a_line(value, LINE)}"
        for name, value in islice(arguments.items(), _WIDE)
    ]
    return clip(", ".join(pairs), LINE)


def bounded(value: Any, limit: int, depth: int = _DEEP, wide: int = _WIDE) -> Any:
    """A JSON value in which what is long, deep or many is cut and counted."""
    if isinstance(value, str):
        return clip(value, limit)
    if isinstance(value, list | tuple):
        items = cast("Sequence[Any]", value)
        cut = [bounded(item, limit, depth - 1, wide) for item in items[:wide]] if depth else []
        return cut + (["…"] if len(items) > len(cut) else [])
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        some = islice(fields.items(), wide if depth else 0)
        cut = {clip(key, limit): bounded(item, limit, depth - 1, wide) for key, item in some}
        return cut | ({"…": len(fields) - len(cut)} if len(fields) > len(cut) else {})
    return value


def object_of(value: object) -> dict[str, Any]:
    """A JSON value where it is an object; else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[JsonDifference, ...]:
    """The fields that were added, changed or removed, by dotted path; lists count as one.

    A field that is not there has the value None. Of many only the first are given.
    """
    found = differences(before, after, in_lists=False, depth=_DEEPEST + 1, missing=None)
    return tuple(islice(found, _MOST_CHANGES))
