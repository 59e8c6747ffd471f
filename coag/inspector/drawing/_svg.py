"""Drawings as SVG that may stand within any page, whatever its security policy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from ._ink import Ink, paint_of
from ._labels import label

_XMLNS = "http://www.w3.org/2000/svg"
_LINK = "{http://www.w3.org/1999/xlink}href"
_TITLE = 160
_DESCRIPTION = 600
_DECIMALS = re.compile(r"(-?\d+\.\d{2})\d+")
_NOUGHTS = re.compile(r"(\.\d*?)0+(?=\D|$)")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)px")
_PREFIX = re.compile(r"[A-Za-z][\w-]{0,60}")
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
_PLACES = frozenset({"d", "x", "y", "x1", "x2", "y1", "y2", "transform", "width", "height"})


def drawing(
    width: float,
    height: float,
    *,
    prefix: str,
    title: str,
    told: str,
    role: str = "img",
    grows: bool = True,
) -> Element:
    """A new drawing with nothing in it but its name and what it shows in words.

    Args:
        width: Of the drawing, in pixels at its natural size.
        height: The same.
        prefix: What its ids begin with: letters, digits and hyphens, unique in the page.
        title: Its name; may hold foreign text.
        told: What it shows, for whoever cannot see it; may hold foreign text.
        role: `img`, or `group` where there are links in it.
        grows: Whether it is shown as wide as there is room, and not in its natural size.

    Raises:
        ValueError: If the prefix is none.
    """
    if not _PREFIX.fullmatch(prefix):
        raise ValueError(f"{prefix!r} begins no id: take letters, digits and hyphens.")
    names = {"aria-labelledby": f"{prefix}-title", "aria-describedby": f"{prefix}-desc"}
    box = {"viewBox": f"0 0 {brief(width)} {brief(height)}"}
    box["width"] = "100%" if grows else brief(width)
    root = Element("svg", {"xmlns": _XMLNS, "class": "plot", "role": role, **box, **names})
    SubElement(root, "title", {"id": f"{prefix}-title"}).text = label(title, _TITLE)
    SubElement(root, "desc", {"id": f"{prefix}-desc"}).text = label(told, _DESCRIPTION)
    return root


def written(root: Element) -> str:
    """The drawing as text, to be put into a page as it is."""
    return ElementTree.tostring(root, encoding="unicode")


def brief(number: float) -> str:
    """A coordinate with at most two decimals."""
    return f"{number:.2f}".rstrip("0").rstrip(".")


def take_plot(root: Element, plot: str, *, prefix: str, texts: Mapping[str, str]) -> None:
    """Puts what a plotting library drew into a drawing, without what a page must not hold.

    Style attributes become presentation attributes, colours those of the page, ids begin with the
    prefix, and scripts, styles and metadata are gone.

    Args:
        root: The drawing.
        plot: SVG as the library wrote it.
        prefix: What ids begin with.
        texts: What stands in place of texts of the plot.
    """
    found = plain_elements(plot, prefix=prefix, cleaning=_OURS)
    for element in (each for one in found for each in one.iter("text")):
        element.text = texts.get(element.text or "", element.text)
    inside = SubElement(root, "g", {"stroke-linejoin": "round", "stroke-linecap": "butt"})
    inside.extend(found)


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


def add_note(root: Element, text: str, place: tuple[float, float], *, end: bool = False) -> None:
    """Puts a few small words into a drawing.

    Args:
        root: The drawing.
        text: A label.
        place: Where its baseline begins, or ends.
        end: True if it ends there.
    """
    look = {"font-size": "12", "fill": Ink.QUIET.paint} | ({"text-anchor": "end"} if end else {})
    SubElement(root, "text", {"x": brief(place[0]), "y": brief(place[1]), **look}).text = text


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


def _shorter(name: str, value: str) -> str:
    """Coordinates with two decimals, on one line."""
    if name not in _PLACES:
        return paint_of(value)
    return _NOUGHTS.sub(_without_noughts, _DECIMALS.sub(r"\1", " ".join(value.split())))


def _without_noughts(found: re.Match[str]) -> str:
    return "" if found[1] == "." else found[1]


_OURS = Cleaning(attribute=_shorter, paint=lambda value: _DECIMALS.sub(r"\1", paint_of(value)))


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
