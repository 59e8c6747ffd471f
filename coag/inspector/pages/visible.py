"""Making every character of a foreign text visible. All HTML that is not a template is here."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from markupsafe import Markup, escape

from coag._util.text import UNSEEN

_UNSEEN = re.compile(f"[{UNSEEN}]")
_CONTROLS = (
    *("NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL"),
    *("BS", "TAB", "LF", "VT", "FF", "CR", "SO", "SI"),
    *("DLE", "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB"),
    *("CAN", "EM", "SUB", "ESC", "FS", "GS", "RS", "US"),
)
"""What the first 32 characters are called."""
_SHORT = {
    0x200B: "ZWSP",
    0x200E: "LRM",
    0x200F: "RLM",
    0x061C: "ALM",
    0x2028: "LSEP",
    0x2029: "PSEP",
    0x202A: "LRE",
    0x202B: "RLE",
    0x202C: "PDF",
    0x202D: "LRO",
    0x202E: "RLO",
    0x2066: "LRI",
    0x2067: "RLI",
    0x2068: "FSI",
    0x2069: "PDI",
    0xFEFF: "BOM",
    0x00AD: "SHY",
    0x007F: "DEL",
}


@lru_cache(maxsize=512)
def _box(character: str) -> Markup:
    """A small box with the name of a character that cannot be seen."""
    code = ord(character)
    if code < 0x20:
        short = _CONTROLS[code]
    elif 0xE0020 <= code < 0xE007F:
        short = f"tag {chr(code - 0xE0000)}"
    else:
        short = _SHORT.get(code, f"U+{code:04X}")
    name = unicodedata.name(character, "")
    title = f"U+{code:04X} {name}".strip()
    return Markup('<span class="ctl" title="{}">{}</span>').format(title, short)


def visible(text: object) -> Markup:
    """The text, escaped, with every character named that could not be seen or does something.

    It costs as much as the text is long, and more for what must be named: cut it before.
    """
    whole = str(text)
    pieces: list[str] = []
    at = 0
    for found in _UNSEEN.finditer(whole):
        pieces += (escape(whole[at : found.start()]), _box(found.group()))
        at = found.end()
    pieces.append(escape(whole[at:]))
    return Markup("".join(pieces))


def named(text: object, limit: int = 80) -> str:
    """The same for where only plain text can stand, as in a title: the characters are named.

    Args:
        text: Any text out of a log.
        limit: Characters of it that are kept; an ellipsis tells of more.
    """
    whole = str(text)
    kept = whole if len(whole) <= limit else f"{whole[:limit]}\u2026"
    return _UNSEEN.sub(lambda found: f"[U+{ord(found.group()):04X}]", kept)


def drawing(svg: str) -> Markup:
    """A picture that `coag.inspector.drawing` made: the one HTML that is taken as it is."""
    return Markup(svg)
