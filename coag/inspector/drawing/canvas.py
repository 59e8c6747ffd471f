"""SVG: ink, labels, shapes, legends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal
from unicodedata import combining, east_asian_width
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from coag.schema import cleaned

# ---- Colours: which the page gives by custom properties, so that it can be dark or light ----


class Ink(Enum):
    """What something is drawn with.

    Each is given in the drawing as a CSS custom property with a colour to fall back to that can
    be seen on light and on dark ground; `TEXT` is the colour of the text around the drawing.
    """

    TEXT = ("#000001", "currentColor")
    QUIET = ("#000002", "var(--plot-quiet, #7c8594)")
    """Axes, ticks and what explains."""
    GRID = ("#000003", "var(--plot-grid, #9aa3b2)")
    """Lines behind everything; drawn faint."""
    BELIEF = ("#000004", "var(--plot-belief, #3b82f6)")
    TRUTH = ("#000005", "var(--plot-truth, #d97706)")
    WRONG = ("#000006", "var(--plot-wrong, #dc2626)")
    PROMPT = ("#000007", "var(--plot-prompt, #6366f1)")
    CACHED = ("#000008", "var(--plot-cached, #a3adc2)")
    COMPLETION = ("#000009", "var(--plot-completion, #0d9488)")
    GOOD = ("#00000a", "var(--plot-good, #16a34a)")
    BAD = ("#00000b", "var(--plot-bad, #dc2626)")
    PAPER = ("#00000c", "var(--plot-paper, Canvas)")
    """The ground of the page."""

    @property
    def stand_in(self) -> str:
        """The colour that a plotting library is given in its place."""
        return self.value[0]

    @property
    def paint(self) -> str:
        """The colour as a presentation attribute tells it."""
        return self.value[1]


PROPERTIES: tuple[str, ...] = tuple(
    ink.paint.removeprefix("var(").split(",")[0] for ink in Ink if ink is not Ink.TEXT
)
"""The custom properties that a page may set."""

_PAINTS = {ink.stand_in: ink.paint for ink in Ink}


def paint_of(colour: str) -> str:
    """A colour that a plotting library wrote, as a presentation attribute tells it."""
    return _PAINTS.get(colour.lower(), colour)


# ---- Foreign text as labels: short, harmless, and about as wide as there is room ----


_UNFIT = re.compile(
    "[\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff\U000e0000-\U000e0fff\u200b-\u200d\u2060\ufeff]"
)
"""What XML cannot hold, or nobody sees."""
_MARKS = 2
"""Marks that may stand on one character."""
_NARROW = frozenset("iljtfrI.,:;'|!()[]{} -`\"")
_JOINTS = "_(,=/."
"""Behind these a long name is broken."""


def label(text: str, limit: int) -> str:
    """The beginning of a foreign text, on one line, cut with an ellipsis.

    Args:
        text: Any text out of a log, however long.
        limit: Characters kept.
    """
    head = _UNFIT.sub("", cleaned(text[: 8 * limit + 64]))
    line = _with_few_marks(" ".join(head.split()))
    if len(line) > limit:
        return line[: limit - 1].rstrip() + "…"
    return f"{line}…" if len(text) > 8 * limit + 64 and line else line


def width_of(text: str, size: float) -> float:
    """About how wide a text is in pixels, in a usual sans-serif font of a size."""
    return sum(_share(character) for character in text) * size


def wrapped(text: str, width: float, size: float, lines: int) -> list[str]:
    """A text broken into a few lines; what has no room is cut with an ellipsis.

    Args:
        text: A label.
        width: Pixels that a line may be wide.
        size: Of the font, in pixels.
        lines: How many lines there may be.
    """
    told: list[str] = []
    rest = text
    while rest:
        if len(told) == lines - 1:
            return [*told, _fitting(rest, width, size, mark="…")]
        line = _line(rest, width, size)
        told.append(line.rstrip())
        rest = rest[len(line) :].lstrip()
    return told


def _line(text: str, width: float, size: float) -> str:
    """As much of a text as fits one line, up to a space where there is one near."""
    line = _fitting(text, width, size, mark="")
    if len(line) == len(text):
        return line
    space = line.rfind(" ") + 1
    if space > len(line) // 2:
        return line[:space]
    joint = max(space, *(line.rfind(mark) + 1 for mark in _JOINTS))
    return line[:joint] if joint > len(line) // 3 else line


def _fitting(text: str, width: float, size: float, *, mark: str) -> str:
    if width_of(text, size) <= width:
        return text
    room = width - width_of(mark, size)
    for count, character in enumerate(text):
        room -= _share(character) * size
        if room < 0:
            return text[: max(1, count)].rstrip() + mark if mark else text[: max(1, count)]
    return text


def _share(character: str) -> float:
    if combining(character):
        return 0.0
    if east_asian_width(character) in "WF":
        return 1.05
    if character in _NARROW:
        return 0.4
    return 0.76 if character.isupper() or character in "mw@%" else 0.63


def _with_few_marks(text: str) -> str:
    """Without the heaps of marks that reach over the lines above and below."""
    kept: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if combining(character) else 0
        if marks <= _MARKS:
            kept.append(character)
    return "".join(kept)


# ---- Drawings as SVG that may stand within any page, whatever its security policy ----


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


# ---- Small shapes that several drawings are made of ----


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


# ---- What the lines and areas of a plot are ----


LEGEND = 24.0
"""Height of a legend, in pixels."""
_LEGEND_SIZE = 12.0
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
    group = SubElement(root, "g", {"font-size": brief(_LEGEND_SIZE)})
    place = left
    for key in keys:
        _sample(group, key, place)
        text = {"x": brief(place + _SAMPLE + 6), "y": "15", "fill": Ink.TEXT.paint}
        SubElement(group, "text", text).text = key.name
        place += _SAMPLE + 6 + width_of(key.name, _LEGEND_SIZE) + _GAP


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
