"""Foreign text in a block: on one line, without anything that reads as a delimiter."""

from __future__ import annotations

import re

from coag.schema import cleaned, well_formed, without_tags

_GAP = r"[^\w\x21-\x7e]*"
"""Blanks, what a reader does not see, and whatever else is neither ASCII nor a letter or digit."""
_DELIMITER = re.compile(rf"<(?={_GAP}(?:/|sagen|data))", re.IGNORECASE)


def as_item(text: str) -> str:
    r"""The text as an item: one line, without control characters, unable to open or close a block.

    Nothing is cut. `<` before `/`, `sagen` or `data` becomes `<\`, a lone surrogate `?`.
    """
    if text.isascii() and text.isprintable() and not {"<", "&"} & set(text) and "  " not in text:
        return text.strip()  # nearly every text, and many times faster
    line = " ".join(cleaned(" ".join(well_formed(text).split())).split())
    return without_tags(_DELIMITER.sub(r"<\\", line))


def as_inline(text: str) -> str:
    """The text as one of several between commas: quoted where it has a comma or a quote itself."""
    line = as_item(text)
    if "," not in line and '"' not in line:
        return line
    return '"' + line.replace('"', "'") + '"'
