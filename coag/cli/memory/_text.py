"""Texts of records for a terminal: what does not show is written out."""

from __future__ import annotations

import unicodedata
from datetime import datetime

from rich.console import Console
from rich.text import Text

_JOINERS = "\u200c\u200d"
"""Invisible, and part of how Persian and emoji are written."""
_UNSHOWN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
DIM = "bright_black"


def visible(text: str) -> str:
    """A foreign text in which no character steers a terminal, turns the writing or hides."""
    if text.isprintable():
        return text
    return "".join(map(_shown, text))


def line(text: str, limit: int = 300) -> str:
    """The beginning of a foreign text on one line."""
    whole = " ".join(visible(text).split())
    return whole if len(whole) <= limit else f"{whole[:limit]} [… {len(whole) - limit} more]"


def day(moment: datetime) -> str:
    """A date, for tables."""
    return f"{moment:%Y-%m-%d}"


def minute(moment: datetime) -> str:
    """A point in time."""
    return f"{moment:%Y-%m-%d %H:%M}{'Z' if not moment.utcoffset() else f'{moment:%z}'}"


def screen(*, errors: bool = False) -> Console:
    """Where a command prints; nothing in a text is markup."""
    return Console(stderr=errors, highlight=False, markup=False, emoji=False)


def cell(text: str, style: str = "", limit: int = 300) -> Text:
    """One cell of a table, cut by the table where it is too long."""
    return Text(line(text, limit), style=style, no_wrap=True, overflow="ellipsis")


def _shown(sign: str) -> str:
    if sign in "\n\t" or sign in _JOINERS:
        return sign
    hidden = unicodedata.category(sign) in _UNSHOWN or 0xE0100 <= ord(sign) <= 0xE01EF
    return f"<U+{ord(sign):04X}>" if hidden else sign
