"""Statements in other words than `_phrases`, written after the rules of interference were fixed.

Rules that know when a note is outdated look at how statements are worded. So they are measured on
wordings, too, that they were not written for: `held_out.toml` lists them.
"""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

from ._phrases import ATTRIBUTES

_WRITTEN = tomllib.loads(Path(__file__).with_name("held_out.toml").read_text(encoding="utf-8"))
OTHER_ATTRIBUTES = tuple(
    replace(one, plain=_WRITTEN["plain"][one.name], other=_WRITTEN["other"][one.name])
    for one in ATTRIBUTES
)
OTHER_READING: str = _WRITTEN["reading"]
PAIRS: tuple[tuple[str, str, str], ...] = tuple(
    (sort, earlier, later) for sort, notes in _WRITTEN["pairs"].items() for earlier, later in notes
)
"""What a later note does to an earlier one, and both."""
PAST: tuple[tuple[str, str, str], ...] = tuple(map(tuple, _WRITTEN["past"]))
"""An earlier note, a later one, and a question to which the earlier one is the answer."""
ORDERS: tuple[str, ...] = tuple(_WRITTEN["orders"])
"""What strangers may write into a memory in order to steer it."""
STATEMENTS: tuple[str, ...] = tuple(_WRITTEN["statements"])
"""What tools and pages say that is no order."""
