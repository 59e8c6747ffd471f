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
    mark_only,
    mark_rows,
    new_figure,
    plotting,
    svg_of,
)
from ._svg import add_note, drawing, take_plot, written

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
        width, height, prefix=prefix, title=f"{track.path} over the cycles", told=_told(track)
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
            _draw(plane, part)
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


def _draw(plane: Plane, part: _Lines) -> None:
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
