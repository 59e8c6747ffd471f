"""The course of a run, drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard
from xml.etree.ElementTree import Element, SubElement

from coag.inspector.views import Course, Lane, Marks, Series, Span

from .canvas import (
    CROSS,
    TICK,
    Ink,
    add_box,
    add_note,
    add_path,
    add_text,
    at,
    brief,
    drawing,
    label,
    width_of,
    written,
)

# ---- The sheet on which rows over the cycles are drawn: where cycles stand, headings, names ----


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
    """Says how many lanes are left out."""
    if more > 0:
        draw_name(sheet, f"and {more} more that are not drawn", ink=Ink.QUIET)
        sheet.top += LANE


# ---- Goals, transitions, attention and resources over the cycles, one below the other ----


_MARK, _SERIES, _BELOW = 20.0, 36.0, 12.0
"""Heights of rows, in pixels."""
_TICKS = 14
_LARGEST = 1e100
"""Beyond it a number is not drawn."""
_PLACES = 160
"""Places up to which marks stand apart."""
_INKS: Mapping[str, Ink] = {
    "threat": Ink.WRONG,
    "opportunity": Ink.GOOD,
    "anomaly": Ink.TRUTH,
    "transition": Ink.BELIEF,
}
_GOALS = "full: pursued · thin: open · dashed: blocked · faint: deferred or closed"
_ATTENTION = "the higher a bar the more urgent · outlined: suppressed"
_MARKS = "full: kept for good · hollow: only the latest are kept"


def course_svg(
    course: Course, cycle: int, *, prefix: str, leads: Callable[[int], str] | None = None
) -> str:
    """What a module held over the cycles, with the one that is shown marked.

    Args:
        course: What it held; with no cycle the drawing says so.
        cycle: The cycle that is shown.
        prefix: What its ids begin with, unique in the page: letters, digits and hyphens.
        leads: Where the page of a cycle is found; None for no links.

    Returns:
        An `<svg>` element.
    """
    height = _height(course)
    root = drawing(
        WIDE,
        height,
        prefix=prefix,
        title="Goals, transitions, attention and resources over the cycles",
        told=_told(course),
        role="group" if leads and course.cycles else "img",
    )
    if not course.cycles:
        add_note(root, "There is no cycle yet.", (2, height / 2))
        return written(root)
    places = {of: number for number, of in enumerate(course.cycles)}
    sheet = Sheet(root, places, (WIDE - LEFT - RIGHT) / len(course.cycles))
    _draw_here(sheet, cycle, height)
    _draw_axis(sheet, course.cycles, cycle, leads)
    _draw_goals(sheet, course)
    _draw_marks(sheet, course.marks)
    _draw_attention(sheet, course)
    _draw_series(sheet, course)
    return written(root)


def _height(course: Course) -> float:
    height = TOP + _BELOW
    for count, of, row in (
        (len(course.goals), course.goals_of, LANE),
        (len(course.marks), len(course.marks), _MARK),
        (len(course.attention), course.attention_of, LANE),
        (len(course.series), course.series_of, _SERIES),
    ):
        height += HEAD + count * row + (LANE if of > count else 0) if of else 0
    return max(height, 60)


def _draw_here(sheet: Sheet, cycle: int, height: float) -> None:
    """A band behind everything at the cycle that is shown."""
    if cycle not in sheet.places:
        return
    wide = max(sheet.step, 3.0)
    left = sheet.middle(cycle) - wide / 2
    look = {"fill": Ink.BELIEF.paint, "fill-opacity": "0.13"}
    add_box(sheet.root, (left, TOP - 4, wide, height - TOP), look)


def _draw_axis(
    sheet: Sheet, cycles: Sequence[int], shown: int, leads: Callable[[int], str] | None
) -> None:
    """Numbers of cycles; each leads to the page of its cycle."""
    every = math.ceil(len(cycles) / _TICKS)
    marked = [*cycles[::every]]
    if shown in sheet.places and shown not in marked:
        apart = 24 / sheet.step
        near = sheet.places[shown]
        marked = [one for one in marked if abs(sheet.places[one] - near) > apart]
        marked.append(shown)
    add_note(sheet.root, "cycle", (LEFT - 10, 14), end=True)
    for cycle in sorted(marked):
        parent = sheet.root
        if leads is not None:
            parent = SubElement(parent, "a", {"href": leads(cycle)})
        place = (sheet.middle(cycle), 14.0)
        ink = Ink.TEXT if cycle == shown else Ink.QUIET
        add_text(parent, str(cycle), place, ink=ink, anchor="middle", bold=cycle == shown)


# ---- goals and attention ----


def _draw_goals(sheet: Sheet, course: Course) -> None:
    if not course.goals_of:
        return
    draw_head(sheet, "Goals", _GOALS)
    for lane in course.goals:
        draw_name(sheet, lane.label)
        group = _group(sheet, lane)
        for number, span in enumerate(lane.spans):
            _draw_goal(sheet, group, span, opens=number == 0)
        sheet.top += LANE
    draw_more(sheet, course.goals_of - len(course.goals))


def _group(sheet: Sheet, lane: Lane) -> Element:
    group = SubElement(sheet.root, "g")
    SubElement(group, "title").text = label(f"{lane.type}: {lane.label}", 300)
    return group


def _draw_goal(sheet: Sheet, group: Element, span: Span, *, opens: bool) -> None:
    left, right = sheet.left(span.first), sheet.right(span.last)
    wide, y = max(right - left - 1, 1.5), sheet.top + 9
    if span.state in ("completed", "abandoned"):
        good = span.state == "completed"
        d = f"{at(left + (1 if good else 2), y if good else y - 3)}{TICK if good else CROSS}"
        add_path(group, d, Ink.GOOD if good else Ink.BAD, 2.2)
        _draw_faint(group, (left + 14, right), y)
    elif span.state == "deferred":
        _draw_faint(group, (left, right), y)
    elif span.state == "blocked":
        look = {"fill": "none", "stroke": Ink.WRONG.paint, "stroke-dasharray": "4 2"}
        add_box(group, (left + 0.5, y - 4, wide, 8), look)
    else:
        high = 11.0 if span.pursued else 5.0
        add_box(group, (left, y - high / 2, wide, high), {"fill": Ink.BELIEF.paint})
    if opens:
        add_path(group, f"{at(left, y - 7)}v14", Ink.QUIET, 1)


def _draw_faint(group: Element, ends: tuple[float, float], y: float) -> None:
    if ends[1] - ends[0] > 1:
        d = f"{at(ends[0], y)}H{brief(ends[1])}"
        add_path(group, d, Ink.QUIET, 1.2, {"stroke-opacity": "0.5"})


def _draw_attention(sheet: Sheet, course: Course) -> None:
    if not course.attention_of:
        return
    draw_head(sheet, "Attention", _ATTENTION)
    for lane in course.attention:
        draw_name(sheet, f"{lane.type}: {lane.label}")
        group = _group(sheet, lane)
        ink = _INKS.get(lane.type, Ink.QUIET)
        for span in lane.spans:
            high = 3 + 10 * min(max(span.weight, 0.0), 1.0)
            left, right = sheet.left(span.first), sheet.right(span.last)
            box = (left, sheet.top + 9 - high / 2, max(right - left - 1, 1.5), high)
            hidden = {"fill": "none", "stroke": ink.paint, "stroke-dasharray": "3 2"}
            look = hidden if span.state == "suppressed" else {"fill": ink.paint}
            add_box(group, box, look)
        sheet.top += LANE
    draw_more(sheet, course.attention_of - len(course.attention))


# ---- transitions ----


def _draw_marks(sheet: Sheet, marks: Sequence[Marks]) -> None:
    if not marks:
        return
    draw_head(sheet, "What happened", _MARKS)
    for one in marks:
        total = sum(count for _, count in one.at)
        draw_name(sheet, f"{one.type.replace('_', ' ')} ({total})")
        d = "".join(_diamond(x, sheet.top + 9, _half(count)) for x, count in _places(sheet, one))
        ink = Ink.WRONG if one.type in ("failure", "reversal") else Ink.BELIEF
        fill = ink.paint if one.sticky else "none"
        add_path(sheet.root, d, ink, 1.4, {"fill": fill})
        sheet.top += _MARK


def _places(sheet: Sheet, marks: Marks) -> list[tuple[float, int]]:
    """Where marks stand, and for how many transitions; neighbours of many fall together."""
    every = max(1, math.ceil(len(sheet.places) / _PLACES))
    found: dict[int, int] = {}
    for cycle, count in marks.at:
        place = sheet.places.get(cycle, 0) // every * every
        found[place] = found.get(place, 0) + count
    middle = LEFT + sheet.step * every / 2
    return [(middle + place * sheet.step, count) for place, count in found.items()]


def _half(count: int) -> float:
    return min(3.5 + 0.8 * count, 7.0)


def _diamond(x: float, y: float, half: float) -> str:
    h = brief(half)
    return f"{at(x, y - half)}l{h} {h}-{h} {h}-{h} -{h}z"


# ---- numbers ----


def _draw_series(sheet: Sheet, course: Course) -> None:
    if not course.series_of:
        return
    draw_head(sheet, "Resources and counts", "from the least to the most of each")
    for one in course.series:
        known = [value for value in one.values if _drawn(value)]
        last = next((value for value in reversed(one.values) if value is not None), None)
        told = "-" if last is None else f"{last:g}"
        of = f" of {one.capacity:g}" if one.capacity is not None else ""
        draw_name(sheet, f"{label(one.name, 40)}: {told}{of}")
        if known:
            _draw_line(sheet, one, (min(known), max(known)))
        sheet.top += _SERIES
    draw_more(sheet, course.series_of - len(course.series))


def _drawn(value: float | None) -> TypeGuard[float]:
    """Whether a number is told, and is one that can be drawn."""
    return value is not None and abs(value) < _LARGEST


def _draw_line(sheet: Sheet, series: Series, ends: tuple[float, float]) -> None:
    """A line with a step at each change; where nothing is told it has a gap."""
    least, most = ends
    if series.capacity is not None and series.capacity > 0:
        least, most = min(0.0, least), max(series.capacity, most)
    high, low = sheet.top + 3, sheet.top + _SERIES - 8
    d, open_line = "", False
    for place, value in enumerate(series.values):
        if not _drawn(value):
            open_line = False
            continue
        share = (value - least) / (most - least) if most > least else 0.5
        y, x = low - share * (low - high), LEFT + place * sheet.step
        d += f"V{brief(y)}" if open_line else at(x, y)
        d += f"H{brief(x + sheet.step)}"
        open_line = True
    add_path(sheet.root, f"{at(LEFT, low)}H{brief(WIDE - RIGHT)}", Ink.GRID, 0.7)
    add_path(sheet.root, d, Ink.BELIEF, 1.8)
    for value, y in ((most, high + 8), (least, low)) if most > least else ():
        add_text(sheet.root, f"{value:g}", (LEFT - 6, y), ink=Ink.QUIET, size=10, anchor="end")


# ---- in words ----


def _told(course: Course) -> str:
    if not course.cycles:
        return "There is no cycle yet."
    happened = ", ".join(
        f"{sum(count for _, count in one.at)} {one.type.replace('_', ' ')}" for one in course.marks
    )
    return (
        f"Cycles {course.cycles[0]} to {course.cycles[-1]}: {course.goals_of} goals and "
        f"{course.attention_of} things that needed attention. Transitions: {happened or 'none'}. "
        "The table below tells what changed in each cycle."
    )
