"""The plots of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import NamedTuple

from ._canvas import Canvas, drawing
from ._svg import BAD, GOOD, LINES, OPEN, QUIET, TEXT, taken
from ._tables import Tone
from ._values import Contribution, CostRow, Rate, SuccessRow
from ._wording import NONE, counted, listed, number, percent, points, span, visible

_ROW = 19.0
"""Height of a row, in pixels."""
_FOOT = 34.0
_HEAD = 8.0
_NAMES = 172.0
"""Room for the names of contenders."""
_NAME = 26
"""Characters of a name that have room."""
_INK: dict[Tone, str] = {"good": GOOD, "bad": BAD, "open": OPEN, "": TEXT}
DASHES = ("-", (0, (6, 2)), (0, (2, 2)), (0, (8, 2, 2, 2)), (0, (1, 1)), (0, (4, 4)))


class Curve(NamedTuple):
    """One line of a plot of steps."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A plot, and the words below it."""

    svg: str
    caption: str


def success_plot(
    rows: Sequence[SuccessRow], scenario: str | None, *, title: str, prefix: str
) -> Picture:
    """How often each contender succeeded, with intervals."""
    told = [(row.contender, _rate(row, scenario)) for row in rows]
    played = [(name, rate) for name, rate in told if rate is not None and rate.n]
    size = (380.0, _HEAD + _ROW * len(played) + _FOOT)
    with drawing():
        canvas = Canvas(size, (_NAMES, _HEAD, size[0] - _NAMES - 16, _ROW * len(played)))
        canvas.across(-0.02, 1, (0, 0.25, 0.5, 0.75, 1), lambda share: f"{100 * share:.0f}")
        canvas.rows([visible(name, _NAME) for name, _ in played], TEXT)
        for place, (name, rate) in enumerate(played):
            ink = LINES[0] if name.startswith("coag") else LINES[1]
            if rate.interval is not None and rate.share is not None:
                ends = (rate.interval.low, rate.interval.high)
                canvas.line(ends, (place, place), color=ink, linewidth=2, alpha=0.55)
                canvas.line((rate.share,), (place,), color=ink, marker="o", markersize=6.5)
        canvas.write(
            "succeeded, percent, with 95 % interval",
            (size[0] - 16, size[1] - 3),
            ha="right",
            color=QUIET,
            fontsize=11,
        )
        plot = canvas.svg()
    words = [f"{name} {percent(r.share)} ({span(r.interval)} %, n={r.n})" for name, r in played]
    svg = taken(plot, prefix=prefix, title=f"{title}: success", told="; ".join(words), size=size)
    return Picture(svg=svg, caption=f"{title}: {_of(played)}")


def _of(played: Sequence[tuple[str, Rate]]) -> str:
    least, most = min(r.n for _, r in played), max(r.n for _, r in played)
    if least == most:
        return f"{counted(most, 'trial')} each"
    return f"{least:,} to {most:,} trials each"


def _rate(row: SuccessRow, scenario: str | None) -> Rate | None:
    return row.overall if scenario is None else row.by_scenario.get(scenario)


def contribution_plot(parts: Sequence[Contribution], *, prefix: str) -> Picture:
    """What each phase and safeguard adds, around a line at nothing."""
    left, size = 282.0, (640.0, _HEAD + _ROW * len(parts) + _FOOT)
    reach = max([0.1, *(_reach(part) for part in parts)]) * 1.05
    with drawing():
        canvas = Canvas(size, (left, _HEAD, size[0] - left - 20, _ROW * len(parts)))
        canvas.across(-reach, reach, _round_marks(reach), points)
        canvas.rows([part.part for part in parts], TEXT)
        canvas.line((0, 0), (-0.5, len(parts) - 0.5), color=QUIET, linewidth=1)
        for place, part in enumerate(parts):
            result = part.compared.result
            ink = _INK[_tone_of(part)]
            if result.interval is not None and result.difference is not None:
                ends = (result.interval.low, result.interval.high)
                canvas.line(ends, (place, place), color=ink, linewidth=2, alpha=0.6)
                mark = "o" if result.claims else "D"
                canvas.line(
                    (result.difference,),
                    (place,),
                    color=ink,
                    marker=mark,
                    markersize=6.5,
                    markerfacecolor=ink if result.claims else "none",
                )
        canvas.write(
            "success with it less success without it, points, with 95 % interval",
            (size[0] - 20, size[1] - 3),
            ha="right",
            color=QUIET,
            fontsize=11,
        )
        plot = canvas.svg()
    told = "; ".join(f"{part.part}: {part.finding}" for part in parts)
    svg = taken(plot, prefix=prefix, title="What each part adds", told=told, size=size)
    caption = "What each part adds. Filled: shown beyond chance; hollow: open."
    return Picture(svg=svg, caption=caption)


def _reach(part: Contribution) -> float:
    interval = part.compared.result.interval
    return max(abs(interval.low), abs(interval.high)) if interval else 0.0


def _tone_of(part: Contribution) -> Tone:
    result = part.compared.result
    if not result.claims or result.difference is None:
        return "open"
    return "good" if result.difference > 0 else "bad"


def even_span(values: Sequence[float]) -> tuple[float, float, tuple[float, ...]]:
    """Bounds around some values and nothing, with about five round marks within them."""
    least, most = min([0.0, *values]), max([0.0, *values])
    reach = (most - least) or 1.0
    steps = (head * 10.0**power for power in range(-3, 9) for head in (1, 2, 5))
    step = next(one for one in steps if reach / one <= 5)
    marks = tuple(step * place for place in range(floor(least / step), ceil(most / step) + 1))
    room = 0.06 * reach
    shown = tuple(mark for mark in marks if least - room <= mark <= most + room)
    return least - room, most + room, shown


def _round_marks(reach: float) -> tuple[float, ...]:
    step = next(one for one in (0.05, 0.1, 0.25, 0.5) if reach / one < 4 or one == 0.5)
    count = int(reach / step)
    return tuple(step * place for place in range(-count, count + 1))


def cost_plot(
    costs: Sequence[CostRow], rates: Sequence[SuccessRow], *, prefix: str
) -> Picture | None:
    """Success against tokens a trial; None where nobody used a token."""
    shares = {row.contender: row.overall for row in rates}
    told = [
        (row.contender, row.tokens, shares[row.contender].share)
        for row in costs
        if row.tokens and shares[row.contender].share is not None
    ]
    spots = sorted(
        ((n, t, s) for n, t, s in told if s is not None),
        key=lambda one: (-round(20 * one[2]), -one[1]),
    )
    if not spots:
        return None
    size = (600.0, max(250.0, 15.0 * len(spots) + 60))
    area = (44.0, 16.0, 340.0, size[1] - 60)
    with drawing():
        canvas = Canvas(size, area)
        low, high = min(t for _, t, _ in spots) / 1.4, max(t for _, t, _ in spots) * 1.4
        canvas.across(low, high, _log_marks(low, high), number, logarithmic=True)
        canvas.upward(0, 1, (0, 0.25, 0.5, 0.75, 1), lambda share: f"{100 * share:.0f} %")
        tops = spread_apart([canvas.pixels((t, s))[1] for _, t, s in spots], 15.0, size[1] - 40)
        for (name, tokens, share), top in zip(spots, tops, strict=True):
            ink = LINES[0] if name.startswith("coag") else LINES[1]
            canvas.join((tokens, share), (402, top), QUIET)
            canvas.line((tokens,), (share,), color=ink, marker="o", markersize=7)
            canvas.write(visible(name, _NAME), (406, top + 4), color=TEXT, fontsize=12)
        canvas.write(
            "tokens a trial, logarithmic", (384, size[1] - 4), ha="right", color=QUIET, fontsize=11
        )
        plot = canvas.svg()
    words = "; ".join(f"{n} {percent(s)} at {number(t)} tokens" for n, t, s in spots)
    title = "Success against tokens a trial"
    svg = taken(plot, prefix=prefix, title=title, told=words, size=size)
    return Picture(svg=svg, caption=f"{title}. Up and to the left is better.")


def _log_marks(low: float, high: float) -> tuple[float, ...]:
    marks = [head * 10.0**power for power in range(0, 10) for head in (1, 2, 5)]
    within = [mark for mark in marks if low <= mark <= high]
    return tuple(within if len(within) <= 6 else [m for m in within if log10(m) == int(log10(m))])


def spread_apart(tops: Sequence[float], gap: float, bottom: float) -> list[float]:
    """Heights of labels near where they belong, none upon another; for sorted heights."""
    spread: list[float] = []
    for top in tops:
        spread.append(max(top, spread[-1] + gap) if spread else top)
    for place in range(len(spread) - 1, -1, -1):
        limit = bottom if place == len(spread) - 1 else spread[place + 1] - gap
        spread[place] = min(spread[place], limit)
    return spread


def step_plot(
    curves: Sequence[Curve], *, title: str, unit: str, prefix: str, logarithmic: bool = False
) -> Picture | None:
    """The share of trials that got somewhere by so many actions or tokens.

    Args:
        curves: At most six.
        title: What the share is of.
        unit: What is counted from left to right.
        prefix: What ids begin with.
        logarithmic: Whether equal ratios are equal distances.
    """
    drawn = [curve for curve in curves if curve.points]
    if not drawn:
        return None
    size, area = (600.0, 270.0), (44.0, 16.0, 370.0, 210.0)
    most = max(x for curve in drawn for x, _ in curve.points)
    least = min(x for curve in drawn for x, _ in curve.points)
    with drawing():
        canvas = Canvas(size, area)
        if logarithmic:
            low, high = max(1.0, least / 1.3), max(2.0, most * 1.1)
            canvas.across(low, high, _log_marks(low, high), number, logarithmic=True)
        else:
            low, high = 0.0, max(1.0, most) * 1.04
            canvas.across(low, high, _even_marks(high), number)
        canvas.upward(0, 1, (0, 0.25, 0.5, 0.75, 1), lambda share: f"{100 * share:.0f} %")
        order = sorted(range(len(drawn)), key=lambda at: -drawn[at].points[-1][1])
        ends = [canvas.pixels((high, drawn[at].points[-1][1])) for at in order]
        tops = spread_apart([y for _, y in ends], 15.0, area[1] + area[3] + 6)
        for at, top in zip(order, tops, strict=True):
            _steps(canvas, drawn[at], at, (low, high))
            last = drawn[at].points[-1][1]
            canvas.join((high, last), (430, top), LINES[at])
            canvas.write(visible(drawn[at].name, _NAME), (434, top + 4), color=TEXT, fontsize=12)
        canvas.write(unit, (414, size[1] - 6), ha="right", color=QUIET, fontsize=11)
        plot = canvas.svg()
    words = "; ".join(
        f"{curve.name} {percent(curve.points[-1][1])} by {number(curve.points[-1][0])}"
        for curve in drawn
    )
    svg = taken(plot, prefix=prefix, title=title, told=f"{unit}: {words}", size=size)
    names = listed([visible(curve.name, 40) for curve in drawn]) or NONE
    return Picture(svg=svg, caption=f"{title}. Shown: {names}; all are in the table.")


def _steps(canvas: Canvas, curve: Curve, place: int, ends: tuple[float, float]) -> None:
    xs, ys = [ends[0]], [0.0]
    for x, share in curve.points:
        xs += [max(x, ends[0]), max(x, ends[0])]
        ys += [ys[-1], share]
    xs.append(ends[1])
    ys.append(ys[-1])
    canvas.line(xs, ys, color=LINES[place], linewidth=2, linestyle=DASHES[place])


def _even_marks(high: float) -> tuple[float, ...]:
    step = next(one for one in (1, 2, 5, 10, 20, 50, 100, 1000) if high / one <= 8 or one == 1000)
    return tuple(float(mark) for mark in range(0, int(high) + 1, step))
