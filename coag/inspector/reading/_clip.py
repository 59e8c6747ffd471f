"""Foreign text and values in a bounded number of characters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any, cast

LINE = 300
"""Characters of a text in a row."""
_WIDE, _DEEP = 40, 6
"""How many items of a list or an object, and how many levels of them, are shown in a row."""
_READ = 20_000
"""Characters of a text that are read as JSON."""
_DECODER = json.JSONDecoder()


def clip(text: str, limit: int) -> str:
    """The beginning of a text, with a note of how much is missing.

    It costs the same however long the text is. Control characters stay: whoever shows it must
    make them visible.

    Args:
        text: Any text out of a log.
        limit: Characters kept.
    """
    if len(text) <= limit:
        return text
    return f"{text[:limit]} [… {len(text) - limit:,} more characters]"


def in_a_line(text: str, limit: int = LINE) -> str:
    """The beginning of a text with every run of blanks and line breaks as one blank."""
    if len(text) <= 2 * limit:
        return clip(" ".join(text.split()), limit)
    line = " ".join(text[: 2 * limit].split())
    return f"{line[:limit]} [… {len(text) - limit:,} more characters]"


def value_in_a_line(value: Any, limit: int = LINE) -> str:
    """A JSON value on one line; what is long or deep within it is cut first."""
    return in_a_line(json.dumps(_bounded(value, limit, _DEEP), ensure_ascii=False), limit)


def told_in_a_line(text: str, limit: int = LINE) -> str:
    """What came back, on one line: of a JSON object its fields, as `ok true · battery 17`.

    Fields without a value are left out; of what follows the object an ellipsis tells. Other texts
    stay as they are.
    """
    head = text[:_READ].lstrip()
    if not head.startswith("{"):
        return in_a_line(text, limit)
    try:
        value, end = _DECODER.raw_decode(head)
    except (ValueError, RecursionError):
        return in_a_line(text, limit)
    told = {name: item for name, item in cast("dict[str, Any]", value).items() if item is not None}
    if not told:
        return in_a_line(text, limit)
    some = list(islice(told.items(), _WIDE))
    fields = [f"{in_a_line(name, limit)} {_plain(item, limit)}" for name, item in some]
    if len(told) > len(some):
        fields.append(f"{len(told) - len(some):,} more fields")
    line = in_a_line(" · ".join(fields), limit)
    rest = head[end:].strip() or text[_READ:]
    return f"{line} …" if rest and len(line) <= limit else line


def call_in_a_line(name: str, arguments: Mapping[str, Any] | None, limit: int = LINE) -> str:
    """An action with its arguments on one line; without empty ones."""
    shown = in_a_line(name, limit)
    return f"{shown} {value_in_a_line(arguments, limit)}" if arguments else shown


def _plain(value: Any, limit: int) -> str:
    return in_a_line(value, limit) if isinstance(value, str) else value_in_a_line(value, limit)


def _bounded(value: Any, limit: int, depth: int) -> Any:
    if isinstance(value, str):
        return clip(value, limit)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        shown = [_bounded(item, limit, depth - 1) for item in items[:_WIDE]] if depth else []
        return shown + (["…"] if len(items) > len(shown) else [])
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        some = islice(fields.items(), _WIDE if depth else 0)
        kept = {clip(key, limit): _bounded(item, limit, depth - 1) for key, item in some}
        return kept | ({"…": len(fields) - len(kept)} if len(fields) > len(kept) else {})
    return value
