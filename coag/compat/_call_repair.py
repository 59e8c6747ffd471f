"""Mending the tool calls of an answer, so that whoever runs them is not led astray.

Two rules. Nothing is guessed that could change what a tool does: a value that was cut off stays
unusable, only what stands around whole values is mended. And what stays unusable is no JSON at
all, because AutoGen's `AssistantAgent` answers that with an error, while JSON that is no object
makes it wait for ever.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from autogen_core import FunctionCall

from coag.models import repaired_object

_FENCE = re.compile(r"```[\w-]*")
_CLOSED = re.compile(r'(?:["}\]]|\b(?:true|false|null))\Z')
_MAX_DEPTH = 100
"""How many brackets are added that are missing at an end."""
_UNUSABLE = "Unusable arguments:"
_SHOWN = 300
"""Characters of unusable arguments that are shown to the model again."""


@dataclass(frozen=True, slots=True)
class Mended:
    """What became of something, and what was wrong with it."""

    text: str
    fault: str | None = None
    """None if nothing was."""


def mend_arguments(given: object, *, truncated: bool = False, takes_none: bool = False) -> Mended:
    """A call's arguments as a JSON object where that is safe, else as text that is no JSON.

    Args:
        given: As they came; ought to be a JSON object in a string, and is often enough a
            dictionary, None, empty, in a code fence, or JSON within a string.
        truncated: The answer was cut off at the token limit: no missing bracket is added.
        takes_none: The tool has no arguments, so that nothing is lost if they are left out.
    """
    mended = _mended(_as_text(given), truncated)
    if takes_none and _object(mended.text) is None:
        return Mended("{}", mended.fault or f"arguments for a tool without any: {given!r:.80}")
    return mended


def mend_calls(
    calls: Sequence[FunctionCall],
    *,
    without_arguments: Collection[str] = (),
    used_ids: Collection[str] = (),
    truncated: bool = False,
) -> tuple[list[FunctionCall], list[str]]:
    """The calls with usable arguments and an id of their own each, and what was wrong.

    Args:
        calls: As they came.
        without_arguments: Names of tools that take none.
        used_ids: Ids of earlier calls in the dialogue.
        truncated: The answer was cut off at the token limit.
    """
    taken = set(used_ids)
    mended: list[FunctionCall] = []
    faults: list[str] = []
    for call in calls:
        arguments = mend_arguments(
            call.arguments, truncated=truncated, takes_none=call.name in without_arguments
        )
        call_id = _free_id(call.id, taken)
        taken.add(call_id)
        if arguments.fault:
            faults.append(f"{call.name}: {arguments.fault}")
        if call_id != call.id:
            faults.append(f"{call.name}: call id {call.id!r} was empty or taken")
        mended.append(FunctionCall(id=call_id, name=call.name or "", arguments=arguments.text))
    return mended, faults


def _as_text(given: object) -> str:
    if given is None:
        return ""
    if isinstance(given, str):
        return given
    try:
        return json.dumps(given, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return repr(given)


def _mended(text: str, truncated: bool) -> Mended:
    if not text.strip():
        return Mended("{}", "no arguments were given" if text else None)
    try:
        value: Any = json.loads(text)
    except json.JSONDecodeError:
        return _from_broken(text, truncated)
    except (ValueError, RecursionError) as error:
        return _unusable(text, f"JSON that cannot be read ({type(error).__name__})")
    if isinstance(value, dict):
        return Mended(text)
    if value is None:
        return Mended("{}", "null instead of a JSON object")
    if isinstance(value, str) and _object(value) is not None:
        return Mended(value, "a JSON object within a string")
    return _unusable(text, f"a JSON {_KINDS[type(value)]}")


_KINDS: Mapping[type, str] = {
    list: "list",
    str: "string",
    bool: "truth value",
    int: "number",
    float: "number",
}


def _from_broken(text: str, truncated: bool) -> Mended:
    """The one object in the text, or the text as it is."""
    start = text.find("{")
    if start < 0 or text.startswith(_UNUSABLE):
        return Mended(text, "no JSON")
    inner = _unfenced(text)
    found = _alone(inner)
    if found is not None:
        return Mended(found, "a JSON object among other text")
    body = inner[inner.find("{") :].rstrip()
    closed = None if truncated else _closed(body)
    if closed is not None:
        return Mended(closed, "a JSON object without its last bracket")
    repaired = _repaired(body)
    if repaired is not None:
        return Mended(repaired, "a JSON object with faults of form")
    return Mended(text, "no JSON, or cut off")


def _unfenced(text: str) -> str:
    stripped = text.strip()
    fence = _FENCE.match(stripped)
    return text if fence is None else stripped[fence.end() :].removesuffix("```").strip()


def _alone(text: str) -> str | None:
    """The object that begins with the first brace, if no other begins behind it."""
    start = text.find("{")
    try:
        value, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return text[start:end] if isinstance(value, dict) and "{" not in text[end:] else None


def _closed(body: str) -> str | None:
    """The object with the braces that are missing at its end, if its last value is whole."""
    depth, in_string, _ = _nesting(body)
    if in_string or not 0 < depth <= _MAX_DEPTH or not _CLOSED.search(body):
        return None
    closed = body + "}" * depth
    return closed if _object(closed) is not None else None


def _nesting(body: str) -> tuple[int, bool, int]:
    """How many brackets are open at the end, whether a string is, and how often none was."""
    depth, in_string, escaped, closings = 0, False, False, 0
    for character in body:
        if escaped:
            escaped = False
        elif character == "\\" and in_string:
            escaped = True
        elif character == '"':
            in_string = not in_string
        elif not in_string:
            depth += (character in "{[") - (character in "}]")
            closings += character in "}]" and depth == 0
    return depth, in_string, closings


def _repaired(body: str) -> str | None:
    """What `json-repair` makes of one object that is all there."""
    if not body.endswith("}") or _nesting(body) != (0, False, 1):
        return None
    value = repaired_object(body)
    return json.dumps(value, ensure_ascii=False) if value else None


def _object(text: str) -> dict[str, Any] | None:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _unusable(text: str, what: str) -> Mended:
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return Mended(f"{_UNUSABLE} a JSON object is needed, not {what}: {shown}", what)


def _free_id(given: object, taken: Collection[str]) -> str:
    stem = given if isinstance(given, str) and given.strip() else "call"
    if stem is given and stem not in taken:
        return stem
    number = 1
    while f"{stem}-{number}" in taken:
        number += 1
    return f"{stem}-{number}"
