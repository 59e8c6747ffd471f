"""The drawing of an agent's tools over time: properties, signals, waiting, and what is missing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import accumulate, pairwise
from typing import Any

from coag._util.svg import SvgPicture, brief, svg_label

from .charts import Ink, is_number, width_of
from .texts import value_in_a_line
from .views import ToolEvent, ToolEventSort, ToolHistory

_WIDTH, _LEFT, _RIGHT = 1080.0, 240.0, 24.0
_HEAD, _TOOL, _PROPERTY = 48.0, 24.0, 28.0
"""Heights of the legend with the times, of a tool's own lane, and of a property's."""
_SHORT = 0.1
"""Seconds: shorter spans are drawn as they are, longer ones by their logarithm."""
_LABEL = 72.0
"""Pixels between two times that are named, at least."""
_UNITS = (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0))


_Places = Mapping[datetime, float]
"""Where moments are on the drawing, in order."""


def _places(moments: Sequence[datetime]) -> _Places:
    """The moments over the whole width, long spans shorter than they were."""
    moments = sorted(set(moments))
    spans = [
        math.log1p((after - before).total_seconds() / _SHORT) for before, after in pairwise(moments)
    ]
    room = (_WIDTH - _LEFT - _RIGHT) / (sum(spans) or 1.0)
    ends = accumulate((span * room for span in spans), initial=_LEFT)
    return dict(zip(moments, ends, strict=True))


def tools_svg(history: ToolHistory, prefix: str) -> str:
    """The tools of a run over time, each with its properties below it."""
    lanes = sum(_TOOL + _PROPERTY * len(row.properties) + 8 for row in history.rows)
    title = "The tools over time"
    picture = SvgPicture((_WIDTH, _HEAD + lanes), title, _in_words(history), prefix)
    events = [event for row in history.rows for event in row.events]
    moments = [at for event in events for at in (event.at, event.until) if at is not None]
    for row in history.rows:
        moments += [at for steps in row.properties.values() for at, _ in steps]
    if not moments:
        return str(picture)
    times = _places(moments)
    _add_legend(picture)
    _add_times(picture, times)
    top = _HEAD
    for row in history.rows:
        picture.line(((2, top), (_WIDTH - 2, top)), Ink.GRID, stroke_opacity=0.4)
        picture.text((4, top + 17), svg_label(row.tool, 36), Ink.TEXT, font_weight="600")
        _add_events(picture, row.events, times, top)
        top += _TOOL
        for name, steps in row.properties.items():
            picture.text((16, top + 19), svg_label(name, 34), Ink.QUIET)
            _add_steps(picture, steps, times, top)
            top += _PROPERTY
        top += 8
    return str(picture)


def _add_legend(picture: SvgPicture) -> None:
    left = _LEFT
    names = {"waiting": "", "signal": "signal", "time-out": "time-out", "gap": "gap"}
    for name, sort in names.items():
        if sort:
            _add_mark(picture, ToolEventSort(sort), (left + 8, 10), "")
        else:
            _add_bar(picture, (left, left + 18), 4, "")
        picture.text((left + 24, 14), name, Ink.TEXT)
        left += 44 + width_of(name)
    note = "longer spans are drawn shorter than they were"
    picture.text((_WIDTH - _RIGHT, 14), note, Ink.QUIET, text_anchor="end", font_size=11)


def _add_times(picture: SvgPicture, times: _Places) -> None:
    """The seconds since the first moment, where there is room for them."""
    began, free = min(times), -math.inf
    picture.text((_LEFT - 12, 38), "since the first", Ink.QUIET, text_anchor="end", font_size=11)
    for moment, x in times.items():
        if x >= free:
            free = x + _LABEL
            seconds = (moment - began).total_seconds()
            unit, size = next((one for one in _UNITS if seconds >= one[1]), ("s", 1.0))
            look = {"text_anchor": "end"} if x > _WIDTH - _LABEL else {}
            picture.text((x, 38), f"{seconds / size:.3g} {unit}", Ink.QUIET, **look)
            look = {"stroke_opacity": 0.2, "stroke_width": 1}
            picture.line(((x, _HEAD - 6), (x, picture.size[1])), Ink.GRID, **look)


def _add_events(
    picture: SvgPicture, events: Sequence[ToolEvent], times: _Places, top: float
) -> None:
    """Bars of waiting, and over them the marks, each named where there is room."""
    end = max(times.values())
    for event in events:
        if event.sort is ToolEventSort.WAIT:
            until = times[event.until] if event.until else end + _RIGHT / 2
            _add_bar(picture, (times[event.at], until), top + 6, event.text)
    marks = [event for event in events if event.sort is not ToolEventSort.WAIT]
    xs = [times[event.at] for event in marks]
    for event, x, before, after in zip(marks, xs, [_LEFT, *xs], [*xs[1:], _WIDTH], strict=False):
        _add_mark(picture, event.sort, (x, top + 12), event.text, is_error=event.is_error)
        wide = width_of(event.name, 10) + 20
        if x + wide <= after:
            picture.text((x + 9, top + 16), event.name, Ink.TEXT, font_size=10)
        elif x - wide >= before:
            look = {"text_anchor": "end", "font_size": 10}
            picture.text((x - 9, top + 16), event.name, Ink.TEXT, **look)


def _add_bar(picture: SvgPicture, xs: tuple[float, float], top: float, text: str) -> None:
    look = {"fill": Ink.BELIEF, "fill_opacity": 0.18, "stroke": Ink.BELIEF}
    wide = max(xs[1] - xs[0], 2.0)
    bar = picture.add("rect", None, x=xs[0], y=top, width=wide, height=12, rx=3, **look)
    picture.add("title", bar).text = svg_label(text, 300)


def _add_mark(
    picture: SvgPicture,
    sort: ToolEventSort,
    at: tuple[float, float],
    text: str,
    *,
    is_error: bool = False,
) -> None:
    """A diamond for a signal, a cross for a time-out, a broken line for a gap."""
    start = f"M{brief(at[0])} {brief(at[1])}"
    line = {"stroke": Ink.WRONG, "stroke_width": 2, "fill": "none"}
    if sort is ToolEventSort.SIGNAL:
        ink = Ink.WRONG if is_error else Ink.TRUTH
        mark = picture.add("path", d=f"{start}m0 -6l6 6l-6 6l-6 -6z", fill=ink)
    elif sort is ToolEventSort.TIME_OUT:
        mark = picture.add("path", d=f"{start}m-5 -5l10 10m0 -10l-10 10", **line)
    else:
        mark = picture.add("path", d=f"{start}m0 -9v18", stroke_dasharray="4 2", **line)
    picture.add("title", mark).text = svg_label(text, 300)


def _add_steps(
    picture: SvgPicture, steps: Sequence[tuple[datetime, Any]], times: _Places, top: float
) -> None:
    """A property as a line of steps, with its values where there is room."""
    end = max(times.values()) + _RIGHT / 2
    xs = [*(times[at] for at, _ in steps), end]
    levels = _levels([value for _, value in steps])
    ys = [top + 25 - level * 9 for level in levels]
    line = [(x, y) for (x, after), y in zip(pairwise(xs), ys, strict=True) for x in (x, after)]
    picture.line(line, Ink.BELIEF, stroke_width=1.8)
    free = -math.inf
    for (_, value), x, after in zip(steps, xs, xs[1:], strict=False):
        text = svg_label(value if isinstance(value, str) else value_in_a_line(value, 24), 24)
        wide = width_of(text, 10) + 6
        if x >= free and (after - x >= wide or x == xs[-2]):
            look = {"font_size": 10, **({"text_anchor": "end"} if x + wide > _WIDTH else {})}
            picture.text((min(x, _WIDTH - 4) if look else x, top + 11), text, Ink.TEXT, **look)
            free = x + wide


def _levels(values: Sequence[Any]) -> list[float]:
    """How high each value is drawn, from 0 to 1: numbers by size, others in order of coming."""
    numbers = [one for one in values if is_number(one)]
    if len(numbers) < len(values):
        names = list(dict.fromkeys(map(repr, values)))
        numbers = [names.index(repr(one)) for one in values]
    low, high = min(numbers), max(numbers)
    return [(one - low) / (high - low) if high > low else 0.5 for one in numbers]


def _in_words(history: ToolHistory) -> str:
    sorts = [event.sort for row in history.rows for event in row.events]
    counts = ", ".join(
        f"{sort}s: {sorts.count(sort)}"
        for sort in ToolEventSort
        if sort is not ToolEventSort.PROPERTIES
    )
    names = ", ".join(row.tool for row in history.rows)
    return f"Tools: {names}; {counts}. The table below says what happened when."
