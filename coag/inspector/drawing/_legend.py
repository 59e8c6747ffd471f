"""What the lines and areas of a plot are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree.ElementTree import Element, SubElement

from ._ink import Ink
from ._labels import width_of
from ._svg import brief

LEGEND = 24.0
"""Height of a legend, in pixels."""
_SIZE = 12.0
_SAMPLE = 22.0
_GAP = 18.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One entry of a legend."""

    name: str
    ink: Ink
    sort: Literal["line", "dashes", "cross", "area"]


def add_legend(root: Element, keys: Sequence[Key], left: float) -> None:
    """Puts a legend at the top of a drawing, from a place on to the right."""
    group = SubElement(root, "g", {"font-size": brief(_SIZE)})
    place = left
    for key in keys:
        _sample(group, key, place)
        text = {"x": brief(place + _SAMPLE + 6), "y": "15", "fill": Ink.TEXT.paint}
        SubElement(group, "text", text).text = key.name
        place += _SAMPLE + 6 + width_of(key.name, _SIZE) + _GAP


def _sample(group: Element, key: Key, left: float) -> None:
    paint = key.ink.paint
    if key.sort == "area":
        box = {"x": brief(left + 8), "y": "5", "width": "12", "height": "12", "rx": "2"}
        SubElement(group, "rect", {**box, "fill": paint})
        return
    if key.sort == "cross":
        middle = left + _SAMPLE / 2
        d = f"M{brief(middle - 4)} 7l8 8m0 -8l-8 8"
        line = {"stroke": paint, "stroke-width": "2", "fill": "none"}
        SubElement(group, "path", {"d": d, **line})
        return
    ends = {"x1": brief(left), "x2": brief(left + _SAMPLE), "y1": "11", "y2": "11"}
    dashes = {"stroke-width": "4", "stroke-dasharray": "6 3", "stroke-opacity": "0.75"}
    look = dashes if key.sort == "dashes" else {"stroke-width": "2"}
    SubElement(group, "line", {**ends, "stroke": paint, **look})
