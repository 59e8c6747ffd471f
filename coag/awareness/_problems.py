"""What a validation found, as a place and a sentence."""

from __future__ import annotations

from pydantic import ValidationError

from coag.schema import one_line

from .state import NOT_BLANK

_SHOWN = 80
"""Characters of a wrong value."""


def where_wrong(error: ValidationError) -> tuple[str, str]:
    """The path of the first thing that is wrong, and a sentence on it, its value and the others."""
    found = error.errors(include_url=False, include_context=False)
    first = found[0]
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "string_pattern_mismatch" and NOT_BLANK in message:
        message = "Should say something, not be empty or blank"
    given = (
        "" if first["type"] == "missing" else f", given {one_line(repr(first['input']), _SHOWN)}"
    )
    rest = [_path(other["loc"]) for other in found[1:6]]
    more = f" Also wrong: {', '.join(rest)}." if rest else ""
    return _path(first["loc"]), f"{message}{given}.{more}"


def _path(location: tuple[int | str, ...]) -> str:
    """The place as Python would write it: `goals[0].priority`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return "".join(parts).removeprefix(".")
