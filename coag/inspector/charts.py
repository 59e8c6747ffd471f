"""The drawings of pages: a view in, SVG out.

Colours are custom properties of the page, named in its style; foreign text is a short label.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import accumulate, groupby, pairwise
from statistics import mean
from textwrap import TextWrapper
from typing import Any, cast
from unicodedata import east_asian_width
from xml.etree.ElementTree import Element

from coag._util.svg import Point, SvgPicture, brief, svg_label

from .beliefs import BeliefTrack
from .fading import FadedRow
from .memory import KeptTrack
from .views import CycleRow, Lane, LaneSpan, ModuleHistory, StateSeries
from .why import Edge, Node, NodeSort, WhyGraph


class Ink(StrEnum):
    """The colours of the page."""

    TEXT = "currentColor"
    QUIET = "var(--plot-quiet)"
    GRID = "var(--plot-grid)"
    BELIEF = "var(--plot-belief)"
    TRUTH = "var(--plot-truth)"
    WRONG = "var(--plot-wrong)"
    PROMPT = "var(--plot-prompt)"
    CACHED = "var(--plot-cached)"
    COMPLETION = "var(--plot-completion)"
    GOOD = "var(--plot-good)"
    BAD = "var(--plot-bad)"
    PAPER = "var(--plot-paper)"


_NOTHING = "There is no cycle yet."
_WIDTH, _LEFT, _RIGHT, _BELOW = 480.0, 44.0, 12.0, 26.0
_LOW = 96.0
"""Height of a small plot."""
_LEGEND = 24.0
"""Height of a legend."""
_JOINTS = re.compile(r"(\s+|[^\s_(,=/.]*[_(,=/.]+)")
"""Behind these a long name is broken."""
_LARGEST = 1e100
"""Beyond it a number is not drawn."""


@dataclass(frozen=True, slots=True)
class _Plot:
    """The area of a plot (left, top, width, height), and which values it shows."""

    picture: SvgPicture
    area: tuple[float, float, float, float]
    xs: tuple[float, float]
    ys: tuple[float, float]

    def x(self, value: float) -> float:
        """Pixels from the left of the drawing."""
        left, _, width, _ = self.area
        return left + (value - self.xs[0]) / (self.xs[1] - self.xs[0]) * width

    def y(self, value: float) -> float:
        """Pixels from the top of the drawing; in its middle where all values are the same."""
        (_, top, _, height), (low, high) = self.area, self.ys
        share = (value - low) / (high - low) if high > low else 0.5
        return top + height - share * height

    def mark_left(self, marks: Mapping[float, str]) -> None:
        """Faint lines across, each with its name at the left."""
        left, _, width, _ = self.area
        for value, name in marks.items():
            y = self.y(value)
            self.picture.line(((left, y), (left + width, y)), Ink.GRID, stroke_opacity=0.25)
            self.picture.text((left - 6, y + 4), name, Ink.QUIET, text_anchor="end")

    def mark_bottom(self, marks: Mapping[float, str], unit: str = "cycle") -> None:
        """A line at the bottom, with names below it."""
        left, top, width, height = self.area
        low = top + height
        self.picture.line(((left, low), (left + width, low)), Ink.QUIET, stroke_width=0.8)
        for value, name in marks.items():
            self.picture.text((self.x(value), low + 16), name, Ink.QUIET, text_anchor="middle")
        self.picture.text((left - 6, low + 16), unit, Ink.QUIET, text_anchor="end")

    def draw(
        self, xs: Sequence[float], ys: Sequence[float], ink: str, *, steps: bool, **look: Any
    ) -> None:
        """A line through points, with gaps where nothing is known; with steps if so wanted."""
        points = [(self.x(x), self.y(y)) for x, y in zip(xs, ys, strict=True)]
        for known, run in groupby(points, lambda point: math.isfinite(point[1])):
            line = list(run)
            if steps:
                halves = [((one[0] + other[0]) / 2, one, other) for one, other in pairwise(line)]
                bends = [(x, y) for x, one, other in halves for y in (one[1], other[1])]
                line = [line[0], *bends, line[-1]]
            if len(line) == 1:
                line = [(line[0][0] - 1, line[0][1]), (line[0][0] + 1, line[0][1])]
            if known:
                self.picture.line(line, ink, **look)


def width_of(text: str, size: float = 12) -> float:
    """About how wide a text is in pixels, in a usual sans-serif font of a size."""
    return size * sum(
        1.05 if east_asian_width(one) in "WF" else 0.4 if one in "iljtfrI.,:;'|!()[] " else 0.64
        for one in text
    )


def _wrapped(text: str, width: float, lines: int) -> list[str]:
    """A foreign text broken into a few lines; what has no room is cut with an ellipsis."""
    label = svg_label(text, 120) or "(nothing)"
    room = int(width / (width_of(label) / len(label)))
    wrapper = TextWrapper(max(room, 2), max_lines=lines, placeholder="…")
    wrapper.wordsep_re = _JOINTS
    return wrapper.wrap(label)


def ticks(low: float, high: float, count: int, *, whole: bool = False) -> list[float]:
    """About so many round numbers between two bounds, at least one; whole ones if so wanted."""
    rough = (high - low) / max(count, 1)
    if rough <= 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((unit * power for unit in (1, 2, 5) if unit * power >= rough), 10 * power)
    step = max(1.0, step) if whole else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [n * step for n in range(first, last + 1)] or [low]


def _number(value: float) -> str:
    """A number in few characters, e.g. `1234k`."""
    units = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
    unit, letter = next((one for one in units if abs(value) >= 10 * one[0]), (1, ""))
    return f"{value / unit:.4g}{letter}".replace("-", "\N{MINUS SIGN}")


def _add_legend(picture: SvgPicture, keys: Mapping[str, tuple[str, str]], left: float) -> None:
    """Names with their colours, from `left` to the right; each a line, dashes, cross or area."""
    for name, (ink, sort) in keys.items():
        if sort == "area":
            picture.add("rect", x=left + 8, y=5, width=12, height=12, rx=2, fill=ink)
        elif sort == "cross":
            _add_crosses(picture, [(left + 11, 11)])
        else:
            look = _TRUE if sort == "dashes" else {"stroke_width": 2}
            picture.line(((left, 11), (left + 22, 11)), ink, **look)
        picture.text((left + 28, 15), name, Ink.TEXT)
        left += 46 + width_of(name)


def _add_crosses(picture: SvgPicture, places: Sequence[Point]) -> None:
    d = "".join(f"M{brief(x - 4)} {brief(y - 4)}l8 8m0 -8l-8 8" for x, y in places)
    picture.add("path", d=d, stroke=Ink.WRONG, stroke_width=2, fill="none")


# ---- One field over the cycles: what was believed, and what was true ----


_HIGH, _BETWEEN = 90.0, 24.0
"""Heights of a plot's inside, and of what is between two."""
_DOTS = 40
"""Points up to which each is marked."""
_MARKED = 60
"""Stretches and crosses that are drawn."""
_KINDS = 8
"""Values of a discrete field that have a row of their own."""
_OTHER = "others"
_TRUE: dict[str, Any] = {"stroke_width": 4.5, "stroke_dasharray": "7.2 3.2", "stroke_opacity": 0.75}


@dataclass(frozen=True, slots=True)
class _Line:
    """Numbers to draw: of one field, or of one part of it."""

    cycles: list[int]
    believed: list[float]
    true: list[float]
    steps: bool
    rows: tuple[str, ...] = ()
    """Of a discrete field: its values, whose numbers are the places in this."""


def belief_svg(track: BeliefTrack, prefix: str) -> str:
    """A field of the perceptual state as a line, beside the environment's.

    Belief is a thin line and truth a broad dashed one; where they differ there is a cross.
    """
    lines = _lines(track) if track.points else []
    room = max((width_of(row) for line in lines for row in line.rows), default=0.0)
    left = max(_LEFT, room + 14)
    height = _LEGEND + max(1, len(lines)) * (_HIGH + _BETWEEN) - _BETWEEN + _BELOW
    title = f"{track.path} over the cycles"
    picture = SvgPicture((_WIDTH, height), title, _beliefs_in_words(track), prefix)
    keys = {"believed": (Ink.BELIEF, "line")}
    keys |= {"true": (Ink.TRUTH, "dashes")} if track.true_path else {}
    keys |= {"they differ": (Ink.WRONG, "cross")} if track.wrong else {}
    _add_legend(picture, keys, left)
    if not lines:
        picture.text((left, height / 2), _NOTHING, Ink.QUIET)
    for part, line in enumerate(lines):
        top = _LEGEND + 6 + part * (_HIGH + _BETWEEN)
        _draw_belief(picture, line, (left, top), last=part == len(lines) - 1)
        if len(lines) > 1:
            place = (_WIDTH - _RIGHT, top - 4)
            picture.text(place, f"[{part}]", Ink.QUIET, text_anchor="end")
    return str(picture)


def _draw_belief(picture: SvgPicture, line: _Line, place: Point, *, last: bool) -> None:
    first, end = line.cycles[0], max(line.cycles[-1], line.cycles[0] + 1)
    known = [value for value in (*line.believed, *line.true) if math.isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=0.0)
    spare = 0.5 if line.rows else (high - low) * 0.15 or max(1.0, abs(high) / 10)
    marks = dict(enumerate(line.rows)) if line.rows else {}
    if known and not line.rows:
        whole = all(map(float.is_integer, known))
        marks = {value: _number(value) for value in ticks(low, high, 3, whole=whole)}
    ys = (-0.5, len(line.rows) - 0.5) if line.rows else (low - spare, high + spare)
    area = (*place, _WIDTH - place[0] - _RIGHT, _HIGH - 6)
    plot = _Plot(picture, area, (first - 0.5, end + 0.5), ys)
    plot.mark_left({float(value): name for value, name in marks.items()})
    if last:
        plot.mark_bottom({value: _number(value) for value in ticks(first, end, 8, whole=True)})
    wrong = list(_wrong(line))[:_MARKED]
    for start, *_, stop in wrong:
        x, wide = plot.x(start - 0.5), plot.x(stop + 0.5) - plot.x(start - 0.5)
        box = {"x": x, "y": area[1], "width": wide, "height": area[3]}
        picture.add("rect", None, **box, fill=Ink.WRONG, fill_opacity=0.12)
    plot.draw(line.cycles, line.true, Ink.TRUTH, steps=line.steps, **_TRUE)
    plot.draw(line.cycles, line.believed, Ink.BELIEF, steps=line.steps, stroke_width=1.8)
    few = len(line.cycles) <= _DOTS
    believed = {
        cycle: (plot.x(cycle), plot.y(value))
        for cycle, value in zip(line.cycles, line.believed, strict=True)
        if math.isfinite(value)
    }
    for x, y in believed.values() if few else ():
        picture.add("circle", cx=x, cy=y, r=2.5, fill=Ink.BELIEF)
    crossed = [cycle for stretch in wrong for cycle in (stretch if few else stretch[:1])]
    _add_crosses(picture, [believed[cycle] for cycle in dict.fromkeys(crossed[:_MARKED])])


def _wrong(line: _Line) -> Iterator[list[int]]:
    """The stretches of cycles in which belief and truth differ; each has at least two entries."""

    def differ(point: tuple[int, float, float]) -> bool:
        known = math.isfinite(point[1]) and math.isfinite(point[2])
        return known and not math.isclose(point[1], point[2], abs_tol=1e-9)

    points = zip(line.cycles, line.believed, line.true, strict=True)
    for apart, stretch in groupby(points, differ):
        if apart:
            cycles = [cycle for cycle, _, _ in stretch]
            yield [cycles[0], *cycles]


def _lines(track: BeliefTrack) -> list[_Line]:
    """A line for the field, or for each of the numbers in it."""
    if not track.numeric:
        values = [_named(p.believed) for p in track.points] + [_named(p.true) for p in track.points]
        names = list(dict.fromkeys(name for name in values if name))
        if set(names) <= {"true", "false"}:
            names = ["false", "true"]
        if len(names) > _KINDS:
            names = [*names[: _KINDS - 1], _OTHER]
        places = {name: float(place) for place, name in enumerate(names)}

        def take(value: Any) -> float:
            name = _named(value)
            return places.get(name, places.get(_OTHER, math.nan)) if name else math.nan

        return [_line(track, take, steps=True, rows=tuple(names))]
    sizes = map(_size, (point.believed for point in track.points))
    parts = range(next((size for size in sizes if size), 0))
    if not parts:
        return [_line(track, _as_number, steps=False)]
    return [_line(track, partial(_as_number, part=part), steps=True) for part in parts]


def _line(
    track: BeliefTrack, take: Callable[[Any], float], *, steps: bool, rows: tuple[str, ...] = ()
) -> _Line:
    believed = [take(point.believed) for point in track.points]
    true = [take(point.true) for point in track.points]
    few = len({*believed, *true} - {math.nan}) <= 2
    return _Line([point.cycle for point in track.points], believed, true, steps or few, rows)


def _size(value: Any) -> int:
    return len(cast("Sequence[Any]", value)) if isinstance(value, list | tuple) else 0


def _as_number(value: Any, part: int | None = None) -> float:
    if part is not None:
        value = value[part] if part < _size(value) else None
    return float(value) if is_number(value) else math.nan


def is_number(value: Any) -> bool:
    """Whether a value is a number that can be drawn."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and abs(value) < _LARGEST


def _named(value: Any) -> str:
    """A value as the name of a row; empty for none."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return svg_label(text, 22) or "(empty)"


def _beliefs_in_words(track: BeliefTrack) -> str:
    if not track.points:
        return _NOTHING
    first, last = track.points[0], track.points[-1]
    begun, ended = (_named(point.believed) or "nothing" for point in (first, last))
    text = f"Believed from cycle {first.cycle} to {last.cycle}: first {begun}, last {ended}."
    if not track.true_path:
        return f"{text} The environment does not report the truth."
    wrong = f"{track.wrong} of {len(track.points)} cycles" if track.wrong else "no cycle"
    return f"{text} Belief and truth differ in {wrong}."


# ---- Tokens by cycle ----


_HEIGHT = 170.0
_PLACES = 160
"""Places of a long run; each shows the mean of a few cycles."""
_LAYERS = {
    "prompt, from the cache": Ink.CACHED,
    "prompt": Ink.PROMPT,
    "completion": Ink.COMPLETION,
}


def cost_svg(rows: Sequence[CycleRow], prefix: str) -> str:
    """The tokens of each cycle: prompt from the cache, other prompt, and completion."""
    every = max(1, math.ceil(len(rows) / _PLACES))
    groups = [rows[start : start + every] for start in range(0, len(rows), every)]
    title = "Tokens by cycle" if every == 1 else f"Tokens by cycle, means of {every}"
    picture = SvgPicture((_WIDTH, _HEIGHT), title, _cost_in_words(rows), prefix)
    _add_legend(picture, {name: (ink, "area") for name, ink in _LAYERS.items()}, _LEFT - 8)
    if not groups:
        picture.text((_LEFT, _HEIGHT / 2), _NOTHING, Ink.QUIET)
        return str(picture)
    sums = [list(accumulate(_tokens(group), initial=0.0)) for group in groups]
    most = max(1.0, *(each[-1] for each in sums)) * 1.05
    area = (_LEFT, _LEGEND + 6, _WIDTH - _LEFT - _RIGHT, _HEIGHT - _LEGEND - _BELOW - 6)
    plot = _Plot(picture, area, (-0.6, max(len(groups), 8) - 0.4), (0.0, most))
    plot.mark_left({value: _number(value) for value in ticks(0, most, 3, whole=True)})
    half = 0.36 if len(groups) <= 60 else 0.5
    for layer, ink in enumerate(_LAYERS.values()):
        bars = "".join(
            f"M{brief(plot.x(place - half))} {brief(plot.y(each[layer]))}"
            f"V{brief(plot.y(each[layer + 1]))}H{brief(plot.x(place + half))}"
            f"V{brief(plot.y(each[layer]))}z"
            for place, each in enumerate(sums)
            if each[layer + 1] > each[layer]
        )
        picture.add("path", d=bars or "M0 0", fill=ink)
    marked = range(0, len(groups), math.ceil(len(groups) / 8))
    plot.mark_bottom({float(place): str(groups[place][0].number) for place in marked})
    return str(picture)


def kept_svg(track: KeptTrack, prefix: str) -> str:
    """How strong a record was at each of its recalls."""
    cycles, strengths = zip(*track.points, strict=True)
    words = f"From {strengths[0]:.2f} in cycle {cycles[0]} to {strengths[-1]:.2f} in {cycles[-1]}."
    ends = (cycles[0] - 0.5, cycles[-1] + 0.5)
    plot = _strength_plot("Strength at each recall", words, prefix, ends)
    plot.draw(cycles, strengths, Ink.BELIEF, steps=False, stroke_width=2)
    plot.mark_bottom({float(one): str(one) for one in {cycles[0], cycles[-1]}})
    return str(plot.picture)


def fading_svg(row: FadedRow, prefix: str) -> str:
    """How strong a record was in the days after its last use, until it left recall."""
    days, strengths = zip(*row.curve, strict=True)
    words = f"From {strengths[0]:.2f} to {strengths[-1]:.3f} in {days[-1]:.0f} days without a use."
    plot = _strength_plot("Strength since the last use", words, prefix, (0.0, days[-1]))
    floor = [row.floor, row.floor]
    plot.draw((0.0, days[-1]), floor, Ink.WRONG, steps=False, stroke_dasharray="4 3")
    plot.draw(days, strengths, Ink.BELIEF, steps=False, stroke_width=2)
    marked = ticks(0.0, days[-1], 6, whole=True)[1:]
    plot.mark_bottom({day: _number(day) for day in marked}, "day")
    return str(plot.picture)


def _strength_plot(title: str, words: str, prefix: str, xs: tuple[float, float]) -> _Plot:
    picture = SvgPicture((_WIDTH, _LOW), title, words, prefix)
    area = (_LEFT, 8.0, _WIDTH - _LEFT - _RIGHT, _LOW - _BELOW - 8)
    plot = _Plot(picture, area, xs, (0.0, 1.0))
    plot.mark_left({0.0: "0", 1.0: "1"})
    return plot


def _tokens(rows: Sequence[CycleRow]) -> tuple[float, float, float]:
    """The means of each layer."""
    cached = mean(row.usage.cached_tokens for row in rows)
    prompt = mean(row.usage.prompt_tokens for row in rows)
    return cached, max(0.0, prompt - cached), mean(row.usage.completion_tokens for row in rows)


def _cost_in_words(rows: Sequence[CycleRow]) -> str:
    if not rows:
        return _NOTHING
    prompt = sum(row.usage.prompt_tokens for row in rows)
    cached = sum(row.usage.cached_tokens for row in rows)
    completion = sum(row.usage.completion_tokens for row in rows)
    return (
        f"Cycles {rows[0].number} to {rows[-1].number}: {prompt:,} prompt tokens, {cached:,} of "
        f"them from the cache, and {completion:,} completion tokens."
    )


# ---- What an awareness module held over the cycles ----


_WIDE, _NAMES = 1080.0, 312.0
"""How wide it is, and where the cycles begin; names are to the left."""
_HEAD, _LANE, _SERIES = 26.0, 19.0, 36.0
"""Heights of rows."""
_LANE_HEADS = {
    "goal": ("Goals", "full: pursued · thin: open · dashed: blocked · faint: deferred or closed"),
    "transition": ("What happened", "full: kept for good · hollow: only the latest are kept"),
    "attention": ("Attention", "the higher a bar the more urgent · outlined: suppressed"),
}
_ATTENTION_INKS = {"threat": Ink.WRONG, "opportunity": Ink.GOOD, "anomaly": Ink.TRUTH}


def history_svg(
    history: ModuleHistory, cycle: int, prefix: str, leads: Callable[[int], str]
) -> str:
    """What a module held over the cycles, one of them marked; `leads` gives their addresses."""
    kinds = [kind for kind in _LANE_HEADS if any(lane.kind == kind for lane in history.lanes)]
    height = 44.0 + _HEAD * len(kinds) + _LANE * len(history.lanes)
    height += (_HEAD + _SERIES * len(history.series)) if history.series else 0
    title = "Goals, transitions, attention and resources over the cycles"
    every = math.ceil(len(history.cycles) / 14)
    marked = {of: leads(of) for of in sorted({*history.cycles[::every], cycle})} if every else {}
    role = "group" if any(marked.values()) else "img"
    picture = SvgPicture((_WIDE, max(height, 60)), title, _history_in_words(history), prefix, role)
    if not history.cycles:
        picture.text((2, 30), _NOTHING, Ink.QUIET)
        return str(picture)
    area = (_NAMES, 26, _WIDE - _NAMES - 14, height - 26)
    plot = _Plot(picture, area, (-0.5, len(history.cycles) - 0.5), (0, 1))
    places = {of: place for place, of in enumerate(history.cycles)}
    _draw_cycles(plot, places, cycle, marked)
    top = 26.0
    for kind in kinds:
        _draw_head(picture, *_LANE_HEADS[kind], top)
        top += _HEAD
        for lane in (one for one in history.lanes if one.kind == kind):
            _draw_lane(plot, lane, places, top)
            top += _LANE
    if history.series:
        _draw_head(picture, "Resources and counts", "from the least to the most of each", top)
        top += _HEAD
    for series in history.series:
        _draw_series(plot, series, top)
        top += _SERIES
    return str(picture)


def _draw_cycles(
    plot: _Plot, places: Mapping[int, int], shown: int, marked: Mapping[int, str]
) -> None:
    """Numbers of cycles, each a link to its page, and a band at the one that is shown."""
    picture = plot.picture
    picture.text((_NAMES - 10, 14), "cycle", Ink.QUIET, text_anchor="end")
    for cycle in filter(places.__contains__, marked):
        within = picture.add("a", href=marked[cycle]) if marked[cycle] else None
        ink, weight = (Ink.TEXT, "600") if cycle == shown else (Ink.QUIET, "")
        at = (plot.x(places[cycle]), 14)
        picture.text(at, str(cycle), ink, within, text_anchor="middle", font_weight=weight)
    if shown in places:
        _, top, width, height = plot.area
        wide = max(width / len(places), 3.0)
        box = {"x": plot.x(places[shown]) - wide / 2, "y": top - 4, "width": wide}
        picture.add("rect", None, **box, height=height, fill=Ink.BELIEF, fill_opacity=0.13)


def _draw_head(picture: SvgPicture, title: str, note: str, top: float) -> None:
    picture.text((2, top + 18), title, Ink.TEXT, font_size=13, font_weight="600")
    picture.text((_NAMES, top + 18), note, Ink.QUIET, font_size=11)
    picture.line(((2, top + 2), (_WIDE - 2, top + 2)), Ink.GRID, stroke_opacity=0.4)


def _draw_name(picture: SvgPicture, text: str, top: float) -> None:
    picture.text((8, top + 13), _wrapped(text, _NAMES - 16, 1)[0], Ink.TEXT)


def _draw_lane(plot: _Plot, lane: Lane, places: Mapping[int, int], top: float) -> None:
    _draw_name(plot.picture, lane.label, top)
    group = plot.picture.add("g")
    plot.picture.add("title", group).text = svg_label(f"{lane.kind}: {lane.label}", 300)
    for span in lane.spans:
        left = plot.x(places.get(span.first, 0) - 0.5)
        wide = max(plot.x(places.get(span.last, 0) + 0.5) - left - 1, 1.5)
        high, look = _span_look(lane, span)
        if lane.kind == "transition":
            left, wide = left + wide / 2 - 4, min(8.0, max(wide, 3.0))
        box = {"x": left, "y": top + 9 - high / 2, "width": wide, "height": high, "rx": 2}
        plot.picture.add("rect", group, **box, **look)


def _span_look(lane: Lane, span: LaneSpan) -> tuple[float, dict[str, Any]]:
    """How high a span is, and its presentation attributes."""
    outlined = {"fill": "none", "stroke_dasharray": "4 2"}
    if lane.kind == "attention":
        ink = _ATTENTION_INKS.get(lane.label.partition(":")[0], Ink.BELIEF)
        high = 3 + 10 * min(max(span.weight, 0.0), 1.0)
        return high, {"stroke": ink, **outlined} if span.state == "suppressed" else {"fill": ink}
    if lane.kind == "transition":
        ink = Ink.WRONG if lane.label in ("failure", "reversal") else Ink.BELIEF
        return 8, {"fill": ink} if span.strong else {"fill": "none", "stroke": ink}
    if span.state == "blocked":
        return 8, {"stroke": Ink.WRONG, **outlined}
    if span.state in ("deferred", "completed", "abandoned"):
        ink = Ink.GOOD if span.state == "completed" else Ink.QUIET
        return 2, {"fill": ink, "fill_opacity": 0.6}
    return 11 if span.strong else 5, {"fill": Ink.BELIEF}


def _draw_series(plot: _Plot, series: StateSeries, top: float) -> None:
    """A line with a step at each change; where nothing is known it has a gap."""
    values = [_as_number(value) for value in series.values]
    known = [value for value in values if math.isfinite(value)]
    last = next((value for value in reversed(series.values) if value is not None), None)
    of = f" of {series.capacity:g}" if series.capacity is not None else ""
    name = f"{svg_label(series.name, 40)}: {'-' if last is None else f'{last:g}'}{of}"
    _draw_name(plot.picture, name, top)
    if not known:
        return
    least, most = min(known), max(known)
    if series.capacity is not None and series.capacity > 0:
        least, most = min(0.0, least), max(series.capacity, most)
    left, _, width, _ = plot.area
    area = (left, top + 3, width, _SERIES - 11)
    low = top + _SERIES - 8
    plot.picture.line(((left, low), (left + width, low)), Ink.GRID, stroke_width=0.7)
    lane = _Plot(plot.picture, area, plot.xs, (least, most))
    lane.draw(range(len(values)), values, Ink.BELIEF, steps=True, stroke_width=1.8)


def _history_in_words(history: ModuleHistory) -> str:
    if not history.cycles:
        return _NOTHING
    happened = ", ".join(lane.label for lane in history.lanes if lane.kind == "transition")
    return (
        f"Cycles {history.cycles[0]} to {history.cycles[-1]}. Transitions: {happened or 'none'}. "
        "The table below says what changed in each cycle."
    )


# ---- What a decision was based on, as a graph from left to right ----


_COLUMNS: Mapping[str, tuple[NodeSort, ...]] = {
    "it rested on": (NodeSort.PERCEPT, NodeSort.RECORD, NodeSort.PROCEDURE),
    "understood as": (NodeSort.REASONING,),
    "considered": (NodeSort.CANDIDATE,),
    "decided": (NodeSort.CHOICE, NodeSort.CONSTRAINT),
}
_NODE, _ROOM, _GAP, _TOP = 184.0, 64.0, 12.0, 30.0
"""Width of a node; between two columns; between two nodes of a column; above them."""
_FRAGMENT = re.compile(r"#[A-Za-z][\w-]{0,60}")
_SHARES = (0.5, 0.7, 0.3, 0.85, 0.15)
"""Where on an edge its label may be: those of neighbours do not meet."""


@dataclass(slots=True)
class _NodeBox:
    """A node with its place."""

    node: Node
    lines: list[str]
    left: float
    top: float = 0.0

    @property
    def height(self) -> float:
        return 30 + len(self.lines) * 15

    @property
    def middle(self) -> float:
        return self.top + self.height / 2


def why_svg(graph: WhyGraph, prefix: str, leads: Callable[[str], str]) -> str:
    """The decision of a cycle as a small graph; `leads` gives addresses of spots of its page."""
    links = {
        node.id: leads(node.link[1:]) for node in graph.nodes if _FRAGMENT.fullmatch(node.link)
    }
    columns = _columns(graph)
    boxes = {box.node.id: box for column in columns.values() for box in column}
    height = max((box.top + box.height for box in boxes.values()), default=60.0) + 3
    picture = SvgPicture(
        (max(len(columns), 3) * (_NODE + _ROOM) - _ROOM + 4, height),
        f"What the decision of cycle {graph.cycle} rested on",
        " ".join(graph.sentences[:8]) or "Nothing is known of it.",
        prefix,
        "group" if any(links.values()) else "img",
    )
    if not boxes:
        picture.text((2, _TOP), "Nothing was decided yet.", Ink.QUIET)
    for title, column in columns.items():
        picture.text((column[0].left, 14), title, Ink.QUIET)
    arriving: Counter[str] = Counter()
    for edge in sorted(graph.edges, key=lambda one: one.good is True):
        source, target = boxes.get(edge.source), boxes.get(edge.target)
        if source and target and target.left > source.left:
            share = _SHARES[arriving[edge.target] % len(_SHARES)]
            arriving[edge.target] += 1
            start, end = (source.left + _NODE, source.middle), (target.left - 1, target.middle)
            _draw_edge(picture, edge, start, end, share)
    for box in boxes.values():
        address = links.get(box.node.id)
        within = picture.add("a", href=address) if address else None
        _draw_node(picture, box, within)
    return str(picture)


def _columns(graph: WhyGraph) -> dict[str, list[_NodeBox]]:
    """The columns that hold anything, with every node in its place."""
    columns: dict[str, list[_NodeBox]] = {}
    for title, sorts in _COLUMNS.items():
        left = 2 + len(columns) * (_NODE + _ROOM)
        nodes = [node for sort in sorts for node in graph.nodes if node.sort is sort]
        if nodes:
            columns[title] = [
                _NodeBox(node, _wrapped(node.label, _NODE - 22, 3), left) for node in nodes
            ]
    tall = {
        title: sum(box.height + _GAP for box in column) - _GAP for title, column in columns.items()
    }
    placed: dict[str, _NodeBox] = {}

    def pull(box: _NodeBox) -> float:
        """The mean height of what leads to a node, so that few edges cross."""
        leading = [edge.source for edge in graph.edges if edge.target == box.node.id]
        return mean([placed[one].middle for one in leading if one in placed] or [0.0])

    for title, column in columns.items():
        if placed and title == list(columns)[-1]:
            column.sort(key=pull)
        top = _TOP + (max(tall.values()) - tall[title]) / 2
        for box in column:
            box.top = top
            top += box.height + _GAP
            placed[box.node.id] = box
    return columns


def _draw_node(picture: SvgPicture, box: _NodeBox, within: Element | None) -> None:
    node = box.node
    group = picture.add("g", within)
    picture.add("title", group).text = svg_label(node.detail or node.label, 400)
    ink = _ink_of(node.good)
    dashes = "5 3" if node.good is False else ""
    width = 2 if node.good else 1.5
    place = {"x": box.left, "y": box.top, "width": _NODE, "height": box.height, "rx": 6}
    line = {"stroke": ink, "stroke_width": width, "stroke_dasharray": dashes}
    picture.add("rect", group, **place, fill=Ink.PAPER, **line)
    picture.text((box.left + 10, box.top + 19), _heading(node), ink, group, font_size=10)
    if node.note:
        end = (box.left + _NODE - 10, box.top + 19)
        note = svg_label(node.note, 18)
        picture.text(end, note, Ink.TEXT, group, font_size=10, text_anchor="end")
    for row, text in enumerate(box.lines):
        picture.text((box.left + 10, box.top + 37 + row * 15), text, Ink.TEXT, group)


def _ink_of(good: bool | None) -> str:
    return Ink.QUIET if good is None else Ink.GOOD if good else Ink.BAD


def _heading(node: Node) -> str:
    """What it is, and in words what its border says."""
    if node.good is None or node.sort is NodeSort.CONSTRAINT:
        return node.sort.value
    if node.sort is NodeSort.CHOICE:
        return "choice" if node.good else "impasse"
    return f"{node.sort.value}, {'chosen' if node.good else 'rejected'}"


def _draw_edge(picture: SvgPicture, edge: Edge, start: Point, end: Point, share: float) -> None:
    (x, y), (to_x, to_y), bend = start, end, _ROOM * 0.55
    curve = (x + bend, y, to_x - bend, to_y, to_x - 6, to_y)
    d = f"M{brief(x)} {brief(y)}C{' '.join(map(brief, curve))}"
    ink, dashes = _ink_of(edge.good), "5 3" if edge.good is False else ""
    width = 2.2 if edge.good else 1.3
    picture.add("path", d=d, fill="none", stroke=ink, stroke_width=width, stroke_dasharray=dashes)
    picture.add("path", d=f"M{brief(to_x)} {brief(to_y)}l-7 -3.5v7z", fill=ink)
    text = svg_label(edge.label, 18)
    if text:
        smooth = share * share * (3 - 2 * share)
        x, y = x + (to_x - x) * share, y + (to_y - y) * smooth
        wide = width_of(text, 10) + 6
        box = {"x": x - wide / 2, "y": y - 7, "width": wide, "height": 14, "rx": 3}
        picture.add("rect", None, **box, fill=Ink.PAPER)
        picture.text((x, y + 3.5), text, Ink.TEXT, font_size=10, text_anchor="middle")
