"""From what a tool returned to an `ActionResult`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from coag.schema import ActionResult, Failure, well_formed

OUTPUT_CHARACTERS = 4_000
"""Characters of a tool's output that are kept; the rest is cut with a note."""


def cap_text(text: str, limit: int = OUTPUT_CHARACTERS) -> str:
    """The text, or its beginning with a note of how much was cut."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[… {len(text) - limit} of {len(text)} characters cut]"


def read_result(
    text: str, *, is_error: bool = False, limit: int = OUTPUT_CHARACTERS
) -> ActionResult:
    """A tool's text as a result.

    A tool may say how it went in JSON, as its whole output or its first line:
    `{"ok": false, "failure": "deterministic", "reason": "..."}`. `ok: false` is a failure even
    though the tool returned; `failure` tells whether repeating the call can help.
    """
    text = well_formed(text)
    data = _json_of(text)
    failed, failure = is_error, None
    if isinstance(data, Mapping):
        told = cast("Mapping[str, Any]", data)
        failed = failed or told.get("ok") is False
        if failed and told.get("failure") in tuple(Failure):
            failure = Failure(told["failure"])
    return ActionResult(content=cap_text(text, limit), data=data, is_error=failed, failure=failure)


def _json_of(text: str) -> Any:
    """The JSON that the text or its first line is, if it is an object or a list."""
    for part in (text, text.partition("\n")[0]):
        stripped = part.strip()
        if not stripped.startswith(("{", "[")):
            continue
        try:
            return json.loads(stripped)
        except (json.JSONDecodeError, RecursionError):
            continue
    return None
