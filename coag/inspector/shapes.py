"""Shapes of drawings: SVG that may stand within any page, whatever its security policy.

A drawing holds no script, no style, no link to elsewhere and no id that another drawing has.
Foreign text in it is cleaned and short. Colours are the page's: `currentColor` and the custom
properties in `PROPERTIES`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal
from unicodedata import combining, east_asian_width
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from coag.schema import cleaned


class Ink(Enum):
    """The colours of drawings, as presentation attributes.

    Each is a CSS custom property with a fallback that can be seen on light and on dark ground;
    `TEXT` is the colour of the text around the drawing.
    """

    TEXT = "currentColor"
    QUIET = "var(--plot-quiet, #7c8594)"
    """Axes, ticks and explanations."""
    GRID = "var(--plot-grid, #9aa3b2)"
    """Lines behind everything; drawn faint."""
    BELIEF = "var(--plot-belief, #3b82f6)"
    TRUTH = "var(--plot-truth, #d97706)"
    WRONG = "var(--plot-wrong, #dc2626)"
    PROMPT = "var(--plot-prompt, #6366f1)"
    CACHED = "var(--plot-cached, #a3adc2)"
    COMPLETION = "var(--plot-completion, #0d9488)"
    GOOD = "var(--plot-good, #16a34a)"
    BAD = "var(--plot-bad, #dc2626)"
    PAPER = "var(--plot-paper, Canvas)"
    """The ground of the page."""


PROPERTIES: tuple[str, ...] = tuple(
    ink.value.removeprefix("var(").split(",")[0] for ink in Ink if ink is not Ink.TEXT
)
"""The custom properties that a page may set."""

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
    found: list[str] = []
    rest = text
    while rest:
        if len(found) == lines - 1:
            return [*found, _fitting(rest, width, size, mark="…")]
        line = _line(rest, width, size)
        found.append(line.rstrip())
        rest = rest[len(line) :].lstrip()
    return found


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
    parts: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if combining(character) else 0
        if marks <= _MARKS:
            parts.append(character)
    return "".join(parts)


# ---- A drawing, and what it is made of ----


_XMLNS = "http://www.w3.org/2000/svg"
_TITLE = 160
_DESCRIPTION = 600
_PREFIX = re.compile(r"[A-Za-z][\w-]{0,60}")
Place = tuple[float, float]


def drawing(
    width: float,
    height: float,
    *,
    prefix: str,
    title: str,
    description: str,
    role: str = "img",
    grows: bool = True,
) -> Element:
    """A new drawing, empty but for its name and description.

    Args:
        width: Of the drawing, in pixels at its natural size.
        height: The same.
        prefix: What its ids begin with: letters, digits and hyphens, unique in the page.
        title: Its name; may hold foreign text.
        description: What it shows, for whoever cannot see it; may hold foreign text.
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
    SubElement(root, "desc", {"id": f"{prefix}-desc"}).text = label(description, _DESCRIPTION)
    return root


def written(root: Element) -> str:
    """The drawing as text, to be put into a page as it is."""
    return ElementTree.tostring(root, encoding="unicode")


def brief(number: float) -> str:
    """A coordinate with at most two decimals."""
    return f"{number:.2f}".rstrip("0").rstrip(".")


def at(x: float, y: float) -> str:
    """The beginning of a path."""
    return f"M{brief(x)} {brief(y)}"


def add_text(
    parent: Element,
    text: str,
    place: Place,
    *,
    ink: Ink = Ink.TEXT,
    size: float = 12,
    anchor: str = "start",
    bold: bool = False,
) -> None:
    """Adds a label.

    Args:
        parent: Where.
        text: A label, no longer than there is room for.
        place: Where its baseline begins, ends or has its middle.
        ink: Its colour.
        size: Of the font, in pixels.
        anchor: `start`, `end` or `middle`.
        bold: Whether it stands out.
    """
    look = {"font-size": brief(size), "fill": ink.value}
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
    """Adds a rectangle; `box` is its left, top, width and height."""
    left, top, width, height = box
    place = {"x": brief(left), "y": brief(top), "width": brief(width), "height": brief(height)}
    SubElement(parent, "rect", {**place, "rx": brief(radius), **look})


def add_path(
    parent: Element, d: str, ink: Ink, width: float = 1.5, look: Mapping[str, str] | None = None
) -> None:
    """Adds a line; `look` has further presentation attributes."""
    line = {"fill": "none", "stroke": ink.value, "stroke-width": brief(width)}
    SubElement(parent, "path", {"d": d, **line, **(look or {})})


# ---- Legends and axes ----


LEGEND = 24.0
"""Height of a legend, in pixels."""
_SAMPLE = 22.0
_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_MINUS = "\u2212"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One entry of a legend."""

    name: str
    ink: Ink
    sort: Literal["line", "dashes", "cross", "area"]


def add_legend(root: Element, keys: Sequence[Key], left: float) -> None:
    """Adds a legend at the top, from `left` to the right."""
    for key in keys:
        if key.sort == "area":
            add_box(root, (left + 8, 5, 12, 12), {"fill": key.ink.value})
        elif key.sort == "cross":
            add_path(root, f"{at(left + _SAMPLE / 2 - 4, 7)}l8 8m0 -8l-8 8", key.ink, 2)
        else:
            dashes = {"stroke-dasharray": "6 3", "stroke-opacity": "0.75"}
            dashed = key.sort == "dashes"
            line = f"{at(left, 11)}h{brief(_SAMPLE)}"
            add_path(root, line, key.ink, 4 if dashed else 2, dashes if dashed else None)
        add_text(root, key.name, (left + _SAMPLE + 6, 15))
        left += _SAMPLE + 24 + width_of(key.name, 12)


def ticks(low: float, high: float, count: int, *, whole: bool = False) -> list[float]:
    """About so many round numbers between two bounds; at least one.

    Args:
        low: The lower bound.
        high: The upper bound; not below `low`.
        count: How many there may be.
        whole: True if only whole numbers make sense.
    """
    rough = (high - low) / max(count, 1)
    if rough <= 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((unit * power for unit in (1, 2, 5) if unit * power >= rough), 10 * power)
    step = max(1.0, step) if whole else step
    first = math.ceil(low / step - 1e-9)
    found = [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]
    return found or [low]


def number(value: float) -> str:
    """A number in few characters, e.g. `1234k`."""
    for unit, letter in _UNITS:
        if abs(value) >= 10 * unit:
            return f"{value / unit:.4g}{letter}".replace("-", _MINUS)
    return f"{value:.4g}".replace("-", _MINUS)
