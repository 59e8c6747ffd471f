"""The sheet on which rows over the cycles are drawn: where cycles stand, headings, names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from ._ink import Ink
from ._labels import label, width_of
from ._shapes import add_path, add_text, at
from ._svg import brief

WIDE = 1080.0
LEFT = 312.0
"""Where the cycles begin; names stand to the left."""
RIGHT = 14.0
TOP = 26.0
HEAD, LANE = 26.0, 19.0
"""Heights of rows, in pixels."""
_NAME = 120
SIZE = 12.0


@dataclass(slots=True)
class Sheet:
    """The drawing as far as it is made."""

    root: Element
    places: Mapping[int, int]
    """The place of each cycle, from 0."""
    step: float
    """Width of a place."""
    top: float = TOP

    def left(self, cycle: int) -> float:
        """Where a cycle's place begins."""
        return LEFT + self.places.get(cycle, 0) * self.step

    def right(self, cycle: int) -> float:
        """Where it ends."""
        return self.left(cycle) + self.step

    def middle(self, cycle: int) -> float:
        """Its middle."""
        return self.left(cycle) + self.step / 2


def draw_head(sheet: Sheet, title: str, note: str) -> None:
    """A heading with what its rows mean."""
    y = sheet.top + 18
    add_text(sheet.root, title, (2, y), size=13, bold=True)
    add_text(sheet.root, note, (LEFT, y), ink=Ink.QUIET, size=11)
    d = f"{at(2, sheet.top + 2)}H{brief(WIDE - 2)}"
    add_path(sheet.root, d, Ink.GRID, 1, {"stroke-opacity": "0.4"})
    sheet.top += HEAD


def draw_name(sheet: Sheet, text: str, *, ink: Ink = Ink.TEXT) -> None:
    """What a row is about, cut to the room that there is."""
    name = label(text, _NAME) or "(nothing)"
    room = LEFT - 16
    if width_of(name, SIZE) > room:
        while name and width_of(f"{name}…", SIZE) > room:
            name = name[:-1]
        name = f"{name.rstrip()}…"
    add_text(sheet.root, name, (8, sheet.top + 13), ink=ink, size=SIZE)


def draw_more(sheet: Sheet, more: int) -> None:
    if more > 0:
        draw_name(sheet, f"and {more} more that are not drawn", ink=Ink.QUIET)
        sheet.top += LANE
