"""Colours: which the page gives by custom properties, so that it can be dark or light."""

from __future__ import annotations

from enum import Enum


class Ink(Enum):
    """What something is drawn with.

    Each is given in the drawing as a CSS custom property with a colour to fall back to that can
    be seen on light and on dark ground; `TEXT` is the colour of the text around the drawing.
    """

    TEXT = ("#000001", "currentColor")
    QUIET = ("#000002", "var(--plot-quiet, #7c8594)")
    """Axes, ticks and what explains."""
    GRID = ("#000003", "var(--plot-grid, #9aa3b2)")
    """Lines behind everything; drawn faint."""
    BELIEF = ("#000004", "var(--plot-belief, #3b82f6)")
    TRUTH = ("#000005", "var(--plot-truth, #d97706)")
    WRONG = ("#000006", "var(--plot-wrong, #dc2626)")
    PROMPT = ("#000007", "var(--plot-prompt, #6366f1)")
    CACHED = ("#000008", "var(--plot-cached, #a3adc2)")
    COMPLETION = ("#000009", "var(--plot-completion, #0d9488)")
    GOOD = ("#00000a", "var(--plot-good, #16a34a)")
    BAD = ("#00000b", "var(--plot-bad, #dc2626)")
    PAPER = ("#00000c", "var(--plot-paper, Canvas)")
    """The ground of the page."""

    @property
    def stand_in(self) -> str:
        """The colour that a plotting library is given in its place."""
        return self.value[0]

    @property
    def paint(self) -> str:
        """The colour as a presentation attribute tells it."""
        return self.value[1]


PROPERTIES: tuple[str, ...] = tuple(
    ink.paint.removeprefix("var(").split(",")[0] for ink in Ink if ink is not Ink.TEXT
)
"""The custom properties that a page may set."""

_PAINTS = {ink.stand_in: ink.paint for ink in Ink}


def paint_of(colour: str) -> str:
    """A colour that a plotting library wrote, as a presentation attribute tells it."""
    return _PAINTS.get(colour.lower(), colour)
