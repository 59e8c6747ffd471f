"""From what a tool returned to an `ActionResult`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any, cast

from coag.context import shortened
from coag.schema import ActionResult, Failure, well_formed

OUTPUT_CHARACTERS = 48_000
"""Characters of a tool's output that are kept where nothing says how much fits; of a longer one
the beginning and the end, with a note between them."""
DATA_CHARACTERS = 16_000
"""Characters of JSON that a tool's structured data may have; larger data is not kept."""
DATA_DEPTH = 50
"""Levels of lists and objects that a tool's structured data may have; deeper data is not kept."""


def cap_text(text: str, limit: int = OUTPUT_CHARACTERS) -> str:
    """The text, or its beginning and its end with a note of how much was left out."""
    return shortened(text, limit)


def read_result(
    text: str,
    *,
    is_error: bool = False,
    limit: int = OUTPUT_CHARACTERS,
    name: str | None = None,
) -> ActionResult:
    """A tool's text as a result.

    A tool may say how it went in JSON, as its whole output or its first line:
    `{"ok": false, "failure": "deterministic", "reason": "..."}`. `ok: false` is a failure even
    though the tool returned; `failure` tells whether repeating the call can help.

    The JSON is kept as `data` within `DATA_CHARACTERS` and `DATA_DEPTH`, and without NaN and
    infinities, which are no JSON; else `data` is None. What it tells of failure counts anyway.

    Args:
        text: What the tool returned.
        is_error: Whether it said that it failed.
        limit: Characters that are kept; of a longer text the beginning and the end.
        name: What the agent can ask for the rest by; None where it cannot.
    """
    text = well_formed(text)
    told = _json_of(text)
    failed, failure = is_error, None
    if isinstance(told, Mapping):
        said = cast("Mapping[str, Any]", told)
        failed = failed or said.get("ok") is False
        if failed and said.get("failure") in tuple(Failure):
            failure = Failure(said["failure"])
    content = shortened(text, limit, name)
    return ActionResult(
        content=content,
        output=None if content == text else text,
        data=_bounded(told),
        is_error=failed,
        failure=failure,
    )


def _json_of(text: str) -> Any:
    """The JSON that the text or its first line is, if it is an object or a list."""
    for part in (text, text.partition("\n")[0]):
        stripped = part.strip()
        if not stripped.startswith(("{", "[")):
            continue
        try:
            return json.loads(stripped)
        except (ValueError, RecursionError):  # no JSON, an integer without end, brackets neither
            continue
    return None


def _bounded(value: Any) -> Any:
    """The value with well-formed texts, or None where it is no JSON within our bounds."""
    try:
        clean = _clean(value, DATA_DEPTH)
        size = len(json.dumps(clean, ensure_ascii=False))
    except ValueError:
        return None
    return clean if size <= DATA_CHARACTERS else None


def _clean(value: Any, levels: int) -> Any:
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, float) and not isfinite(value):
        raise ValueError(f"{value!r} is no JSON.")
    if not isinstance(value, dict | list):
        return value
    if not levels:
        raise ValueError(f"There are more than {DATA_DEPTH} levels.")
    if isinstance(value, list):
        return [_clean(item, levels - 1) for item in cast("list[Any]", value)]
    items = cast("dict[str, Any]", value).items()
    return {well_formed(key): _clean(item, levels - 1) for key, item in items}
