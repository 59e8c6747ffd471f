"""Foreign text as labels: short, harmless, and about as wide as there is room."""

from __future__ import annotations

import re
from unicodedata import combining, east_asian_width

from coag.schema import cleaned

_UNFIT = re.compile(
    "[\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff\U000e0000-\U000e0fff\u200b-\u200d\u2060\ufeff]"
)
"""What XML cannot hold, or nobody sees."""
_MARKS = 2
"""Marks that may stand on one character."""
_NARROW = frozenset("iljtfrI.,:;'|!()[]{} -`\"")
_JOINTS = "_(,=/."
"""Behind these a long name is broken."""


def label(text: str, limit: int) -> str:
    """The beginning of a foreign text, on one line, cut with an ellipsis.

    Args:
        text: Any text out of a log, however long.
        limit: Characters kept.
    """
    head = _UNFIT.sub("", cleaned(text[: 8 * limit + 64]))
    line = _with_few_marks(" ".join(head.split()))
    if len(line) > limit:
        return line[: limit - 1].rstrip() + "…"
    return f"{line}…" if len(text) > 8 * limit + 64 and line else line


def width_of(text: str, size: float) -> float:
    """About how wide a text is in pixels, in a usual sans-serif font of a size."""
    return sum(_share(character) for character in text) * size


def wrapped(text: str, width: float, size: float, lines: int) -> list[str]:
    """A text broken into a few lines; what has no room is cut with an ellipsis.

    Args:
        text: A label.
        width: Pixels that a line may be wide.
        size: Of the font, in pixels.
        lines: How many lines there may be.
    """
    told: list[str] = []
    rest = text
    while rest:
        if len(told) == lines - 1:
            return [*told, _fitting(rest, width, size, mark="…")]
        line = _line(rest, width, size)
        told.append(line.rstrip())
        rest = rest[len(line) :].lstrip()
    return told


def _line(text: str, width: float, size: float) -> str:
    """As much of a text as fits one line, up to a space where there is one near."""
    line = _fitting(text, width, size, mark="")
    if len(line) == len(text):
        return line
    space = line.rfind(" ") + 1
    if space > len(line) // 2:
        return line[:space]
    joint = max(space, *(line.rfind(mark) + 1 for mark in _JOINTS))
    return line[:joint] if joint > len(line) // 3 else line


def _fitting(text: str, width: float, size: float, *, mark: str) -> str:
    if width_of(text, size) <= width:
        return text
    room = width - width_of(mark, size)
    for count, character in enumerate(text):
        room -= _share(character) * size
        if room < 0:
            return text[: max(1, count)].rstrip() + mark if mark else text[: max(1, count)]
    return text


def _share(character: str) -> float:
    if combining(character):
        return 0.0
    if east_asian_width(character) in "WF":
        return 1.05
    if character in _NARROW:
        return 0.4
    return 0.76 if character.isupper() or character in "mw@%" else 0.63


def _with_few_marks(text: str) -> str:
    """Without the heaps of marks that reach over the lines above and below."""
    kept: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if combining(character) else 0
        if marks <= _MARKS:
            kept.append(character)
    return "".join(kept)
