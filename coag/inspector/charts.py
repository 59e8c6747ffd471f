"""The drawings of pages: a view in, SVG out."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeGuard, cast
from xml.etree.ElementTree import Element, SubElement

from .beliefs import BeliefTrack, BeliefView
from .shapes import (
    LEGEND,
    Ink,
    Key,
    Place,
    add_box,
    add_legend,
    add_path,
    add_text,
    at,
    brief,
    drawing,
    label,
    number,
    ticks,
    width_of,
    wrapped,
    written,
)
from .views import CycleRow, Lane, LaneSpan, ModuleHistory, StateSeries
from .why import Edge, Node, NodeSort, WhyGraph

_NOTHING = "There is no cycle yet."
_WIDTH = 480.0
_LEFT = 44.0
_RIGHT = 12.0
_BELOW = 26.0
_LARGEST = 1e100
"""Beyond it a number is not drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plot:
    """The area of a plot, and which values it shows."""

    root: Element
    left: float
    top: float
    width: float
    height: float
    xs: tuple[float, float]
    ys: tuple[float, float]

    def x(self, value: float) -> float:
        """Pixels from the left of the drawing."""
        low, high = self.xs
        return self.left + (value - low) / (high - low) * self.width

    def y(self, value: float) -> float:
        """Pixels from the top of the drawing."""
        low, high = self.ys
        return self.top + self.height - (value - low) / (high - low) * self.height

    def mark_left(self, marks: Mapping[float, str]) -> None:
        """Faint lines across, each with its name at the left."""
        for value, name in marks.items():
            y = self.y(value)
            add_path(
                self.root,
                f"{at(self.left, y)}h{brief(self.width)}",
                Ink.GRID,
                1,
                {"stroke-opacity": "0.25"},
            )
            place = (self.left - 6, y + 4)
            add_text(self.root, name, place, ink=Ink.QUIET, anchor="end")

    def mark_bottom(self, marks: Mapping[float, str]) -> None:
        """A line at the bottom, with names below it."""
        low = self.top + self.height
        add_path(self.root, f"{at(self.left, low)}h{brief(self.width)}", Ink.QUIET, 0.8)
        for value, name in marks.items():
            add_text(self.root, name, (self.x(value), low + 16), ink=Ink.QUIET, anchor="middle")
        add_text(self.root, "cycle", (self.left - 6, low + 16), ink=Ink.QUIET, anchor="end")


# ---- One field over the cycles: what was believed, and what was true ----


_HIGH = 90.0
"""Height of a plot's inside."""
_BETWEEN = 24.0
_DOTS = 40
"""Points up to which each is marked."""
_MARKED = 60
"""Stretches and crosses that are drawn."""
_KINDS = 8
"""Values of a discrete field that have a row of their own."""
_NAME = 22
_OTHER = "others"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """Numbers to draw: of one field, or of one part of it."""

    cycles: list[int]
    believed: list[float]
    true: list[float]
    steps: bool
    rows: tuple[str, ...] = ()
    """Of a discrete field: its values, whose numbers are the places in this."""


def belief_svgs(beliefs: BeliefView, *, prefix: str) -> list[str]:
    """A drawing of each field, in order; empty for what has no point or never changed.

    Args:
        beliefs: The fields.
        prefix: What all ids begin with, unique in the page.
    """
    return [
        belief_svg(track, prefix=f"{prefix}{at}") if track.points and not track.steady else ""
        for at, track in enumerate(beliefs.tracks)
    ]


def belief_svg(track: BeliefTrack, *, prefix: str) -> str:
    """A field of the perceptual state as a line, beside the environment's.

    Belief is a thin line and truth a broad dashed one; where they differ there is a cross.

    Args:
        track: The field; with no points the drawing says so.
        prefix: What its ids begin with, unique in the page: letters, digits and hyphens.
    """
    lines = _lines(track) if track.points else []
    room = max((width_of(row, 12) for line in lines for row in line.rows), default=0.0)
    left = max(_LEFT, room + 14)
    height = LEGEND + max(1, len(lines)) * (_HIGH + _BETWEEN) - _BETWEEN + _BELOW
    root = drawing(
        _WIDTH,
        height,
        prefix=prefix,
        title=f"{track.path} over the cycles",
        description=_beliefs_in_words(track),
    )
    keys = [Key(name="believed", ink=Ink.BELIEF, sort="line")]
    if track.true_path:
        keys.append(Key(name="true", ink=Ink.TRUTH, sort="dashes"))
    if track.wrong:
        keys.append(Key(name="they differ", ink=Ink.WRONG, sort="cross"))
    add_legend(root, keys, left)
    if not lines:
        add_text(root, _NOTHING, (left, height / 2), ink=Ink.QUIET)
    for part, line in enumerate(lines):
        top = LEGEND + 6 + part * (_HIGH + _BETWEEN)
        _draw_belief(root, line, (left, top), last=part == len(lines) - 1)
        if len(lines) > 1:
            place = (_WIDTH - _RIGHT, top - 4)
            add_text(root, f"[{part}]", place, ink=Ink.QUIET, anchor="end")
    return written(root)


def _draw_belief(root: Element, line: _Line, place: Place, *, last: bool) -> None:
    first, end = line.cycles[0], line.cycles[-1]
    known = [value for value in (*line.believed, *line.true) if math.isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=0.0)
    if line.rows:
        ys, marks = (-0.5, len(line.rows) - 0.5), dict(enumerate(line.rows))
    else:
        spare = (high - low) * 0.15 or max(1.0, abs(high) / 10)
        whole = all(map(float.is_integer, known))
        ys = (low - spare, high + spare)
        marks = (
            {value: number(value) for value in ticks(low, high, 3, whole=whole)} if known else {}
        )
    plot = _Plot(
        root=root,
        left=place[0],
        top=place[1],
        width=_WIDTH - place[0] - _RIGHT,
        height=_HIGH - 6,
        xs=(first - 0.5, max(end, first + 1) + 0.5),
        ys=ys,
    )
    plot.mark_left({float(value): name for value, name in marks.items()})
    shown = ticks(first, max(end, first + 1), 8, whole=True) if last else []
    plot.mark_bottom({value: number(value) for value in shown}) if last else None
    _draw_lines(plot, line)


def _draw_lines(plot: _Plot, line: _Line) -> None:
    few = len(line.cycles) <= _DOTS
    wrong = _wrong(line)
    for start, end in wrong:
        x, wide = plot.x(start - 0.5), plot.x(end + 0.5) - plot.x(start - 0.5)
        look = {"fill": Ink.WRONG.value, "fill-opacity": "0.12"}
        add_box(plot.root, (x, plot.top, wide, plot.height), look, radius=0)
    dashes = {"stroke-dasharray": "7.2 3.2", "stroke-opacity": "0.75"}
    add_path(plot.root, _path(plot, line, line.true), Ink.TRUTH, 4.5, dashes)
    add_path(plot.root, _path(plot, line, line.believed), Ink.BELIEF, 1.8)
    if few:
        dots = (p for p in zip(line.cycles, line.believed, strict=True) if math.isfinite(p[1]))
        d = "".join(f"{at(plot.x(x) - 0.1, plot.y(y))}h0.2" for x, y in dots)
        add_path(plot.root, d, Ink.BELIEF, 5, {"stroke-linecap": "round"})
    believed = dict(zip(line.cycles, line.believed, strict=True))
    crossed = [
        cycle
        for cycle in line.cycles
        if any(start <= cycle <= end if few else cycle == start for start, end in wrong)
    ][:_MARKED]
    places = ((plot.x(cycle) - 4, plot.y(believed[cycle]) - 4) for cycle in crossed)
    add_path(plot.root, "".join(f"{at(*one)}l8 8m0 -8l-8 8" for one in places), Ink.WRONG, 2)


def _path(plot: _Plot, line: _Line, values: Sequence[float]) -> str:
    """A line through points, with gaps where nothing is known; with steps between them if so."""
    pieces: list[str] = []
    before: Place | None = None
    for cycle, value in zip(line.cycles, values, strict=True):
        if not math.isfinite(value):
            before = None
            continue
        here = (plot.x(cycle), plot.y(value))
        if before is None:
            pieces.append(at(*here))
        elif line.steps:
            middle = brief((before[0] + here[0]) / 2)
            pieces.append(f"H{middle}V{brief(here[1])}H{brief(here[0])}")
        else:
            pieces.append(f"L{brief(here[0])} {brief(here[1])}")
        before = here
    return "".join(pieces)


def _wrong(line: _Line) -> list[tuple[int, int]]:
    """The stretches of cycles in which belief and truth differ, the first ones of many."""
    spans: list[tuple[int, int]] = []
    open_span = False
    for cycle, believed, true in zip(line.cycles, line.believed, line.true, strict=True):
        known = math.isfinite(believed) and math.isfinite(true)
        differ = known and not math.isclose(believed, true, abs_tol=1e-9)
        if differ and open_span:
            spans[-1] = (spans[-1][0], cycle)
        elif differ:
            spans.append((cycle, cycle))
        open_span = differ
    return spans[:_MARKED]


def _lines(track: BeliefTrack) -> list[_Line]:
    """A line for the field, or for each of the numbers in it."""
    if not track.numeric:
        return [_discrete(track)]
    sizes = [len(cast("list[Any]", p.believed)) for p in track.points if _is_list(p.believed)]
    if not sizes:
        return [_line(track, _as_number, steps=False)]
    return [_line(track, _part_of(part), steps=True) for part in range(sizes[0])]


def _line(
    track: BeliefTrack, take: Callable[[Any], float], *, steps: bool, rows: tuple[str, ...] = ()
) -> _Line:
    believed = [take(point.believed) for point in track.points]
    true = [take(point.true) for point in track.points]
    few = len({*believed, *true} - {math.nan}) <= 2
    cycles = [point.cycle for point in track.points]
    return _Line(cycles=cycles, believed=believed, true=true, steps=steps or few, rows=rows)


def _discrete(track: BeliefTrack) -> _Line:
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

    return _line(track, take, steps=True, rows=tuple(names))


def _as_number(value: Any) -> float:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known and abs(value) < _LARGEST else math.nan


def _part_of(part: int) -> Callable[[Any], float]:
    def take(value: Any) -> float:
        items = cast("list[Any]", value) if _is_list(value) else []
        return _as_number(items[part]) if part < len(items) else math.nan

    return take


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _named(value: Any) -> str:
    """A value as the name of a row; empty for none."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return label(text, _NAME) or "(empty)"


def _beliefs_in_words(track: BeliefTrack) -> str:
    if not track.points:
        return _NOTHING
    first, last = track.points[0], track.points[-1]
    values = (_named(first.believed) or "nothing", _named(last.believed) or "nothing")
    text = (
        f"Believed from cycle {first.cycle} to {last.cycle}: first {values[0]}, last {values[1]}."
    )
    if not track.true_path:
        return f"{text} The environment does not tell what was so."
    wrong = f"{track.wrong} of {len(track.points)} cycles" if track.wrong else "no cycle"
    return f"{text} Belief and truth differ in {wrong}."


# ---- Tokens by cycle ----


_HEIGHT = 170.0
_BARS = 60
"""Cycles up to which there is room between their bars."""
_PLACES = 160
"""Places of a long run; each shows the mean of a few cycles."""
_LAYERS = (
    ("prompt, from the cache", Ink.CACHED),
    ("prompt", Ink.PROMPT),
    ("completion", Ink.COMPLETION),
)


def cost_svg(rows: Sequence[CycleRow], *, prefix: str) -> str:
    """The tokens of each cycle: prompt from the cache, other prompt, and completion.

    Args:
        rows: Cycles in order.
        prefix: What its ids begin with, unique in the page: letters, digits and hyphens.
    """
    every = max(1, math.ceil(len(rows) / _PLACES))
    groups = [rows[start : start + every] for start in range(0, len(rows), every)]
    title = "Tokens by cycle" if every == 1 else f"Tokens by cycle, means of {every}"
    root = drawing(_WIDTH, _HEIGHT, prefix=prefix, title=title, description=_cost_in_words(rows))
    add_legend(root, [Key(name=name, ink=ink, sort="area") for name, ink in _LAYERS], _LEFT - 8)
    if not groups:
        add_text(root, _NOTHING, (_LEFT, _HEIGHT / 2), ink=Ink.QUIET)
        return written(root)
    sums = [list(accumulate(_tokens(group), initial=0.0)) for group in groups]
    most = max(1.0, *(each[-1] for each in sums)) * 1.05
    plot = _Plot(
        root=root,
        left=_LEFT,
        top=LEGEND + 6,
        width=_WIDTH - _LEFT - _RIGHT,
        height=_HEIGHT - LEGEND - _BELOW - 6,
        xs=(-0.6, max(len(groups), 8) - 0.4),
        ys=(0.0, most),
    )
    plot.mark_left({value: number(value) for value in ticks(0, most, 3, whole=True)})
    half = 0.36 if len(groups) <= _BARS else 0.5
    for layer, (_, ink) in enumerate(_LAYERS):
        bars = "".join(
            f"{at(plot.x(place - half), plot.y(each[layer]))}V{brief(plot.y(each[layer + 1]))}"
            f"H{brief(plot.x(place + half))}V{brief(plot.y(each[layer]))}z"
            for place, each in enumerate(sums)
            if each[layer + 1] > each[layer]
        )
        if bars:
            SubElement(root, "path", {"d": bars, "fill": ink.value})
    marked = range(0, len(groups), math.ceil(len(groups) / 8))
    plot.mark_bottom({float(place): str(groups[place][0].number) for place in marked})
    return written(root)


def _tokens(rows: Sequence[CycleRow]) -> tuple[float, float, float]:
    """The means of each layer."""
    cached = sum(row.usage.cached_tokens for row in rows) / len(rows)
    prompt = sum(row.usage.prompt_tokens for row in rows) / len(rows)
    completion = sum(row.usage.completion_tokens for row in rows) / len(rows)
    return cached, max(0.0, prompt - cached), completion


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


_WIDE = 1080.0
_NAMES = 312.0
"""Where the cycles begin; names are to the left."""
_HEAD, _LANE, _SERIES = 26.0, 19.0, 36.0
"""Heights of rows, in pixels."""
_LANE_HEADS = {
    "goal": ("Goals", "full: pursued · thin: open · dashed: blocked · faint: deferred or closed"),
    "transition": ("What happened", "full: kept for good · hollow: only the latest are kept"),
    "attention": ("Attention", "the higher a bar the more urgent · outlined: suppressed"),
}
_ATTENTION_INKS = {"threat": Ink.WRONG, "opportunity": Ink.GOOD, "anomaly": Ink.TRUTH}


def history_svg(
    history: ModuleHistory, cycle: int, *, prefix: str, leads: Callable[[int], str] | None = None
) -> str:
    """What a module held over the cycles, with the cycle that is shown marked.

    Args:
        history: What it held; with no cycle the drawing says so.
        cycle: The cycle that is shown.
        prefix: What its ids begin with, unique in the page: letters, digits and hyphens.
        leads: Gives the address of the page of a cycle; None for no links.
    """
    kinds = [kind for kind in _LANE_HEADS if any(lane.kind == kind for lane in history.lanes)]
    height = 44.0 + _HEAD * len(kinds) + _LANE * len(history.lanes)
    height += (_HEAD + _SERIES * len(history.series)) if history.series else 0
    root = drawing(
        _WIDE,
        max(height, 60),
        prefix=prefix,
        title="Goals, transitions, attention and resources over the cycles",
        description=_history_in_words(history),
        role="group" if leads and history.cycles else "img",
    )
    if not history.cycles:
        add_text(root, _NOTHING, (2, 30), ink=Ink.QUIET)
        return written(root)
    plot = _Plot(
        root=root,
        left=_NAMES,
        top=26,
        width=_WIDE - _NAMES - 14,
        height=height - 26,
        xs=(-0.5, len(history.cycles) - 0.5),
        ys=(0, 1),
    )
    places = {of: place for place, of in enumerate(history.cycles)}
    _draw_cycles(plot, places, cycle, leads)
    top = 26.0
    for kind in kinds:
        _draw_head(root, *_LANE_HEADS[kind], top)
        top += _HEAD
        for lane in (one for one in history.lanes if one.kind == kind):
            _draw_lane(plot, lane, places, top)
            top += _LANE
    if history.series:
        _draw_head(root, "Resources and counts", "from the least to the most of each", top)
        top += _HEAD
    for series in history.series:
        _draw_series(plot, series, top)
        top += _SERIES
    return written(root)


def _draw_cycles(
    plot: _Plot, places: Mapping[int, int], shown: int, leads: Callable[[int], str] | None
) -> None:
    """Numbers of cycles, each a link to its page, and a band at the one that is shown."""
    every = math.ceil(len(places) / 14)
    marked = {cycle for cycle, place in places.items() if place % every == 0} | {shown}
    add_text(plot.root, "cycle", (_NAMES - 10, 14), ink=Ink.QUIET, anchor="end")
    for cycle in sorted(marked & set(places)):
        parent = plot.root
        if leads is not None:
            parent = SubElement(parent, "a", {"href": leads(cycle)})
        ink, x = Ink.TEXT if cycle == shown else Ink.QUIET, plot.x(places[cycle])
        add_text(parent, str(cycle), (x, 14), ink=ink, anchor="middle", bold=cycle == shown)
    if shown in places:
        wide = max(plot.width / len(places), 3.0)
        look = {"fill": Ink.BELIEF.value, "fill-opacity": "0.13"}
        box = (plot.x(places[shown]) - wide / 2, plot.top - 4, wide, plot.height)
        add_box(plot.root, box, look)


def _draw_head(root: Element, title: str, note: str, top: float) -> None:
    add_text(root, title, (2, top + 18), size=13, bold=True)
    add_text(root, note, (_NAMES, top + 18), ink=Ink.QUIET, size=11)
    line = f"{at(2, top + 2)}H{brief(_WIDE - 2)}"
    add_path(root, line, Ink.GRID, 1, {"stroke-opacity": "0.4"})


def _draw_name(root: Element, text: str, top: float) -> None:
    name = wrapped(label(text, 120) or "(nothing)", _NAMES - 16, 12, 1)
    add_text(root, name[0], (8, top + 13))


def _draw_lane(plot: _Plot, lane: Lane, places: Mapping[int, int], top: float) -> None:
    _draw_name(plot.root, lane.label, top)
    group = SubElement(plot.root, "g")
    SubElement(group, "title").text = label(f"{lane.kind}: {lane.label}", 300)
    for span in lane.spans:
        left = plot.x(places.get(span.first, 0) - 0.5)
        wide = max(plot.x(places.get(span.last, 0) + 0.5) - left - 1, 1.5)
        high, look = _span_look(lane, span)
        if lane.kind == "transition":
            left, wide = left + wide / 2 - 4, min(8.0, max(wide, 3.0))
        add_box(group, (left, top + 9 - high / 2, wide, high), look)


def _span_look(lane: Lane, span: LaneSpan) -> tuple[float, dict[str, str]]:
    """How high a span is, and its presentation attributes."""
    if lane.kind == "attention":
        ink = _ATTENTION_INKS.get(lane.label.partition(":")[0], Ink.BELIEF)
        high = 3 + 10 * min(max(span.weight, 0.0), 1.0)
        return high, _outlined(ink) if span.state == "suppressed" else {"fill": ink.value}
    if lane.kind == "transition":
        ink = Ink.WRONG if lane.label in ("failure", "reversal") else Ink.BELIEF
        return 8, {"fill": ink.value} if span.strong else {"fill": "none", "stroke": ink.value}
    if span.state == "blocked":
        return 8, _outlined(Ink.WRONG)
    if span.state in ("deferred", "completed", "abandoned"):
        ink = Ink.GOOD if span.state == "completed" else Ink.QUIET
        return 2, {"fill": ink.value, "fill-opacity": "0.6"}
    return 11 if span.strong else 5, {"fill": Ink.BELIEF.value}


def _outlined(ink: Ink) -> dict[str, str]:
    return {"fill": "none", "stroke": ink.value, "stroke-dasharray": "4 2"}


def _draw_series(plot: _Plot, series: StateSeries, top: float) -> None:
    """A line with a step at each change; where nothing is known it has a gap."""
    known = [value for value in series.values if _is_drawn(value)]
    last = next((value for value in reversed(series.values) if value is not None), None)
    of = f" of {series.capacity:g}" if series.capacity is not None else ""
    text = "-" if last is None else f"{last:g}"
    _draw_name(plot.root, f"{label(series.name, 40)}: {text}{of}", top)
    if not known:
        return
    least, most = min(known), max(known)
    if series.capacity is not None and series.capacity > 0:
        least, most = min(0.0, least), max(series.capacity, most)
    d, open_line = "", False
    for place, value in enumerate(series.values):
        if not _is_drawn(value):
            open_line = False
            continue
        share = (value - least) / (most - least) if most > least else 0.5
        y = top + _SERIES - 8 - share * (_SERIES - 11)
        d += f"V{brief(y)}" if open_line else at(plot.x(place - 0.5), y)
        d += f"H{brief(plot.x(place + 0.5))}"
        open_line = True
    low = f"{at(_NAMES, top + _SERIES - 8)}h{brief(plot.width)}"
    add_path(plot.root, low, Ink.GRID, 0.7)
    add_path(plot.root, d, Ink.BELIEF, 1.8)


def _is_drawn(value: float | None) -> TypeGuard[float]:
    """Whether a number is known, and can be drawn."""
    return value is not None and abs(value) < _LARGEST


def _history_in_words(history: ModuleHistory) -> str:
    if not history.cycles:
        return _NOTHING
    happened = ", ".join(lane.label for lane in history.lanes if lane.kind == "transition")
    return (
        f"Cycles {history.cycles[0]} to {history.cycles[-1]}. Transitions: {happened or 'none'}. "
        "The table below says what changed in each cycle."
    )


# ---- What a decision was based on, as a graph from left to right ----


_COLUMNS: tuple[tuple[str, tuple[NodeSort, ...]], ...] = (
    ("it rested on", (NodeSort.PERCEPT, NodeSort.RECORD, NodeSort.PROCEDURE)),
    ("understood as", (NodeSort.REASONING,)),
    ("considered", (NodeSort.CANDIDATE,)),
    ("came to", (NodeSort.CHOICE, NodeSort.CONSTRAINT)),
)
_NODE = 184.0
"""Width of a node."""
_ROOM = 64.0
"""Between two columns."""
_GAP = 12.0
"""Between two nodes of a column."""
_TOP = 30.0
_EDGE_LABEL = 18
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


def why_svg(graph: WhyGraph, *, prefix: str, leads: Callable[[str], str] | None = None) -> str:
    """The decision of a cycle as a small graph.

    It has a size of its own, in which its texts can be read: the page lets it be scrolled.

    Args:
        graph: What took part; with no nodes the drawing says so.
        prefix: What its ids begin with, unique in the page: letters, digits and hyphens.
        leads: Gives the address of a spot of the cycle's page, by its id; None for no links.
    """
    linked = leads is not None and any(_FRAGMENT.fullmatch(node.link) for node in graph.nodes)
    columns = _columns(graph)
    boxes = {box.node.id: box for _, column in columns for box in column}
    height = max((column[-1].top + column[-1].height for _, column in columns), default=60.0)
    root = drawing(
        max(len(columns), 3) * (_NODE + _ROOM) - _ROOM + 4,
        height + 3,
        prefix=prefix,
        title=f"What the decision of cycle {graph.cycle} rested on",
        description=" ".join(graph.sentences[:8]) or "Nothing is known of it.",
        role="group" if linked else "img",
        grows=False,
    )
    if not boxes:
        add_text(root, "Nothing was decided yet.", (2, _TOP), ink=Ink.QUIET)
    for title, column in columns:
        add_text(root, title, (column[0].left, 14), ink=Ink.QUIET)
    _draw_edges(root, graph.edges, boxes)
    for box in boxes.values():
        _draw_node(root, box, leads)
    return written(root)


def _columns(graph: WhyGraph) -> list[tuple[str, list[_NodeBox]]]:
    """The columns that hold anything, with every node in its place."""
    columns: list[tuple[str, list[_NodeBox]]] = []
    for title, sorts in _COLUMNS:
        left = 2 + len(columns) * (_NODE + _ROOM)
        nodes = sorted(
            (n for n in graph.nodes if n.sort in sorts), key=lambda n: sorts.index(n.sort)
        )
        if nodes:
            texts = [label(node.label, 120) or "(nothing)" for node in nodes]
            lines = [wrapped(text, _NODE - 22, 12, 3) for text in texts]
            boxes = [_NodeBox(*pair, left) for pair in zip(nodes, lines, strict=True)]
            columns.append((title, boxes))
    tallest = max((_tall(column) for _, column in columns), default=0.0)
    placed: dict[str, _NodeBox] = {}
    for place, (_, column) in enumerate(columns):
        if place == len(columns) - 1 and place:
            column.sort(key=lambda box: _pull(box.node.id, graph.edges, placed))
        top = _TOP + (tallest - _tall(column)) / 2
        for box in column:
            box.top = top
            top += box.height + _GAP
            placed[box.node.id] = box
    return columns


def _tall(column: Sequence[_NodeBox]) -> float:
    return sum(box.height for box in column) + _GAP * (len(column) - 1)


def _pull(node: str, edges: Sequence[Edge], placed: Mapping[str, _NodeBox]) -> float:
    """The mean height of what leads to a node, so that few edges cross."""
    found = [placed[e.source].middle for e in edges if e.target == node and e.source in placed]
    return sum(found) / len(found) if found else 0.0


def _draw_node(root: Element, box: _NodeBox, leads: Callable[[str], str] | None) -> None:
    node, parent = box.node, root
    if leads is not None and _FRAGMENT.fullmatch(node.link):
        parent = SubElement(root, "a", {"href": leads(node.link.removeprefix("#"))})
    group = SubElement(parent, "g", {"class": f"node {node.sort.value}"})
    SubElement(group, "title").text = label(node.detail or node.label, 400)
    ink = Ink.QUIET if node.good is None else Ink.GOOD if node.good else Ink.BAD
    border = {"stroke": ink.value, "stroke-width": "2" if node.good else "1.5"}
    border |= {} if node.good is not False else {"stroke-dasharray": "5 3"}
    place = (box.left, box.top, _NODE, box.height)
    add_box(group, place, {"fill": Ink.PAPER.value, **border}, radius=6)
    add_text(group, _heading(node), (box.left + 10, box.top + 19), ink=ink, size=10)
    if node.note:
        note = label(node.note, _EDGE_LABEL)
        end = (box.left + _NODE - 10, box.top + 19)
        add_text(group, note, end, size=10, anchor="end")
    for row, line in enumerate(box.lines):
        add_text(group, line, (box.left + 10, box.top + 37 + row * 15))


def _heading(node: Node) -> str:
    """What it is, and in words what its border says."""
    if node.good is None or node.sort is NodeSort.CONSTRAINT:
        return node.sort.value
    if node.sort is NodeSort.CHOICE:
        return "choice" if node.good else "impasse"
    return f"{node.sort.value}, {'chosen' if node.good else 'rejected'}"


def _draw_edges(root: Element, edges: Sequence[Edge], boxes: Mapping[str, _NodeBox]) -> None:
    for edge, source, target, share in _placed_edges(edges, boxes):
        start, end = (source.left + _NODE, source.middle), (target.left - 1, target.middle)
        bend = _ROOM * 0.55
        d = f"{at(*start)}C{brief(start[0] + bend)} {brief(start[1])} {brief(end[0] - bend)} "
        d += f"{brief(end[1])} {brief(end[0] - 6)} {brief(end[1])}"
        ink = Ink.QUIET if edge.good is None else Ink.GOOD if edge.good else Ink.BAD
        dashes = {"stroke-dasharray": "5 3"} if edge.good is False else None
        add_path(root, d, ink, 2.2 if edge.good else 1.3, dashes)
        SubElement(root, "path", {"d": f"{at(*end)}l-7 -3.5v7z", "fill": ink.value})
        text = label(edge.label, _EDGE_LABEL)
        if text:
            smooth = share * share * (3 - 2 * share)
            x, y = start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * smooth
            wide = width_of(text, 10) + 6
            add_box(root, (x - wide / 2, y - 7, wide, 14), {"fill": Ink.PAPER.value}, radius=3)
            add_text(root, text, (x, y + 3.5), size=10, anchor="middle")


def _placed_edges(
    edges: Sequence[Edge], boxes: Mapping[str, _NodeBox]
) -> Iterator[tuple[Edge, _NodeBox, _NodeBox, float]]:
    """The edges that lead to the right, those of the choice last, each with its label's place."""
    arriving: dict[str, int] = {}
    for edge in sorted(edges, key=lambda one: one.good is True):
        source, target = boxes.get(edge.source), boxes.get(edge.target)
        if source and target and target.left > source.left:
            place = arriving[edge.target] = arriving.get(edge.target, -1) + 1
            yield edge, source, target, _SHARES[place % len(_SHARES)]
