"""The charts of a report, as SVG: intervals, a scatter, steps, and curves by episode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import NamedTuple

from coag._util.svg import Point, SvgPicture

from .statistics import Interval
from .wording import number, shown

TEXT, QUIET, GRID = "currentColor", "var(--quiet)", "var(--line)"
GOOD, BAD, OPEN = "var(--good)", "var(--bad)", "var(--open)"
LINES = tuple(f"var(--c{place})" for place in range(6))
"""One colour for each line of a chart."""
_DASHES = ("", "6 2", "2 2", "8 2 2 2", "1 2", "4 4")
_LIGHT = {
    TEXT: "#1b1e22",
    QUIET: "#565c64",
    GRID: "#dfe1dd",
    GOOD: "#17693a",
    BAD: "#a8231b",
    OPEN: "#6b6154",
    **dict(
        zip(LINES, ["#27508f", "#b35c00", "#17693a", "#7b3fa0", "#a8231b", "#0f6e75"], strict=True)
    ),
}
"""The page's colours in light, for a file without a page around it."""
_FONT = "system-ui, 'Segoe UI', 'Liberation Sans', Arial, sans-serif"
_ROW, _HEAD, _FOOT, _LABEL_GAP = 19.0, 8.0, 34.0, 15.0
_NAME = 26
"""Characters of a name that have room."""
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture, the words below it, and what it shows, for readers who do not see it."""

    svg: str
    caption: str
    width: float
    height: float
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartText:
    """The words of a chart."""

    title: str
    caption: str
    description: str
    """What it shows, for readers who do not see it."""
    prefix: str
    """What its ids begin with."""
    unit: str = ""

    def picture(self, width: float, height: float) -> SvgPicture:
        """An empty picture."""
        return SvgPicture((width, height), self.title, self.description, self.prefix)


class IntervalRow(NamedTuple):
    """A value with its interval, as a row of a chart."""

    name: str
    value: float
    low: float
    high: float
    ink: str = LINES[0]
    filled: bool = True


class Spot(NamedTuple):
    """A share at a cost, with the intervals of both."""

    name: str
    x: float
    y: float
    ink: str
    across: Interval | None = None
    upward: Interval | None = None


class Series(NamedTuple):
    """A line of a chart."""

    name: str
    points: Sequence[Point]
    intervals: Sequence[tuple[float, float] | None] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axes:
    picture: SvgPicture
    area: tuple[float, float, float, float]
    """Left, top, width, height."""
    across: tuple[float, float]
    upward: tuple[float, float] = (0.0, 1.0)
    logarithmic: bool = False

    def at(self, x: float, y: float) -> Point:
        """A place in pixels."""
        left, top, width, height = self.area
        low, high = self.across
        share = (
            (log10(max(x, low)) - log10(low)) / (log10(high) - log10(low))
            if self.logarithmic
            else (x - low) / (high - low)
        )
        below, above = self.upward
        return left + share * width, top + height - (y - below) / (above - below) * height

    def draw(
        self,
        columns: Sequence[float],
        name_column: Callable[[float], str],
        rows: Sequence[float] = (),
        name_row: Callable[[float], str] = str,
        unit: str = "",
    ) -> None:
        left, top, width, height = self.area
        for x in columns:
            at = self.at(x, self.upward[0])[0]
            self.picture.line(((at, top), (at, top + height)), GRID)
            name = name_column(x)
            self.picture.text(
                (at, top + height + 14), name, QUIET, font_size=11, text_anchor="middle"
            )
        for y in rows:
            at = self.at(self.across[0], y)[1]
            self.picture.line(((left, at), (left + width, at)), GRID)
            self.picture.text(
                (left - 6, at + 4), name_row(y), QUIET, font_size=11, text_anchor="end"
            )
        place = left + width, self.picture.size[1] - 4
        self.picture.text(place, unit, QUIET, font_size=11, text_anchor="end")

    def label_ends(self, ends: Sequence[tuple[Point, str, str]]) -> None:
        """Writes names beside the area, each joined to its end by a thin line."""
        left, top, width, height = self.area
        order = sorted(ends, key=lambda end: self.at(*end[0])[1])
        tops = _spread([self.at(*end[0])[1] for end in order], top + height + 6)
        for (end, name, ink), at in zip(order, tops, strict=True):
            self.picture.line((self.at(*end), (left + width + 14, at)), ink, stroke_opacity=0.6)
            self.picture.text((left + width + 18, at + 4), shown(name, _NAME), TEXT)


def _spread(tops: Sequence[float], bottom: float) -> list[float]:
    """Heights of labels near where they belong, none upon another; for sorted heights."""
    spread: list[float] = []
    for top in tops:
        spread.append(max(top, spread[-1] + _LABEL_GAP) if spread else top)
    for place in range(len(spread) - 1, -1, -1):
        last = place == len(spread) - 1
        spread[place] = min(spread[place], bottom if last else spread[place + 1] - _LABEL_GAP)
    return spread


def interval_chart(
    rows: Sequence[IntervalRow],
    text: ChartText,
    *,
    across: tuple[float, float],
    marks: Sequence[float],
    name_mark: Callable[[float], str],
    names_width: float = 172,
    width: float = 380,
) -> Chart:
    """One row a value, with its interval as a line and a name at the left."""
    height = _HEAD + _ROW * len(rows) + _FOOT
    picture = text.picture(width, height)
    area = (names_width, _HEAD, width - names_width - 16, _ROW * len(rows))
    axes = _Axes(picture=picture, area=area, across=across, upward=(0, len(rows)))
    axes.draw(marks, name_mark, unit=text.unit)
    if across[0] < 0 < across[1]:
        picture.line((axes.at(0, 0), axes.at(0, len(rows))), QUIET)
    for place, row in enumerate(rows):
        y = len(rows) - place - 0.5
        middle = axes.at(0, y)[1]
        name = shown(row.name, _NAME + 14)
        picture.text((names_width - 8, middle + 4), name, TEXT, text_anchor="end")
        picture.line(
            (axes.at(row.low, y), axes.at(row.high, y)), row.ink, stroke_width=2, stroke_opacity=0.6
        )
        spot = axes.at(row.value, y)
        _spot(picture, spot, 3.5, row.ink if row.filled else "none", row.ink)
    return Chart(str(picture), text.caption, width, height, text.description)


def scatter_chart(spots: Sequence[Spot], text: ChartText, *, frontier: bool = False) -> Chart:
    """Shares against a quantity on a logarithmic scale, with the frontier if asked for."""
    width, height = 600.0, max(250.0, _LABEL_GAP * len(spots) + 60)
    picture = text.picture(width, height)
    ends = [spot.x for spot in spots]
    ends += [end for one in spots if one.across for end in (one.across.low, one.across.high)]
    least = min(spot.x for spot in spots)
    low, high = max(min(ends), least / 10) / 1.4, max(ends) * 1.4
    area = (44, 16, 340, height - 60)
    axes = _Axes(picture=picture, area=area, across=(low, high), logarithmic=True)
    axes.draw(_log_marks(low, high), number, SHARES, _as_percent, text.unit)
    axes.label_ends([((spot.x, spot.y), spot.name, QUIET) for spot in spots])
    if frontier:
        stairs, height_now = list[Point](), 0.0
        for spot in frontier_of(spots):
            stairs += [axes.at(spot.x, height_now), axes.at(spot.x, spot.y)]
            height_now = spot.y
        stairs.append(axes.at(high, height_now))
        picture.line(stairs, QUIET, stroke_width=1.4, stroke_dasharray="6 3")
    for spot in spots:
        if wide := spot.across:
            bar = axes.at(wide.low, spot.y), axes.at(wide.high, spot.y)
            picture.line(bar, spot.ink, stroke_width=1.6)
        if tall := spot.upward:
            bar = axes.at(spot.x, tall.low), axes.at(spot.x, tall.high)
            picture.line(bar, spot.ink, stroke_width=1.6)
        _spot(picture, axes.at(spot.x, spot.y), 3.5, spot.ink)
    return Chart(str(picture), text.caption, width, height, text.description)


def frontier_of(spots: Sequence[Spot]) -> list[Spot]:
    """Those that no other exceeds at the same or a lower cost, the cheapest first."""
    best: list[Spot] = []
    for spot in sorted(spots, key=lambda one: (one.x, -one.y)):
        if not best or spot.y > best[-1].y:
            best.append(spot)
    return best


def episode_chart(
    lines: Sequence[Series], text: ChartText, name_row: Callable[[float], str]
) -> Chart:
    """Differences by episode with their intervals; at most six lines of the same length."""
    width, height = 440.0, 210.0
    picture = text.picture(width, height)
    ends = [end for line in lines for pair in line.intervals if pair for end in pair]
    values = [*ends, *(y for line in lines for _, y in line.points)]
    low, high, marks = _even_span(values)
    last = lines[0].points[-1][0]
    axes = _Axes(
        picture=picture,
        area=(58, 26, 230, 140),
        across=(0.7, last + 0.3),
        upward=(low, high),
    )
    columns = [float(place) for place in range(1, int(last) + 1)]
    axes.draw(columns, lambda place: f"{place:.0f}", marks, name_row, "episode")
    picture.line((axes.at(0.7, 0), axes.at(last + 0.3, 0)), QUIET)
    for place, (line, ink, dash) in enumerate(zip(lines, LINES, _DASHES, strict=False)):
        aside = (place - (len(lines) - 1) / 2) * 0.05
        spots = [axes.at(x + aside, y) for x, y in line.points]
        picture.line(spots, ink, stroke_width=2, stroke_dasharray=dash)
        for (x, _), spot, interval in zip(line.points, spots, line.intervals, strict=True):
            _spot(picture, spot, 2, ink)
            if interval is not None:
                bars = [axes.at(x + aside, end) for end in interval]
                picture.line(bars, ink, stroke_width=1.4, stroke_opacity=0.55)
    picture.text((4, 14), shown(text.title, 60), TEXT)
    axes.label_ends(
        [
            ((last + 0.3, line.points[-1][1]), line.name, ink)
            for line, ink in zip(lines, LINES, strict=False)
        ]
    )
    return Chart(str(picture), text.caption, width, height, text.description)


def _spot(picture: SvgPicture, at: Point, radius: float, fill: str, stroke: str = "") -> None:
    """A disc, or a ring with `fill` of `none`."""
    x, y = at
    width = 2 if stroke else ""
    picture.add("circle", cx=x, cy=y, r=radius, fill=fill, stroke=stroke, stroke_width=width)


def sheet(charts: Sequence[Chart], columns: int) -> str:
    """Charts of one size side by side, as one SVG file."""
    wide, high = charts[0].width, charts[0].height
    rows = -(-len(charts) // columns)
    size = f"{wide * columns:g}", f"{high * rows:g}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" '
        f'viewBox="0 0 {size[0]} {size[1]}" font-family="{_FONT}">',
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    for place, chart in enumerate(charts):
        x, y = wide * (place % columns), high * (place // columns)
        parts.append(chart.svg.replace("<svg ", f'<svg x="{x:g}" y="{y:g}" ', 1))
    text = "\n".join([*parts, "</svg>\n"])
    for name, colour in _LIGHT.items():
        text = text.replace(f'"{name}"', f'"{colour}"')
    return text


def round_marks(reach: float) -> list[float]:
    """Round differences of shares around nothing."""
    step = next(one for one in (0.05, 0.1, 0.25, 0.5) if reach / one < 4 or one == 0.5)
    count = int(reach / step)
    return [step * place for place in range(-count, count + 1)]


def _even_span(values: Sequence[float]) -> tuple[float, float, list[float]]:
    """Bounds around some values and nothing, with about five round marks within them."""
    least, most = min([0.0, *values]), max([0.0, *values])
    reach = (most - least) or 1.0
    steps = (head * 10.0**power for power in range(-3, 9) for head in (1, 2, 5))
    step = next(one for one in steps if reach / one <= 5)
    marks = [step * place for place in range(floor(least / step), ceil(most / step) + 1)]
    room = 0.06 * reach
    within = [mark for mark in marks if least - room <= mark <= most + room]
    return least - room, most + room, within


def _log_marks(low: float, high: float) -> list[float]:
    marks = [head * 10.0**power for power in range(10) for head in (1, 2, 5)]
    within = [mark for mark in marks if low <= mark <= high]
    return within if len(within) <= 6 else [m for m in within if log10(m) == int(log10(m))]


def _as_percent(share: float) -> str:
    return f"{100 * share:.0f} %"
