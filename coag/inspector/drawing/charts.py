"""Charts of beliefs and costs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from itertools import accumulate
from threading import Lock
from typing import Any, Protocol, cast

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from coag.inspector.views import Belief, BeliefPoint, BeliefTrack, CycleRow

from .canvas import (
    LEGEND,
    Ink,
    Key,
    add_legend,
    add_note,
    drawing,
    label,
    take_plot,
    width_of,
    written,
)

# ---- Plots: matplotlib, and nothing of it that reaches a page ----


FONT = 12.0
"""Size of texts, in pixels at the drawing's natural size."""
_DPI = 72
"""One point is one pixel then."""
_LOCK = Lock()
"""matplotlib's settings are the process's, so one plot is drawn at a time."""
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "coag",
    "text.parse_math": False,
    "font.size": FONT,
    "axes.axisbelow": True,
    "axes.edgecolor": Ink.QUIET.stand_in,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "grid.alpha": 0.25,
    "grid.color": Ink.GRID.stand_in,
    "grid.linewidth": 1,
    "xtick.color": Ink.QUIET.stand_in,
    "xtick.major.pad": 6,
    "xtick.major.size": 0,
    "ytick.color": Ink.QUIET.stand_in,
    "ytick.major.pad": 6,
    "ytick.major.size": 0,
}
_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_MINUS = "\u2212"
_library = cast("Any", mpl)


class Plane(Protocol):
    """What is used of matplotlib's `Axes`, whose own types are not all known."""

    def plot(self, x: Sequence[float], y: Sequence[float], **look: Any) -> Any:
        """Draws a line, or marks."""
        ...

    def stairs(self, values: Sequence[float], edges: Sequence[float], **look: Any) -> Any:
        """Draws an area with steps."""
        ...

    def axvspan(self, xmin: float, xmax: float, **look: Any) -> Any:
        """Shades a stretch from top to bottom."""
        ...

    def tick_params(self, **look: Any) -> None:
        """Sets how ticks look."""
        ...

    def set_xlim(self, left: float, right: float) -> Any:
        """Sets what is shown from left to right."""
        ...

    def set_ylim(self, bottom: float, top: float) -> Any:
        """Sets what is shown from bottom to top."""
        ...

    def margins(self, *, y: float) -> Any:
        """Leaves a share of room above and below."""
        ...


@contextmanager
def plotting() -> Generator[None]:
    """While it lasts, plots are made as drawings need them."""
    with _LOCK, _library.rc_context(_SETTINGS):
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure without ground, of a size in pixels."""
    figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI)
    figure.patch.set_visible(False)
    return figure


def add_plane(figure: Figure, box: tuple[float, float, float, float]) -> Plane:
    """Room for a plot, with a line at the bottom and faint ones behind.

    Args:
        figure: The figure.
        box: Left, top, width and height in pixels.
    """
    wide, high = figure.get_size_inches() * _DPI
    left, top, width, height = box
    place = (left / wide, 1 - (top + height) / high, width / wide, height / high)
    axes = cast("Any", figure).add_axes(place)
    axes.patch.set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
    axes.xaxis.set_major_formatter(_formatter(_number))
    return cast("Plane", axes)


def mark_numbers(plane: Plane, *, whole: bool) -> None:
    """A few numbers at the left.

    Args:
        plane: Where.
        whole: True if only whole numbers make sense.
    """
    axis = cast("Any", plane).yaxis
    axis.set_major_locator(MaxNLocator(nbins=3, integer=whole, min_n_ticks=2))
    axis.set_major_formatter(_formatter(_number))


def mark_only(plane: Plane, value: float) -> None:
    """One number at the left, in the middle: there is no other."""
    axis = cast("Any", plane).yaxis
    axis.set_major_locator(FixedLocator([value]))
    axis.set_major_formatter(_formatter(_number))
    room = max(1.0, abs(value) / 10)
    plane.set_ylim(value - room, value + room)


def mark_rows(plane: Plane, names: Sequence[str]) -> None:
    """Names at the left in place of the numbers 0, 1, 2 and so on."""
    axis = cast("Any", plane).yaxis
    axis.set_major_locator(FixedLocator(list(range(len(names)))))
    axis.set_major_formatter(_formatter(lambda place: names[int(place)]))


def mark_places(plane: Plane, names: dict[int, str]) -> None:
    """Names at places of the bottom."""
    axis = cast("Any", plane).xaxis
    axis.set_major_locator(FixedLocator(list(names)))
    axis.set_major_formatter(_formatter(lambda place: names.get(round(place), "")))


def svg_of(figure: Figure) -> str:
    """The figure as SVG, as matplotlib writes it."""
    file = StringIO()
    canvas = cast("Any", FigureCanvasSVG(figure))
    canvas.print_svg(file, metadata={"Date": None, "Creator": None})
    return file.getvalue()


def _formatter(name: Callable[[float], str]) -> FuncFormatter:
    def named(value: float, _: int | None) -> str:
        return name(value)

    return FuncFormatter(named)


def _number(value: float) -> str:
    """A number in few characters."""
    for unit, letter in _UNITS:
        if abs(value) >= 10 * unit:
            return f"{value / unit:.4g}{letter}".replace("-", _MINUS)
    return f"{value:.4g}".replace("-", _MINUS)


# ---- One field over the cycles: what was believed, and what was so ----


WIDTH = 480.0
_HIGH = 96.0
"""Height of a plot's inside."""
_BELOW = 26.0
_BETWEEN = 18.0
_RIGHT = 12.0
_LEFT = 44.0
_DOTS = 40
"""Points up to which each is marked."""
_CROSSES = 60
_SPANS = 60
"""Stretches that are shaded, at most."""
_KINDS = 8
"""Values of a discrete field that have a row of their own."""
_NAME = 22
_OTHER = "others"
_LARGEST = 1e100
"""Beyond it a number is not drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lines:
    """Numbers to draw: of one field, or of one part of it."""

    cycles: list[int]
    believed: list[float]
    true: list[float]
    steps: bool
    rows: tuple[str, ...] = ()
    """Of a discrete field: its values, whose numbers are the places in this."""


def belief_svg(track: BeliefTrack, *, prefix: str, width: float = WIDTH) -> str:
    """A field of the perceptual state as a line, beside the environment's.

    Belief is a thin line and truth a broad dashed one; where they differ there is a cross.

    Args:
        track: The field; with no points the drawing says so.
        prefix: What its ids begin with, unique in the page: letters, digits and hyphens.
        width: In pixels at its natural size, at least 240.

    Returns:
        An `<svg>` element.
    """
    parts = _parts(track) if track.points else []
    left = max([_LEFT, *(_room(part.rows) for part in parts)])
    height = LEGEND + max(1, len(parts)) * (_HIGH + _BETWEEN) - _BETWEEN + _BELOW
    root = drawing(
        width,
        height,
        prefix=prefix,
        title=f"{track.path} over the cycles",
        told=_belief_in_words(track),
    )
    add_legend(root, _keys(track), left)
    if not parts:
        add_note(root, "There is no cycle yet.", (left, height / 2))
        return written(root)
    plot, texts = _plotted(parts, left, width, height)
    take_plot(root, plot, prefix=prefix, texts=texts)
    add_note(root, "cycle", (left - 6, height - 10), end=True)
    for number in range(len(parts) if len(parts) > 1 else 0):
        top = LEGEND + number * (_HIGH + _BETWEEN)
        add_note(root, f"[{number}]", (width - _RIGHT, top), end=True)
    return written(root)


def _plotted(
    parts: Sequence[_Lines], left: float, width: float, height: float
) -> tuple[str, dict[str, str]]:
    """The plots of all parts, one below the other, and the names of their rows."""
    texts: dict[str, str] = {}
    with plotting():
        figure = new_figure(width, height)
        for number, part in enumerate(parts):
            top = LEGEND + number * (_HIGH + _BETWEEN)
            plane = add_plane(figure, (left, top + 6, width - left - _RIGHT, _HIGH - 6))
            texts |= _mark(plane, part)
            _draw_belief(plane, part)
            if number < len(parts) - 1:
                plane.tick_params(labelbottom=False)
        return svg_of(figure), texts


def _mark(plane: Plane, part: _Lines) -> dict[str, str]:
    """Marks the left of a plot; what its marks stand for, where they hold foreign text."""
    if part.rows:
        stand_ins = [f"row {place}" for place in range(len(part.rows))]
        mark_rows(plane, stand_ins)
        plane.set_ylim(-0.5, len(part.rows) - 0.5)
        return dict(zip(stand_ins, part.rows, strict=True))
    known = [value for value in (*part.believed, *part.true) if math.isfinite(value)]
    if not known:
        return {}
    if min(known) == max(known):
        mark_only(plane, known[0])
    else:
        mark_numbers(plane, whole=all(map(float.is_integer, known)))
        room = (max(known) - min(known)) * 0.15
        plane.set_ylim(min(known) - room, max(known) + room)
    return {}


def _draw_belief(plane: Plane, part: _Lines) -> None:
    first, last = part.cycles[0], part.cycles[-1]
    plane.set_xlim(first - 0.5, max(last, first + 1) + 0.5)
    shape = "steps-mid" if part.steps else "default"
    few = len(part.cycles) <= _DOTS
    for start, end in _wrong(part):
        plane.axvspan(start - 0.5, end + 0.5, color=Ink.WRONG.stand_in, alpha=0.12, linewidth=0)
    plane.plot(
        part.cycles,
        part.true,
        color=Ink.TRUTH.stand_in,
        linewidth=4.5,
        linestyle=(0, (1.6, 0.7)),
        alpha=0.75,
        drawstyle=shape,
        dash_capstyle="butt",
        marker="s" if len(part.cycles) == 1 else "",
        markersize=9,
    )
    plane.plot(
        part.cycles,
        part.believed,
        color=Ink.BELIEF.stand_in,
        linewidth=1.8,
        marker="o" if few else "",
        markersize=4.2,
        drawstyle=shape,
    )
    _cross(plane, part, few=few)


def _cross(plane: Plane, part: _Lines, *, few: bool) -> None:
    """Marks where they differ: each cycle, or where there are many each stretch."""
    held = dict(zip(part.cycles, part.believed, strict=True))
    spans = _wrong(part)
    crossed = [
        cycle
        for cycle in part.cycles
        if any(start <= cycle <= end if few else cycle == start for start, end in spans)
    ][:_CROSSES]
    if crossed:
        plane.plot(
            crossed,
            [held[cycle] for cycle in crossed],
            color=Ink.WRONG.stand_in,
            marker="x",
            markersize=8,
            markeredgewidth=2,
            linestyle="none",
        )


def _wrong(part: _Lines) -> list[tuple[int, int]]:
    """The stretches of cycles in which belief and truth differ, the first ones of many."""
    spans: list[tuple[int, int]] = []
    open_span = False
    for cycle, held, so in zip(part.cycles, part.believed, part.true, strict=True):
        known = math.isfinite(held) and math.isfinite(so)
        differ = known and not math.isclose(held, so, abs_tol=1e-9)
        if differ and open_span:
            spans[-1] = (spans[-1][0], cycle)
        elif differ:
            spans.append((cycle, cycle))
        open_span = differ
    return spans[:_SPANS]


# ---- what is drawn ----


def _parts(track: BeliefTrack) -> list[_Lines]:
    """A line each: of the field, or of the numbers in it."""
    if not track.numeric:
        return [_discrete(track)]
    sizes = [len(cast("list[Any]", p.believed)) for p in track.points if _is_list(p.believed)]
    if not sizes:
        return [_numeric(track, _itself)]
    return [_numeric(track, _part(number)) for number in range(sizes[0])]


def _numeric(track: BeliefTrack, take: Callable[[Any], float]) -> _Lines:
    believed, true = _both(track.points, take)
    few = len({*believed, *true} - {math.nan}) <= 2
    return _Lines(
        cycles=[point.cycle for point in track.points],
        believed=believed,
        true=true,
        steps=few or _is_list(track.points[0].believed),
    )


def _discrete(track: BeliefTrack) -> _Lines:
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

    believed, true = _both(track.points, take)
    cycles = [point.cycle for point in track.points]
    rows = tuple(names)
    return _Lines(cycles=cycles, believed=believed, true=true, steps=True, rows=rows)


def _both(
    points: Sequence[BeliefPoint], take: Callable[[Any], float]
) -> tuple[list[float], list[float]]:
    return [take(point.believed) for point in points], [take(point.true) for point in points]


def _itself(value: Any) -> float:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known and abs(value) < _LARGEST else math.nan


def _part(number: int) -> Callable[[Any], float]:
    def take(value: Any) -> float:
        items = cast("list[Any]", value) if _is_list(value) else []
        return _itself(items[number]) if number < len(items) else math.nan

    return take


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _named(value: Any) -> str:
    """A value as the name of a row; empty for none."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return label(text, _NAME) or "(empty)"


def _room(rows: Sequence[str]) -> float:
    return max((width_of(row, FONT) for row in rows), default=0) + 14


# ---- in words ----


def _keys(track: BeliefTrack) -> list[Key]:
    keys = [Key(name="believed", ink=Ink.BELIEF, sort="line")]
    if track.true_path:
        keys.append(Key(name="true", ink=Ink.TRUTH, sort="dashes"))
    if track.wrong:
        keys.append(Key(name="they differ", ink=Ink.WRONG, sort="cross"))
    return keys


def _belief_in_words(track: BeliefTrack) -> str:
    if not track.points:
        return "There is no cycle yet."
    first, last = track.points[0], track.points[-1]
    told = f"Believed from cycle {first.cycle} to {last.cycle}: "
    told += f"first {_shown(first.believed)}, last {_shown(last.believed)}."
    if not track.true_path:
        return f"{told} The environment does not tell what was so."
    wrong = f"{track.wrong} of {len(track.points)} cycles" if track.wrong else "no cycle"
    return f"{told} Belief and truth differ in {wrong}."


def _shown(value: Any) -> str:
    return _named(value) or "nothing"


# ---- Tokens by cycle ----


_HEIGHT = 170.0
_BARS = 60
"""Cycles up to which there is room between their bars."""
_PLACES = 160
"""Places of a long run; each stands for the mean of a few cycles."""
_TICKS = 8
_HALF = 0.36
"""Half of a bar that stands apart."""
_LAYERS = (
    ("prompt, from the cache", Ink.CACHED),
    ("prompt", Ink.PROMPT),
    ("completion", Ink.COMPLETION),
)


@dataclass(frozen=True, slots=True)
class _Place:
    """One cycle, or the mean of a few."""

    number: int
    tokens: tuple[float, float, float]
    """Of each layer."""


def cost_svg(rows: Sequence[CycleRow], *, prefix: str, width: float = WIDTH) -> str:
    """The tokens of each cycle: prompt from the cache, other prompt, and completion.

    Args:
        rows: Cycles in order.
        prefix: What its ids begin with, unique in the page: letters, digits and hyphens.
        width: In pixels at its natural size, at least 240.

    Returns:
        An `<svg>` element.
    """
    every = max(1, math.ceil(len(rows) / _PLACES))
    places = [_place(rows[start : start + every]) for start in range(0, len(rows), every)]
    title = "Tokens by cycle" if every == 1 else f"Tokens by cycle, means of {every}"
    root = drawing(width, _HEIGHT, prefix=prefix, title=title, told=_cost_in_words(rows))
    keys = [Key(name=name, ink=ink, sort="area") for name, ink in _LAYERS]
    add_legend(root, keys, _LEFT - 8)
    if places:
        with plotting():
            figure = new_figure(width, _HEIGHT)
            high = _HEIGHT - LEGEND - _BELOW
            plane = add_plane(figure, (_LEFT, LEGEND + 6, width - _LEFT - _RIGHT, high - 6))
            _draw_cost(plane, places)
            plot = svg_of(figure)
        take_plot(root, plot, prefix=prefix, texts={})
        add_note(root, "cycle", (_LEFT - 6, _HEIGHT - 10), end=True)
    else:
        add_note(root, "There is no cycle yet.", (_LEFT, _HEIGHT / 2))
    return written(root)


def _place(rows: Sequence[CycleRow]) -> _Place:
    usages = [row.usage for row in rows]
    cached = sum(usage.cached_tokens for usage in usages) / len(rows)
    prompt = sum(usage.prompt_tokens for usage in usages) / len(rows)
    completion = sum(usage.completion_tokens for usage in usages) / len(rows)
    return _Place(rows[0].number, (cached, max(0.0, prompt - cached), completion))


def _draw_cost(plane: Plane, places: Sequence[_Place]) -> None:
    sums = [list(accumulate((0.0, *place.tokens))) for place in places]
    for layer, (_, ink) in enumerate(_LAYERS):
        floor = [each[layer] for each in sums]
        top = [each[layer + 1] for each in sums]
        if not any(one > other for one, other in zip(top, floor, strict=True)):
            continue
        apart = len(places) <= _BARS
        look = {"color": ink.stand_in, "fill": True, "linewidth": 0}
        baseline = _spaced(floor, apart=apart)
        edges = _edges(len(places), apart=apart)
        plane.stairs(_spaced(top, apart=apart), edges, baseline=baseline, **look)
    plane.set_xlim(-0.6, max(len(places), 8) - 0.4)
    plane.set_ylim(0, max(1.0, *(each[-1] for each in sums)) * 1.05)
    mark_numbers(plane, whole=True)
    every = math.ceil(len(places) / _TICKS)
    marked = range(0, len(places), every)
    mark_places(plane, {at: str(places[at].number) for at in marked})


def _edges(count: int, *, apart: bool) -> list[float]:
    """Where each bar begins and ends."""
    if not apart:
        return [place - 0.5 for place in range(count + 1)]
    return [place + side * _HALF for place in range(count) for side in (-1, 1)]


def _spaced(values: Sequence[float], *, apart: bool) -> list[float]:
    """With nothing between each two, where bars stand apart."""
    if not apart:
        return list(values)
    return [each for value in values for each in (value, math.nan)][:-1]


def _cost_in_words(rows: Sequence[CycleRow]) -> str:
    if not rows:
        return "There is no cycle yet."
    prompt = sum(row.usage.prompt_tokens for row in rows)
    cached = sum(row.usage.cached_tokens for row in rows)
    completion = sum(row.usage.completion_tokens for row in rows)
    return (
        f"Cycles {rows[0].number} to {rows[-1].number}: {prompt:,} prompt tokens, {cached:,} of "
        f"them from the cache, and {completion:,} completion tokens."
    )


# ---- All fields of a belief that are worth a drawing ----


def belief_svgs(belief: Belief, *, prefix: str) -> list[str]:
    """A drawing of each field, in order; empty for what has no point or never changed.

    Args:
        belief: The fields.
        prefix: What all ids begin with, unique in the page.
    """
    return [
        belief_svg(track, prefix=f"{prefix}{at}") if track.points and not track.steady else ""
        for at, track in enumerate(belief.tracks)
    ]
