"""Tool calls that a model wrote as text, because its server did not take them out of it."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterable
from typing import Any, cast

_TAG = re.compile(r"\s*<(tool_call|tools?|function_call)>")
_FENCE = re.compile(r"```[a-z_]*")
_BETWEEN = re.compile(r"\s*,?\s*")
_WRITTEN_BREAK = re.compile(r"\\[nrt]")
_LONGEST = 50_000
"""Characters of a text beyond which it is no call."""

_LOOKED_FOR = 200
"""Places of a shown text at which an object is looked for."""


def calls_in_text(text: str, names: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Names and arguments of the calls that the whole text consists of; none if it is a text.

    Read are `{"name": ..., "arguments": {...}}` (or `parameters`), a list of those, several
    one after the other, each also in a code fence, in doubled braces, or in tags as Qwen and
    Hermes write them. All of them must name tools that exist: any other JSON may be the answer
    that was asked for.
    """
    stripped = text.strip()
    if not names or len(stripped) > _LONGEST or stripped[:1] not in ("{", "[", "<", "`"):
        return ()
    parts = _parts(stripped)
    calls = [_call(value) for part in parts for value in _values(part)]
    if not calls or any(call is None or call[0] not in names for call in calls):
        return ()
    return tuple(call for call in calls if call is not None)


def repeats(text: str, shown: Iterable[str]) -> bool:
    """Whether a call in a text stands in what was shown, however it is spelled there."""
    parts, texts = _parts(text.strip()), tuple(shown)
    calls = [_core(part) for part in parts]
    if any(call in core for core in map(_core, texts) for call in calls):
        return True
    asked = {_canonical(value) for part in parts for value in _values(part)}
    return any(not asked.isdisjoint(_objects(one)) for one in texts)


def _objects(text: str) -> set[str]:
    """The JSON objects that stand in a text, as far as they are looked for, in one spelling."""
    found, decoder, position = set[str](), json.JSONDecoder(), -1
    for _ in range(_LOOKED_FOR):
        position = text.find("{", position + 1)
        if position < 0:
            break
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            continue
        waiting: list[Any] = [value]
        while waiting:
            one = waiting.pop()
            if isinstance(one, dict):
                held = cast("dict[str, Any]", one)
                found.add(_canonical(held))
                waiting += held.values()
            elif isinstance(one, list):
                waiting += cast("list[Any]", one)
        position = end - 1
    return found


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _core(text: str) -> str:
    """A text's letters and digits in one case, without line breaks that JSON has written out."""
    folded = unicodedata.normalize("NFKC", _WRITTEN_BREAK.sub("", text)).casefold()
    return "".join(filter(str.isalnum, folded))


def _parts(text: str) -> list[str]:
    """What stands in tags, also in a fence, if that is all of the text; else the text itself."""
    fence = _FENCE.match(text)
    if fence is not None and text.endswith("```") and len(text) >= fence.end() + len("```"):
        text = text[fence.end() : -len("```")].strip()
    return [_undoubled(part) for part in _tagged(text) or [text]]


def _undoubled(text: str) -> str:
    """The text without braces that a chat template has doubled around a call: `{{...}}`."""
    return text[1:-1] if text.startswith("{{") and text.endswith("}}") else text


def _tagged(text: str) -> list[str]:
    """What stands in each tag; nothing if anything stands outside. Looks at each letter once."""
    parts: list[str] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        tag = _TAG.match(text, position)
        closing = "" if tag is None else f"</{tag[1]}>"
        close = -1 if tag is None else text.find(closing, tag.end())
        if tag is None or close < 0:
            return []
        parts.append(text[tag.end() : close].strip())
        position = close + len(closing)
    return parts


def _values(text: str) -> list[Any]:
    """The JSON values that the text is, one after the other; `[None]` if it is something else."""
    decoder, values = json.JSONDecoder(), list[Any]()
    position, end = 0, len(text)
    while position < end:
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return [None]
        values += cast("list[Any]", value) if isinstance(value, list) else [value]
        between = _BETWEEN.match(text, position)
        position = between.end() if between is not None else position
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
