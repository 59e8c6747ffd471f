"""Texts from outside, short enough to be one item."""

from __future__ import annotations

from coag.schema import one_line, well_formed

_SHORT = 120
"""Characters of what was said or came back."""


_BETWEEN = " … "


def both_ends(text: str, limit: int, otherwise: str) -> str:
    """A text on one line, of one that is longer its beginning and its end.

    What a long request wants stands as often at its end as at its beginning.
    """
    line = one_line(well_formed(text), 10 * len(text) + 1)
    if len(line) <= limit:
        return line or otherwise
    end = (limit - len(_BETWEEN)) // 2
    if end < 1:
        return line[:limit]
    return f"{line[: limit - len(_BETWEEN) - end].rstrip()}{_BETWEEN}{line[-end:].lstrip()}"


def short(text: str, limit: int = _SHORT, otherwise: str = "(nothing that can be read)") -> str:
    """The beginning of a text on one line; something in its place where nothing can be read."""
    return one_line(well_formed(text), limit) or otherwise
