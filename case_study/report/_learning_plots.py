"""Plots of what a memory that lasts brings, episode by episode."""

from __future__ import annotations

from collections.abc import Sequence

from ._canvas import Canvas, drawing
from ._learning_tables import TITLES, difference
from ._learning_values import Learning
from ._names import lettered
from ._plots import DASHES, Picture, even_span, spread_apart
from ._svg import LINES, QUIET, TEXT, taken
from ._wording import number, points, visible

DRAWN = ("success", "bumps", "actions", "tokens")
"""Measures of which curves are drawn."""
_SIZE, _AREA = (440.0, 210.0), (58.0, 26.0, 230.0, 140.0)
_NAME = 20
_MOST = 6
"""Lines of a plot."""
_APART = 0.05
"""Episodes by which the intervals of two lines stand apart."""


def learning_plots(rows: Sequence[Learning], *, prefix: str) -> tuple[Picture, ...]:
    """One plot a contender and measure, with a line for each scenario."""
    contenders = list(dict.fromkeys(row.contender for row in rows))
    groups = [
        (contender, measure, [r for r in rows if (r.contender, r.measure) == (contender, measure)])
        for contender in contenders
        for measure in DRAWN
    ]
    return tuple(
        _plot(contender, measure, group[:_MOST], prefix=f"{prefix}-{place}")
        for place, (contender, measure, group) in enumerate(groups)
        if group
    )


def _plot(contender: str, measure: str, rows: Sequence[Learning], *, prefix: str) -> Picture:
    last = rows[0].points[-1].episode
    right = last + 0.3
    low, high, marks = even_span([value for row in rows for value in _bounds(row)])
    with drawing():
        canvas = Canvas(_SIZE, _AREA)
        canvas.across(0.7, right, range(1, last + 1), lambda place: f"{place:.0f}")
        canvas.upward(low, high, marks, lambda v: _told(v, measure))
        canvas.line((0.7, right), (0, 0), color=QUIET, linewidth=1)
        ends = [_end(row) for row in rows]
        order = sorted(range(len(rows)), key=lambda at: -ends[at])
        wanted = [canvas.pixels((right, ends[at]))[1] for at in order]
        tops = spread_apart(wanted, 15.0, _AREA[1] + _AREA[3] + 6)
        for at, top in zip(order, tops, strict=True):
            _line(canvas, rows[at], at, (at - (len(rows) - 1) / 2) * _APART)
            left = _AREA[0] + _AREA[2]
            canvas.join((right, ends[at]), (left + 12, top), LINES[at])
            name = visible(lettered(rows[at].scenario), _NAME)
            canvas.write(name, (left + 16, top + 4), color=TEXT, fontsize=11)
        title = f"{contender}: {TITLES[measure]}"
        canvas.write(visible(title, 60), (4, 14), color=TEXT, fontsize=12)
        foot = (_AREA[0] + _AREA[2], _SIZE[1] - 6)
        canvas.write("episode", foot, ha="right", color=QUIET, fontsize=11)
        plot = canvas.svg()
    told = "; ".join(f"{row.scenario}: {_series(row)}" for row in rows)
    svg = taken(plot, prefix=prefix, title=title, told=told, size=_SIZE)
    caption = f"{title}, memory kept less memory emptied, with 95 % interval, by episode"
    return Picture(svg=svg, caption=caption)


def _line(canvas: Canvas, row: Learning, place: int, aside: float) -> None:
    told = [(p.episode + aside, p.result) for p in row.points if p.result.difference is not None]
    xs = [x for x, _ in told]
    ys = [result.difference or 0.0 for _, result in told]
    ink, dash = LINES[place], DASHES[place]
    canvas.line(xs, ys, color=ink, linewidth=2, linestyle=dash, marker="o", markersize=4)
    for x, result in told:
        if result.interval is not None and (result.higher or result.lower):
            ends = (result.interval.low, result.interval.high)
            canvas.line((x, x), ends, color=ink, linewidth=1.4, alpha=0.55)


def _bounds(row: Learning) -> list[float]:
    """What must have room in a plot; intervals of points in which nothing differs are not drawn."""
    found: list[float] = []
    for result in (point.result for point in row.points):
        found.append(result.difference or 0.0)
        if result.interval is not None and (result.higher or result.lower):
            found += [result.interval.low, result.interval.high]
    return found


def _end(row: Learning) -> float:
    return row.points[-1].result.difference or 0.0


def _told(value: float, measure: str) -> str:
    return points(value) if measure == "success" else number(value)


def _series(row: Learning) -> str:
    return ", ".join(difference(point.result, row.measure) for point in row.points)
