"""What the signs on a grid stand for, in one row."""

from __future__ import annotations

from dataclasses import replace

from ._boards import Board
from ._canvas import Canvas
from ._grid import LABELS, Grid

_SIDE = 18.0
_NOTHING: frozenset[tuple[int, int]] = frozenset()


def draw_key(canvas: Canvas, left: float, top: float) -> None:
    """Draws the row of signs, each with its word."""
    here, away = frozenset([(0, 0)]), (-1, -1)
    empty = Board(
        grid=(1, 1),
        charger=away,
        robot=None,
        battery=0,
        stranded=False,
        dirty=_NOTHING,
        obstacles=_NOTHING,
    )
    signs = (
        ("charger", replace(empty, charger=(0, 0)), False),
        ("dirt", replace(empty, dirty=here), False),
        ("obstacle", replace(empty, obstacles=here), False),
        ("hidden obstacle", replace(empty, obstacles=here, hidden=here), False),
        ("no cleaning", replace(empty, forbidden=here), False),
        ("not seen yet", replace(empty, known=_NOTHING), False),
        ("otherwise than believed", empty, True),
    )
    for word, board, wrong in signs:
        corner = left - LABELS, top - LABELS
        Grid(canvas, board, corner, _SIDE + LABELS).draw_cells(here if wrong else _NOTHING)
        canvas.text((left + _SIDE + 6, top + _SIDE / 2), word, 13, canvas.theme.quiet, "lm")
        left += _SIDE + 6 + canvas.width_of(word, 13) + 20
