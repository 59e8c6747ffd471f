"""Making foreign text safe for a terminal, and short."""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, links, clipboard
    r"|[\x1b\x9b]\[?[0-?]*[ -/]*[@-~]"  # CSI and short ones: colours, movement
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""All but tab and newline; with the marks that turn the direction of writing."""


def cleaned(text: str) -> str:
    """The text without terminal escapes and control characters; tabs and newlines stay."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


def one_line(text: str, limit: int = 300) -> str:
    """The beginning of a foreign text, cleaned, on one line.

    Args:
        text: Any text out of a log.
        limit: Characters kept; what is missing is counted.
    """
    line = " ".join(cleaned(text).split())
    if len(line) <= limit:
        return line
    return f"{line[:limit]} [… {len(line) - limit} more]"


def escaped_json(line: str) -> str:
    """A line of JSON of the same value in which no character can steer a terminal."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found.group()):04x}", line)
