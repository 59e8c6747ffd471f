"""What matplotlib draws, as SVG that may stand in a page which allows no style and no script."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from ._wording import visible

_TOLD = 2000
"""Characters of a text alternative."""
_XMLNS = "http://www.w3.org/2000/svg"
_ATTRIBUTES = frozenset({"d", "x", "y", "transform", "id"})
_DECIMALS = re.compile(r"(-?\d+\.\d)\d+")

_LINK = "{http://www.w3.org/1999/xlink}href"
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)px")
_DROPPED = frozenset({"metadata", "style", "title", "desc"})
_KEPT = frozenset(
    {
        "fill",
        "fill-opacity",
        "opacity",
        "stroke",
        "stroke-dasharray",
        "stroke-linecap",
        "stroke-linejoin",
        "stroke-opacity",
        "stroke-width",
        "text-anchor",
    }
)
"""Properties that have a presentation attribute of the same name and are wanted."""

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


# ---- Cleaning what matplotlib wrote ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaning:
    """What is left of a plot."""

    attribute: Callable[[str, str], str | None]
    """What becomes of an attribute, by its name and value; None to drop it."""
    paint: Callable[[str], str]
    """What becomes of the value of a style's property, such as a colour."""
    dropped: frozenset[str] = _DROPPED
    """Elements that are dropped with what is in them."""


def plain_elements(plot: str, *, prefix: str, cleaning: Cleaning) -> list[Element]:
    """What a plotting library drew, without what a page must not hold.

    Style attributes become presentation attributes, ids begin with the prefix, groups that say
    nothing are gone, and so are scripts, styles and metadata.

    Args:
        plot: SVG as the library wrote it.
        prefix: What ids begin with: letters, digits and hyphens, unique in the page.
        cleaning: What is left.
    """
    source = ElementTree.fromstring(plot)
    _clean(source, cleaning)
    _rename(source, prefix)
    return _flat(source)


def _clean(parent: Element, cleaning: Cleaning) -> None:
    for element in list(parent):
        element.tag = element.tag.rpartition("}")[2]
        if element.tag in cleaning.dropped:
            parent.remove(element)
            continue
        _attributes(element, cleaning)
        element.tail = None
        if element.tag != "text":
            element.text = None
        _clean(element, cleaning)


def _attributes(element: Element, cleaning: Cleaning) -> None:
    style = element.attrib.pop("style", "")
    link = element.attrib.pop(_LINK, "")
    kept = ((name, cleaning.attribute(name, value)) for name, value in element.attrib.items())
    told = {name: value for name, value in kept if value is not None}
    for declaration in style.split(";"):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        size = _SIZE.search(value) if name in ("font", "font-size") else None
        if size:
            told["font-size"] = size[1]
        elif name in _KEPT:
            told[name] = cleaning.paint(value)
    if link.startswith("#"):
        told["href"] = link
    if told.get("transform", "").startswith("rotate(-0 "):
        del told["transform"]
    element.attrib.clear()
    element.attrib.update(told)


def _rename(source: Element, prefix: str) -> None:
    """Drops ids that nothing refers to, and gives the others names of this drawing."""
    names: dict[str, str] = {}
    for element in source.iter():
        for reference in _references(element):
            names.setdefault(reference, f"{prefix}-{len(names)}")
    for element in source.iter():
        own = names.get(element.attrib.pop("id", ""))
        if own:
            element.set("id", own)
        for name, value in element.attrib.items():
            if name == "href":
                element.set(name, f"#{names[value[1:]]}")
            elif value.startswith("url("):
                element.set(name, _REFERENCE.sub(lambda it: f"url(#{names[it[1]]})", value))


def _references(element: Element) -> Iterable[str]:
    for name, value in element.attrib.items():
        if name == "href":
            yield value[1:]
        else:
            yield from _REFERENCE.findall(value)


def _flat(parent: Element) -> list[Element]:
    """The children, groups that say nothing replaced by what is in them."""
    found: list[Element] = []
    for element in parent:
        inside = _flat(element)
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


_CLEANING = Cleaning(
    attribute=_attribute,
    paint=_paint,
    dropped=frozenset({"metadata", "style", "title", "desc", "clipPath"}),
)
