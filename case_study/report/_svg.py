"""What matplotlib draws, as SVG that may stand in a page which allows no style and no script."""

from __future__ import annotations

import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from coag.inspector.drawing import Cleaning, plain_elements

from ._wording import visible

_TOLD = 2000
"""Characters of a text alternative."""
_XMLNS = "http://www.w3.org/2000/svg"
_ATTRIBUTES = frozenset({"d", "x", "y", "transform", "id"})
_DECIMALS = re.compile(r"(-?\d+\.\d)\d+")

INKS: dict[str, str] = {
    "#000001": "currentColor",
    "#000002": "var(--quiet)",
    "#000003": "var(--line)",
    **{f"#00001{place}": f"var(--c{place})" for place in range(6)},
    "#000004": "var(--good)",
    "#000005": "var(--bad)",
    "#000006": "var(--open)",
}
"""Colours that a plot is given, and those of the page that stand in their place."""
TEXT, QUIET, GRID = "#000001", "#000002", "#000003"
GOOD, BAD, OPEN = "#000004", "#000005", "#000006"
LINES = tuple(f"#00001{place}" for place in range(6))
"""One for each line of a plot."""


def taken(plot: str, *, prefix: str, title: str, told: str, size: tuple[float, float]) -> str:
    """A plot as an `<svg>` element with a name and a text alternative.

    Style attributes become presentation attributes, colours those of the page, ids begin with a
    prefix, and scripts, styles and metadata are gone. Texts are escaped.

    Args:
        plot: SVG as matplotlib wrote it.
        prefix: What ids begin with: letters, digits and hyphens, unique in the page.
        title: The name of the plot.
        told: What it shows, in words.
        size: Width and height in pixels, as it is meant to be seen.
    """
    width, height = (f"{side:g}" for side in size)
    root = Element(
        "svg",
        {
            **{"xmlns": _XMLNS, "class": "plot", "role": "img", "width": width},
            **{"height": height, "viewBox": f"0 0 {width} {height}"},
            **{"aria-labelledby": f"{prefix}-t", "aria-describedby": f"{prefix}-d"},
        },
    )
    name, words = Element("title", {"id": f"{prefix}-t"}), Element("desc", {"id": f"{prefix}-d"})
    name.text, words.text = visible(title), visible(told, _TOLD)
    drawn = plain_elements(plot, prefix=prefix, cleaning=_CLEANING)
    root.extend([name, words, *drawn])
    return ElementTree.tostring(root, encoding="unicode")


def _attribute(name: str, value: str) -> str | None:
    """The attributes that a plot needs, with one decimal."""
    if name not in _ATTRIBUTES:
        return None
    return value if name == "id" else _DECIMALS.sub(r"\1", " ".join(value.split()))


def _paint(value: str) -> str:
    return INKS.get(value.lower(), _DECIMALS.sub(r"\1", value))


_CLEANING = Cleaning(
    attribute=_attribute,
    paint=_paint,
    dropped=frozenset({"metadata", "style", "title", "desc", "clipPath"}),
)
