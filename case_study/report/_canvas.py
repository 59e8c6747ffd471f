"""matplotlib, met here and nowhere else in the case study."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from io import StringIO
from threading import Lock
from typing import Any, cast

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from ._svg import GRID, QUIET

_DPI = 72
"""One point is one pixel then."""
_LOCK = Lock()
"""matplotlib's settings are the process's, so one plot is drawn at a time."""
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "case-study",
    "text.parse_math": False,
    "font.size": 12,
    "axes.axisbelow": True,
    "axes.edgecolor": QUIET,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 1,
    "xtick.color": QUIET,
    "xtick.labelcolor": QUIET,
    "xtick.major.size": 0,
    "ytick.color": QUIET,
    "ytick.major.pad": 8,
    "ytick.major.size": 0,
}


@contextmanager
def drawing() -> Generator[None]:
    """While it lasts, plots are made as a report needs them."""
    with _LOCK, cast("Any", mpl).rc_context(_SETTINGS):
        yield


class Canvas:
    """A plot of a size in pixels, with an area within it that has axes.

    Args:
        size: Width and height.
        area: Left, top, width and height of the area.
    """

    def __init__(self, size: tuple[float, float], area: tuple[float, float, float, float]) -> None:
        wide, high = size
        left, top, width, height = area
        self._figure = Figure(figsize=(wide / _DPI, high / _DPI), dpi=_DPI)
        self._figure.patch.set_visible(False)
        place = (left / wide, 1 - (top + height) / high, width / wide, height / high)
        self._axes = cast("Any", self._figure).add_axes(place)
        self._axes.patch.set_visible(False)

    def across(
        self,
        low: float,
        high: float,
        ticks: Sequence[float],
        name: Callable[[float], str],
        *,
        logarithmic: bool = False,
    ) -> None:
        """What is shown from left to right, and the marks at the bottom."""
        if logarithmic:
            self._axes.set_xscale("log")
            self._axes.xaxis.set_minor_locator(FixedLocator([]))
        self._axes.set_xlim(low, high)
        self._mark(self._axes.xaxis, ticks, name)

    def upward(
        self, low: float, high: float, ticks: Sequence[float], name: Callable[[float], str]
    ) -> None:
        """What is shown from bottom to top, and the marks at the left."""
        self._axes.set_ylim(low, high)
        self._mark(self._axes.yaxis, ticks, name)

    def rows(self, names: Sequence[str], colour: str) -> None:
        """Names at the left, from top to bottom, at 0, 1, 2 and so on."""
        self._axes.set_ylim(len(names) - 0.5, -0.5)
        self._mark(self._axes.yaxis, range(len(names)), lambda place: names[round(place)])
        self._axes.tick_params(axis="y", labelcolor=colour)
        self._axes.grid(visible=False, axis="y")

    def line(self, x: Sequence[float], y: Sequence[float], **look: Any) -> None:
        """A line or marks, in the area's units."""
        self._axes.plot(x, y, clip_on=False, **look)

    def write(self, text: str, at: tuple[float, float], **look: Any) -> None:
        """A few words at a place in pixels from the left and from the top."""
        wide, high = self._figure.get_size_inches() * _DPI
        cast("Any", self._figure).text(at[0] / wide, 1 - at[1] / high, text, **look)

    def join(self, place: tuple[float, float], at: tuple[float, float], colour: str) -> None:
        """A thin line from a place in the area's units to one in pixels."""
        wide, high = self._figure.get_size_inches() * _DPI
        self._axes.annotate(
            "",
            xy=place,
            xytext=(at[0] / wide, 1 - at[1] / high),
            xycoords="data",
            textcoords="figure fraction",
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.8, "alpha": 0.6},
            annotation_clip=False,
        )

    def pixels(self, place: tuple[float, float]) -> tuple[float, float]:
        """Where a place of the area lies, in pixels from the left and from the top."""
        x, y = self._axes.transData.transform(place)
        return float(x), float(self._figure.get_size_inches()[1] * _DPI - y)

    def svg(self) -> str:
        """The plot as matplotlib writes it; the same bytes for the same plot."""
        file = StringIO()
        canvas = cast("Any", FigureCanvasSVG(self._figure))
        canvas.print_svg(file, metadata={"Date": None, "Creator": None})
        return file.getvalue()

    def _mark(self, axis: Any, ticks: Sequence[float], name: Callable[[float], str]) -> None:
        def named(value: float, _: int | None) -> str:
            return name(value)

        axis.set_major_locator(FixedLocator(list(ticks)))
        axis.set_major_formatter(FuncFormatter(named))
