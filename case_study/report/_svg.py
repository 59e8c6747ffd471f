"""What matplotlib draws, as SVG that may stand in a page which allows no style and no script."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from ._wording import visible

_TOLD = 2000
"""Characters of a text alternative."""
_XMLNS = "http://www.w3.org/2000/svg"
_LINK = "{http://www.w3.org/1999/xlink}href"
_DROPPED = frozenset({"metadata", "style", "title", "desc", "clipPath"})
_KEPT = frozenset(
    {
        *("fill", "fill-opacity", "opacity", "stroke", "stroke-dasharray", "stroke-linecap"),
        *("stroke-linejoin", "stroke-opacity", "stroke-width", "text-anchor"),
    }
)
"""Properties of a style that have a presentation attribute of the same name and are wanted."""
_ATTRIBUTES = frozenset({"d", "x", "y", "transform", "id"})
_SIZE = re.compile(r"(\d+(?:\.\d+)?)px")
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
    source = ElementTree.fromstring(plot)
    _clean(source)
    _rename(source, prefix)
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
    root.extend([name, words, *_flat(source)])
    return ElementTree.tostring(root, encoding="unicode")


def _clean(parent: Element) -> None:
    for element in list(parent):
        element.tag = element.tag.rpartition("}")[2]
        if element.tag in _DROPPED:
            parent.remove(element)
            continue
        _attributes(element)
        element.tail = None
        if element.tag != "text":
            element.text = None
        _clean(element)


def _attributes(element: Element) -> None:
    style, link = element.attrib.pop("style", ""), element.attrib.pop(_LINK, "")
    told = {
        name: _DECIMALS.sub(r"\1", " ".join(value.split())) if name != "id" else value
        for name, value in element.attrib.items()
        if name in _ATTRIBUTES
    }
    for declaration in style.split(";"):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        size = _SIZE.search(value) if name in ("font", "font-size") else None
        if size:
            told["font-size"] = size[1]
        elif name in _KEPT:
            told[name] = INKS.get(value.lower(), _DECIMALS.sub(r"\1", value))
    if link.startswith("#"):
        told["href"] = link
    if told.get("transform", "").startswith("rotate(-0 "):
        del told["transform"]
    element.attrib.clear()
    element.attrib.update(told)


def _rename(source: Element, prefix: str) -> None:
    """Drops ids that nothing refers to; the others become this plot's own."""
    wanted = {element.attrib["href"][1:] for element in source.iter() if "href" in element.attrib}
    names = {old: f"{prefix}-{place}" for place, old in enumerate(sorted(wanted))}
    for element in source.iter():
        own = names.get(element.attrib.pop("id", ""))
        if own:
            element.set("id", own)
        if "href" in element.attrib:
            element.set("href", f"#{names[element.attrib['href'][1:]]}")


def _flat(parent: Element) -> Iterable[Element]:
    """The children, groups that say nothing replaced by what is in them."""
    found: list[Element] = []
    for element in parent:
        inside = list(_flat(element))
        if element.tag in ("g", "defs") and not inside:
            continue
        if element.tag == "g" and not element.attrib:
            found += inside
            continue
        for child in list(element):
            element.remove(child)
        element.extend(inside)
        found.append(element)
    return found
