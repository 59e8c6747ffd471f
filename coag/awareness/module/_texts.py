"""Texts from outside, short enough to be one item."""

from __future__ import annotations

from coag.schema import one_line, well_formed

_SHORT = 120
"""Characters of what was said or came back."""


def short(text: str, limit: int = _SHORT, otherwise: str = "(nothing that can be read)") -> str:
    """The beginning of a text on one line; something in its place where nothing can be read."""
    return one_line(well_formed(text), limit) or otherwise
