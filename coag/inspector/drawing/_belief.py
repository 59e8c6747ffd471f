"""One field over the cycles: what was believed, and what was so."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from coag.inspector.views import BeliefPoint, BeliefTrack

from ._ink import Ink
from ._labels import label, width_of
from ._legend import LEGEND, Key, add_legend
from ._plot import (
    FONT,
    Plane,
    add_plane,
    mark_numbers,
    mark_rows,
    new_figure,
    plotting,
    svg_of,
)
from ._svg import drawing, take_plot, written

WIDTH = 640.0
_HIGH = 96.0
"""Height of a plot's inside."""
_BELOW = 26.0
_BETWEEN = 18.0
_RIGHT = 12.0
_LEFT = 44.0
_DOTS = 40
"""Points up to which each is marked."""
_CROSSES = 60
_KINDS = 8
"""Values of a discrete field that have a row of their own."""
_NAME = 22
_OTHER = "others"


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
    height = LEGEND + len(parts) * _HIGH + max(0, len(parts) - 1) * _BETWEEN + _BELOW
    root = drawing(
        width, height, prefix=prefix, title=f"{track.path} over the cycles", told=_told(track)
    )
    add_legend(root, _keys(track), left)
    if parts:
        plot, texts = _plotted(parts, left, width, height)
        take_plot(root, plot, prefix=prefix, texts=texts)
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
            _draw(plane, part)
            if part.rows:
                stand_ins = [f"row {place}" for place in range(len(part.rows))]
                texts |= dict(zip(stand_ins, part.rows, strict=True))
                mark_rows(plane, stand_ins)
                plane.set_ylim(-0.5, len(part.rows) - 0.5)
            else:
                whole = all(map(float.is_integer, filter(math.isfinite, part.believed)))
                mark_numbers(plane, whole=whole)
            if number < len(parts) - 1:
                plane.tick_params(labelbottom=False)
        return svg_of(figure), texts


def _draw(plane: Plane, part: _Lines) -> None:
    shape = "steps-post" if part.steps else "default"
    dots = "o" if len(part.cycles) <= _DOTS else ""
    plane.plot(
        part.cycles,
        part.true,
        color=Ink.TRUTH.stand_in,
        linewidth=4.5,
        linestyle=(0, (1.6, 0.7)),
        alpha=0.75,
        drawstyle=shape,
        dash_capstyle="butt",
    )
    plane.plot(
        part.cycles,
        part.believed,
        color=Ink.BELIEF.stand_in,
        linewidth=1.8,
        marker=dots,
        markersize=4.5,
        drawstyle=shape,
    )
    wrong = [
        (cycle, held)
        for cycle, held, so in zip(part.cycles, part.believed, part.true, strict=True)
        if math.isfinite(held) and math.isfinite(so) and not math.isclose(held, so, abs_tol=1e-9)
    ]
    for cycle in (cycle for cycle, _ in wrong):
        plane.axvspan(cycle - 0.5, cycle + 0.5, color=Ink.WRONG.stand_in, alpha=0.12, linewidth=0)
    if wrong:
        plane.plot(
            [cycle for cycle, _ in wrong[:_CROSSES]],
            [held for _, held in wrong[:_CROSSES]],
            color=Ink.WRONG.stand_in,
            marker="x",
            markersize=8,
            markeredgewidth=2,
            linestyle="none",
        )
    first, last = part.cycles[0], part.cycles[-1]
    plane.set_xlim(first - 0.5, max(last, first + 1) + 0.5)
    plane.margins(y=0.15)


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
    return float(value) if known else math.nan


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


def _told(track: BeliefTrack) -> str:
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
