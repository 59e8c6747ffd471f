"""Pictures as SVG, which a page with any security policy can hold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, tostring

from .text import ellipsis, in_a_line, visible

Point = tuple[float, float]


def svg_label(text: str, limit: int) -> str:
    """The beginning of a foreign text on one line; what nobody sees is written out."""
    return ellipsis(visible(in_a_line(text[: 4 * limit])), limit)


def brief(number: float) -> str:
    """A coordinate with at most two decimals."""
    return f"{number:.2f}".rstrip("0").rstrip(".")


class SvgPicture:
    """A picture with a title and a text alternative, which may be foreign texts.

    In names of attributes `_` becomes a hyphen; an empty attribute is left out.

    Args:
        size: Width and height in pixels.
        title: Its name.
        description: What it shows, in words.
        prefix: What its ids begin with, unique in the page: letters, digits and hyphens.
        role: `group` where there are links in it.
    """

    def __init__(
        self, size: Point, title: str, description: str, prefix: str, role: str = "img"
    ) -> None:
        if not re.fullmatch(r"[A-Za-z][\w-]{0,60}", prefix):
            raise ValueError(f"{prefix!r} begins no id: take letters, digits and hyphens.")
        names = {"aria-labelledby": f"{prefix}-t", "aria-describedby": f"{prefix}-d"}
        self.size = size
        width, height = map(brief, size)
        look = {"class": "plot", "role": role, "width": width, "height": height, **names}
        box = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {width} {height}"}
        self.root = Element("svg", box | look)
        self.add("title", id=f"{prefix}-t").text = svg_label(title, 300)
        self.add("desc", id=f"{prefix}-d").text = svg_label(description, 2_000)

    def add(self, element: str, within: Element | None = None, /, **look: str | float) -> Element:
        """Adds an element, to the picture or to another element."""
        attributes = {
            name.replace("_", "-"): value if isinstance(value, str) else brief(value)
            for name, value in look.items()
            if value != ""
        }
        return SubElement(self.root if within is None else within, element, attributes)

    def line(self, points: Sequence[Point], stroke: str, **look: str | float) -> None:
        """Adds a line through points."""
        path = " ".join(f"{brief(x)},{brief(y)}" for x, y in points)
        self.add("polyline", points=path, fill="none", stroke=stroke, **look)

    def text(
        self, at: Point, text: str, fill: str, within: Element | None = None, /, **look: str | float
    ) -> None:
        """Adds a few words; `at` is where their baseline begins, or what `text_anchor` says."""
        look = {"font_size": 12, **look}
        self.add("text", within, x=at[0], y=at[1], fill=fill, **look).text = svg_label(text, 120)

    def __str__(self) -> str:
        return tostring(self.root, encoding="unicode")
