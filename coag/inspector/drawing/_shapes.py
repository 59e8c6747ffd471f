"""Small shapes that several drawings are made of."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree.ElementTree import Element, SubElement

from ._ink import Ink
from ._svg import brief

TICK = "l3 3.2 5.5 -6.6"
"""A check mark, from its left end on."""
CROSS = "l6.4 6.4m0 -6.4l-6.4 6.4"
"""A cross, from its upper left end on."""


def add_text(
    parent: Element,
    text: str,
    place: tuple[float, float],
    *,
    ink: Ink = Ink.TEXT,
    size: float = 12,
    anchor: str = "start",
    bold: bool = False,
) -> None:
    """Puts a label into a drawing.

    Args:
        parent: Where.
        text: A label, no longer than there is room for.
        place: Where its baseline begins, ends or has its middle.
        ink: Its colour.
        size: Of the font, in pixels.
        anchor: `start`, `end` or `middle`.
        bold: Whether it stands out.
    """
    look = {"font-size": brief(size), "fill": ink.paint}
    if anchor != "start":
        look["text-anchor"] = anchor
    if bold:
        look["font-weight"] = "600"
    SubElement(parent, "text", {"x": brief(place[0]), "y": brief(place[1]), **look}).text = text


def add_box(
    parent: Element,
    box: tuple[float, float, float, float],
    look: Mapping[str, str],
    *,
    radius: float = 2,
) -> None:
    """Puts a rectangle into a drawing.

    Args:
        parent: Where.
        box: Left, top, width and height.
        look: Presentation attributes.
        radius: Of its corners.
    """
    left, top, width, height = box
    place = {"x": brief(left), "y": brief(top), "width": brief(width), "height": brief(height)}
    SubElement(parent, "rect", {**place, "rx": brief(radius), **look})


def add_path(
    parent: Element, d: str, ink: Ink, width: float = 1.5, look: Mapping[str, str] | None = None
) -> None:
    """Puts a line into a drawing.

    Args:
        parent: Where.
        d: The line, as a path.
        ink: Its colour.
        width: In pixels.
        look: Further presentation attributes.
    """
    line = {"fill": "none", "stroke": ink.paint, "stroke-width": brief(width)}
    SubElement(parent, "path", {"d": d, **line, **(look or {})})


def at(x: float, y: float) -> str:
    """The beginning of a path."""
    return f"M{brief(x)} {brief(y)}"
