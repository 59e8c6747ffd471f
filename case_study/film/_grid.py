"""Drawing a grid with what stands on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vacuum_world.world import Cell, cells_of, inside, neighbour

from ._boards import Board
from ._canvas import Canvas, Point
from ._scenes import Mark, Option

LABELS = 18
"""Room for the numbers of columns and rows."""
_LABELLED = 12
"""Cells along a side, up to which every one is numbered."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A board on a canvas."""

    canvas: Canvas
    board: Board
    corner: Point
    """Left and top of the square it is drawn in."""
    side: float
    """Length of that square's sides."""

    @property
    def cell(self) -> float:
        """Length of a cell's sides."""
        return (self.side - LABELS) / max(self.board.grid)

    def _place(self, cell: Cell) -> tuple[float, float, float, float]:
        left = self.corner[0] + LABELS + cell[0] * self.cell
        top = self.corner[1] + LABELS + cell[1] * self.cell
        return left, top, left + self.cell, top + self.cell

    def middle(self, cell: Cell) -> Point:
        """The middle of a cell."""
        left, top, right, bottom = self._place(cell)
        return (left + right) / 2, (top + bottom) / 2

    def draw(self, path: Sequence[Cell], options: Sequence[Option], wrong: frozenset[Cell]) -> None:
        """Draws all of it.

        Args:
            path: Where the robot was, oldest first.
            options: Candidates; of moves the way is shown.
            wrong: Cells that are marked, as they are otherwise than believed.
        """
        self._numbers()
        self.draw_cells(wrong, path)
        for option in sorted(options, key=lambda one: one.mark is Mark.CHOSEN):
            self._wish(option)
        self._robot()

    def draw_cells(self, wrong: frozenset[Cell], path: Sequence[Cell] = ()) -> None:
        """Draws the cells and what stands in them, but for the run's own robot."""
        for cell in cells_of(self.board.grid):
            self._floor(cell)
        self._path(path)
        for cell in sorted(self.board.obstacles):
            self._obstacle(cell)
        for cell in sorted(self.board.forbidden):
            self._forbidden(cell)
        for cell in self.board.others:
            self.canvas.disc(
                self.middle(cell), self.cell * 0.3, edge=self.canvas.theme.robot, width=2
            )
        for cell in sorted(wrong):
            self._wrong(cell)

    def _numbers(self) -> None:
        """Numbers beside the cells: all of a small grid, of a large one every tenth."""
        every = 1 if max(self.board.grid) <= _LABELLED else 10
        colour = self.canvas.theme.quiet
        for x in range(0, self.board.grid[0], every):
            at = self.middle((x, 0))[0], self.corner[1] + LABELS / 2 - 1
            self.canvas.text(at, str(x), 12, colour, "mm")
        for y in range(0, self.board.grid[1], every):
            at = self.corner[0] + LABELS / 2 - 1, self.middle((0, y))[1]
            self.canvas.text(at, str(y), 12, colour, "mm")

    def _floor(self, cell: Cell) -> None:
        theme, board = self.canvas.theme, self.board
        unseen = board.known is not None and cell not in board.known
        fill = theme.unseen if unseen else theme.panel
        if cell in board.dirty:
            fill = theme.tint
        if cell == board.charger:
            fill = theme.charger
        place = self._place(cell)
        self.canvas.box(place, fill=fill, edge=theme.line, width=1)
        if unseen and cell != board.charger:
            self.canvas.disc(self.middle(cell), max(1.0, self.cell * 0.03), fill=theme.line)
        if cell in board.dirty:
            self._dirt(cell)
        if cell == board.charger:
            self._bolt(cell)

    def _dirt(self, cell: Cell) -> None:
        """Specks, at the same places in every cell."""
        left, top, *_ = self._place(cell)
        specks = ((0.2, 0.24, 5), (0.5, 0.14, 3), (0.8, 0.3, 4), (0.3, 0.55, 3), (0.68, 0.62, 5))
        for x, y, size in (*specks, (0.18, 0.82, 4), (0.48, 0.84, 3), (0.86, 0.86, 3)):
            at = left + x * self.cell, top + y * self.cell
            self.canvas.disc(at, self.cell * size / 100, fill=self.canvas.theme.dirt)

    def _bolt(self, cell: Cell) -> None:
        left, top, *_ = self._place(cell)
        outline = ((78, 6), (62, 23), (72, 23), (66, 38), (88, 17), (77, 17))
        self.canvas.shape(
            [(left + x / 100 * self.cell, top + y / 100 * self.cell) for x, y in outline],
            self.canvas.theme.good,
        )

    def _obstacle(self, cell: Cell) -> None:
        """A block; one that is hidden has stripes and a broken edge."""
        theme, gap = self.canvas.theme, self.cell * 0.12
        left, top, right, bottom = self._place(cell)
        left, top, right, bottom = left + gap, top + gap, right - gap, bottom - gap
        if cell not in self.board.hidden:
            self.canvas.box(
                (left, top, right, bottom), fill=theme.obstacle, radius=self.cell * 0.08
            )
            return
        size = right - left
        for share in (0.25, 0.5, 0.75, 1.0):
            reach = size * share
            self.canvas.line(((left, top + reach), (left + reach, top)), theme.obstacle, 1.5)
        for share in (0.25, 0.5, 0.75):
            reach = size * share
            start, end = (left + reach, bottom), (right, top + reach)
            self.canvas.line((start, end), theme.obstacle, 1.5)
        corners = ((left, top), (right, top), (right, bottom), (left, bottom))
        for start, end in zip(corners, (*corners[1:], corners[0]), strict=True):
            self.canvas.dashes(start, end, theme.obstacle, 2)

    def _forbidden(self, cell: Cell) -> None:
        left, _, _, bottom = self._place(cell)
        reach = self.cell * 0.12
        x, y = left + reach * 1.5, bottom - reach * 1.5
        alarm = self.canvas.theme.alarm
        self.canvas.disc((x, y), reach, fill=self.canvas.theme.panel, edge=alarm, width=2)
        slant = reach * 0.6
        self.canvas.line(((x - slant, y + slant), (x + slant, y - slant)), alarm, 2)

    def _path(self, path: Sequence[Cell]) -> None:
        points = [self.middle(cell) for cell in path if inside(cell, self.board.grid)]
        if len(points) > 1:
            self.canvas.line(points, self.canvas.theme.path, max(2.0, self.cell * 0.06))
        for point in points[:-1]:
            self.canvas.disc(point, max(2.0, self.cell * 0.06), fill=self.canvas.theme.path)

    def _wish(self, option: Option) -> None:
        """An arrow the way a candidate goes; of a rejected one with a cross at its end."""
        here, theme = self.board.robot, self.canvas.theme
        if option.way is None or here is None:
            return
        x, y = self.middle(here)
        dx, dy = neighbour((0, 0), option.way)
        start = x + dx * self.cell * 0.32, y + dy * self.cell * 0.32
        tip = x + dx * self.cell * 0.86, y + dy * self.cell * 0.86
        if option.mark is Mark.REJECTED:
            self.canvas.dashes(start, tip, theme.alarm, 2.5)
            self._cross(tip, self.cell * 0.09)
            return
        chosen = option.mark is Mark.CHOSEN
        colour, width = (theme.robot, 4.0) if chosen else (theme.quiet, 2.0)
        self.canvas.line((start, tip), colour, width)
        back = self.cell * (0.15 if chosen else 0.11)
        wing = back * 0.8
        base = tip[0] - dx * back, tip[1] - dy * back
        ahead = tip[0] + dx * back * 0.6, tip[1] + dy * back * 0.6
        wings = [(base[0] + dy * side, base[1] + dx * side) for side in (wing, -wing)]
        self.canvas.shape((ahead, *wings), colour)

    def _cross(self, at: Point, reach: float) -> None:
        x, y = at
        for slope in (1, -1):
            start, end = (x - reach, y - slope * reach), (x + reach, y + slope * reach)
            self.canvas.line((start, end), self.canvas.theme.alarm, 2.5)

    def _robot(self) -> None:
        here, theme = self.board.robot, self.canvas.theme
        if here is None:
            return
        at = self.middle(here)
        colour = theme.alarm if self.board.stranded else theme.robot
        self.canvas.disc(at, self.cell * 0.29, fill=colour)
        if self.board.stranded:
            reach = self.cell * 0.13
            for slope in (1, -1):
                start = at[0] - reach, at[1] - slope * reach
                end = at[0] + reach, at[1] + slope * reach
                self.canvas.line((start, end), theme.panel, 3)
            return
        self.canvas.disc(at, self.cell * 0.2, edge=theme.panel, width=max(1.0, self.cell * 0.035))
        self.canvas.disc(at, self.cell * 0.07, fill=theme.panel)

    def _wrong(self, cell: Cell) -> None:
        _, top, right, _ = self._place(cell)
        size = self.cell * 0.26
        corner = ((right - size, top), (right, top), (right, top + size))
        self.canvas.shape(corner, self.canvas.theme.alarm)


def mistaken(belief: Board | None, truth: Board | None) -> frozenset[Cell]:
    """Seen cells that are otherwise than believed: in dirt, or in what stands there."""
    if belief is None or truth is None or belief.grid != truth.grid:
        return frozenset()
    dirt = {cell for cell in belief.known or () if (cell in belief.dirty) != (cell in truth.dirty)}
    felt = {cell for cell in belief.known or () if cell in truth.obstacles - belief.obstacles}
    taken = {*truth.obstacles, *truth.others}
    return frozenset(dirt | felt | (set(belief.obstacles) - taken))
