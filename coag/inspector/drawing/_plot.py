"""Plots: matplotlib, and nothing of it that reaches a page."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from io import StringIO
from threading import Lock
from typing import Any, Protocol, cast

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from ._ink import Ink

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
