"""Tokens by cycle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from coag.inspector.views import CycleRow

from ._ink import Ink
from ._legend import LEGEND, Key, add_legend
from ._plot import Plane, add_plane, mark_numbers, mark_places, new_figure, plotting, svg_of
from ._svg import add_note, drawing, take_plot, written

WIDTH = 480.0
_HEIGHT = 170.0
_LEFT = 44.0
_RIGHT = 12.0
_BELOW = 26.0
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
    root = drawing(width, _HEIGHT, prefix=prefix, title=title, told=_told(rows))
    keys = [Key(name=name, ink=ink, sort="area") for name, ink in _LAYERS]
    add_legend(root, keys, _LEFT - 8)
    if places:
        with plotting():
            figure = new_figure(width, _HEIGHT)
            high = _HEIGHT - LEGEND - _BELOW
            plane = add_plane(figure, (_LEFT, LEGEND + 6, width - _LEFT - _RIGHT, high - 6))
            _draw(plane, places)
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


def _draw(plane: Plane, places: Sequence[_Place]) -> None:
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


def _told(rows: Sequence[CycleRow]) -> str:
    if not rows:
        return "There is no cycle yet."
    prompt = sum(row.usage.prompt_tokens for row in rows)
    cached = sum(row.usage.cached_tokens for row in rows)
    completion = sum(row.usage.completion_tokens for row in rows)
    return (
        f"Cycles {rows[0].number} to {rows[-1].number}: {prompt:,} prompt tokens, {cached:,} of "
        f"them from the cache, and {completion:,} completion tokens."
    )
