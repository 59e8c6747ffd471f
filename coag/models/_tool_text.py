"""Tool calls that a model wrote as text, because its server did not take them out of it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, cast

_TAGGED = re.compile(r"<(tool_call|tools?|function_call)>\s*(.*?)\s*</\1>", re.DOTALL)
_FENCED = re.compile(r"\A```[a-z_]*\s*(.*?)\s*```\Z", re.DOTALL)
_LONGEST = 50_000
"""Characters of a text beyond which it is no call."""


def calls_in_text(text: str, names: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Names and arguments of the calls that the whole text consists of; none if it is a text.

    Read are `{"name": ..., "arguments": {...}}` (or `parameters`), a list of those, several
    one after the other, each also in a code fence or in tags as Qwen and Hermes write them. All
    of them must name tools that exist: any other JSON may be the answer that was asked for.
    """
    stripped = text.strip()
    if not names or len(stripped) > _LONGEST or stripped[:1] not in ("{", "[", "<", "`"):
        return ()
    parts = _parts(stripped)
    calls = [_call(value) for part in parts for value in _values(part)]
    if not calls or any(call is None or call[0] not in names for call in calls):
        return ()
    return tuple(call for call in calls if call is not None)


def _parts(text: str) -> list[str]:
    tagged = _TAGGED.findall(text)
    if tagged and not _TAGGED.sub("", text).strip():
        return [inner for _, inner in tagged]
    fenced = _FENCED.match(text)
    return _parts(fenced[1]) if fenced and fenced[1] != text else [text]


def _values(text: str) -> list[Any]:
    """The JSON values that the text is, one after the other; `[None]` if it is something else."""
    decoder, values, rest = json.JSONDecoder(), list[Any](), text.strip()
    while rest:
        try:
            value, end = decoder.raw_decode(rest)
        except (ValueError, RecursionError):
            return [None]
        values += cast("list[Any]", value) if isinstance(value, list) else [value]
        rest = rest[end:].strip().removeprefix(",").strip()
    return values


def _call(value: Any) -> tuple[str, str] | None:
    if not isinstance(value, dict):
        return None
    told = cast("dict[str, Any]", value)
    if isinstance(told.get("function"), dict):
        told = cast("dict[str, Any]", told["function"])
    name, given = told.get("name"), told.get("arguments", told.get("parameters", {}))
    if not isinstance(name, str) or set(told) - {"name", "arguments", "parameters", "id", "type"}:
        return None
    return name, given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
