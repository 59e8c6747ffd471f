"""Drawing one picture of a run: the world as it is, the world as believed, and a caption."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Literal

from PIL import Image, ImageDraw, ImageFont
from pydantic import BaseModel, ValidationError

from case_study.robot import VacuumState
from vacuum_world.world import DIRECTIONS, Cell, Direction, Reading, cells_of, inside, neighbour

ThemeName = Literal["light", "dark"]
SizeName = Literal["small", "medium", "large"]
Mark = Literal["proposed", "allowed", "rejected", "chosen"]
"""What is known of a candidate so far."""
Colour = tuple[int, int, int]
Point = tuple[float, float]

SCALES: dict[SizeName, float] = {"small": 0.75, "medium": 1.0, "large": 1.5}
"""Pixels per layout unit."""
WIDTH, HEIGHT = 860, 762
"""Size of a picture in layout units."""
_SUPERSAMPLING = 3
_MOST_CELLS = 50
"""Cells along a side of a grid, as in the world's own format."""
_EDGE, _BOARD_TOP, _BOARD, _LABELS = 24, 74, 370, 18
_RIGHT = WIDTH - _EDGE - _BOARD
_BATTERY_TOP = _BOARD_TOP + _BOARD + 12
_CAPTION_TOP, _CAPTION_BOTTOM = _BATTERY_TOP + 38, HEIGHT - 42
_SHOWN_OPTIONS = 4
_LOW_BATTERY = 15
"""Charge for three moves."""


# ---- what a picture shows ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One grid, as it is or as it is believed."""

    grid: Cell
    """Width and height."""
    charger: Cell = (-1, -1)
    robot: Cell | None = None
    """The cell of the run's robot; None where it is not known."""
    battery: int = 0
    stranded: bool = False
    dirty: frozenset[Cell] = frozenset()
    known: frozenset[Cell] | None = None
    """Cells that were ever seen; None where all cells are known."""
    obstacles: frozenset[Cell] = frozenset()
    hidden: frozenset[Cell] = frozenset()
    """Obstacles that no sensor feels."""
    forbidden: frozenset[Cell] = frozenset()
    others: tuple[Cell, ...] = ()

    def after(self, reading: Reading) -> Board:
        """The board with a later reading of the robot's sensors applied."""
        cells = {reading.position: reading.dirty.here}
        for way in DIRECTIONS:
            cells[neighbour(reading.position, way)] = getattr(reading.dirty, way)
        dirty = {cell for cell in self.dirty if cells.get(cell) is None}
        dirty |= {cell for cell, is_dirty in cells.items() if is_dirty}
        return replace(
            self,
            robot=reading.position,
            battery=reading.battery,
            stranded=reading.stranded,
            dirty=_within(dirty, self.grid),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One candidate, as a line of the caption."""

    text: str
    mark: Mark
    score: float | None = None
    """The model's score, 1 is best; None if it gave none."""
    rejected_by: str = ""
    """Name of the check or constraint that rejected it."""
    reason: str = ""
    way: Direction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The content of one picture."""

    cycle: int
    """The cycle; of a plain run the turn."""
    phase: str
    """The phase that is shown; empty for a picture outside of the phases."""
    caption: str
    options: tuple[Option, ...] = ()
    truth: Board | None
    """The grid as it is; None where the trace does not say."""
    belief: Board | None
    """The grid as the agent believes it; None where the trace does not say."""
    path: tuple[Cell, ...] = ()
    by_return: bool = False
    """Whether place, charge and near dirt of `truth` come from the last tool return."""
    weight: float = 1.0
    """How long it is shown, relative to other pictures of its cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Texts that are the same in every picture of a film."""

    title: str
    subtitle: str
    phases: tuple[str, ...]
    belief_title: str
    no_truth: str
    """Why there is no grid on the left, where there is none."""


class _RobotState(BaseModel):
    name: str = ""
    position: Cell
    battery: int = 0
    stranded: bool = False


class _ObstacleState(BaseModel):
    cell: Cell
    visible: bool = True


class _EnvironmentState(BaseModel):
    """The part of the world's state that a picture shows."""

    grid: Cell
    charger: Cell
    dirty: tuple[Cell, ...]
    obstacles: tuple[_ObstacleState, ...]
    robots: tuple[_RobotState, ...]
    forbidden: tuple[Cell, ...] = ()


def world_board(environment: Any, name: str) -> Board | None:
    """The world as a snapshot holds it; None if that is no state of the vacuum world."""
    try:
        world = _EnvironmentState.model_validate(environment)
    except (ValidationError, RecursionError):
        return None
    grid = world.grid
    if not _possible(grid):
        return None
    own = next((one for one in world.robots if one.name == name), next(iter(world.robots), None))
    rest = [one.position for one in world.robots if one is not own]
    return Board(
        grid=grid,
        charger=world.charger,
        robot=own.position if own and inside(own.position, grid) else None,
        battery=max(0, min(100, own.battery)) if own else 0,
        stranded=bool(own and own.stranded),
        dirty=_within(world.dirty, grid),
        obstacles=_within((one.cell for one in world.obstacles), grid),
        hidden=_within((one.cell for one in world.obstacles if not one.visible), grid),
        forbidden=_within(world.forbidden, grid),
        others=tuple(cell for cell in rest if inside(cell, grid)),
    )


def believed_board(state: Any) -> Board | None:
    """The grid as a perceptual state has it; None if that is not a vacuum robot's, or is empty."""
    try:
        believed = VacuumState.model_validate(state)
    except (ValidationError, RecursionError):
        return None
    grid, here = believed.grid, believed.position
    if not _possible(grid):
        return None
    seen = {*believed.dirty, *believed.clean, *believed.obstacles, *([here] if here else [])}
    return Board(
        grid=grid,
        charger=believed.charger,
        robot=here if here and inside(here, grid) else None,
        battery=max(0, min(100, believed.battery)),
        stranded=believed.stranded,
        dirty=_within(believed.dirty, grid),
        known=_within(seen, grid),
        obstacles=_within(believed.obstacles, grid),
    )


def _possible(grid: Cell) -> bool:
    return all(1 <= side <= _MOST_CELLS for side in grid)


def _within(cells: Iterable[Cell], grid: Cell) -> frozenset[Cell]:
    return frozenset(cell for cell in cells if inside(cell, grid))


def mistaken_cells(belief: Board | None, truth: Board | None) -> frozenset[Cell]:
    """Seen cells that are otherwise than believed: in dirt, or in what stands there."""
    if belief is None or truth is None or belief.grid != truth.grid:
        return frozenset()
    known = belief.known or frozenset()
    dirt = {cell for cell in known if (cell in belief.dirty) != (cell in truth.dirty)}
    missed = {cell for cell in known if cell in truth.obstacles - belief.obstacles}
    imagined = belief.obstacles - truth.obstacles - set(truth.others)
    return frozenset(dirt | missed | imagined)


# ---- colours and strokes ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """The colours of a picture; each of them is repeated by a shape or a word."""

    ground: Colour
    panel: Colour
    unseen: Colour
    line: Colour
    ink: Colour
    quiet: Colour
    dirt: Colour
    tint: Colour
    obstacle: Colour
    charger: Colour
    robot: Colour
    path: Colour
    good: Colour
    alarm: Colour

    def palette(self) -> Image.Image:
        """An image whose palette holds these colours and the shades between them."""
        colours = [getattr(self, field.name) for field in fields(self)]
        shades = [
            tuple(round(a + (b - a) * share / 6) for a, b in zip(back, ink, strict=True))
            for back, shares in ((self.ground, (2, 4)), (self.panel, range(1, 6)))
            for ink in colours
            for share in shares
        ]
        shades += [
            tuple((a + b) // 2 for a, b in zip(back, ink, strict=True))
            for back in (self.unseen, self.tint, self.charger, self.robot)
            for ink in (self.ink, self.dirt, self.panel, self.path, self.good, self.line)
        ]
        found = list(dict.fromkeys([*colours, *shades]))[:256]
        image = Image.new("P", (1, 1))
        image.putpalette([number for colour in found for number in colour])
        return image


def _hex(colours: str) -> Theme:
    names = [field.name for field in fields(Theme)]
    values = [tuple(bytes.fromhex(text)) for text in colours.split()]
    return Theme(**dict(zip(names, values, strict=True)))  # type: ignore[arg-type]


THEMES: dict[ThemeName, Theme] = {
    "light": _hex(
        "fbfaf7 ffffff ecebe5 cdcac1 1d1f24 5d626d 966226 f5e6ce 4d5561 cfebd5 1f5fbf 86a9e0 "
        "187034 b3261e"
    ),
    "dark": _hex(
        "17191e 22252c 1a1c22 4a4f5a e8e8e3 a6abb7 deb270 4a3a22 969eae 24502f 8ab4f8 4e6ea6 "
        "81c995 f28b82"
    ),
}


@cache
def _font(pixels: int) -> ImageFont.FreeTypeFont:
    """Pillow's own font, so that pictures are the same on every machine."""
    font = ImageFont.load_default(pixels)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise RuntimeError("This Pillow was built without FreeType, so it has no font to scale.")
    return font.font_variant(layout_engine=ImageFont.Layout.BASIC)


class _Pen:
    """Draws in layout units on a supersampled image."""

    def __init__(self, theme: Theme, scale: float) -> None:
        self.theme = theme
        self.scale = scale * _SUPERSAMPLING
        size = round(WIDTH * scale) * _SUPERSAMPLING, round(HEIGHT * scale) * _SUPERSAMPLING
        self.image = Image.new("RGB", size, theme.ground)
        self.draw = ImageDraw.Draw(self.image)

    def _pixels(self, *units: float) -> list[int]:
        return [round(unit * self.scale) for unit in units]

    def box(
        self,
        corners: Sequence[float],
        fill: Colour | None = None,
        edge: Colour | None = None,
        width: float = 1,
        radius: float = 0,
    ) -> None:
        left, top, right, bottom = self._pixels(*corners)
        stroke = max(1, *self._pixels(width))
        self.draw.rounded_rectangle(
            (left, top, right - 1, bottom - 1),
            radius=radius * self.scale,
            fill=fill,
            outline=edge,
            width=stroke,
        )

    def line(self, points: Sequence[Point], colour: Colour, width: float = 1) -> None:
        flat = [number for x, y in points for number in self._pixels(x, y)]
        self.draw.line(flat, fill=colour, width=max(1, *self._pixels(width)), joint="curve")

    def dashes(self, start: Point, end: Point, colour: Colour, width: float = 1) -> None:
        count = max(1, int(max(abs(end[0] - start[0]), abs(end[1] - start[1])) / 5))
        for index in range(0, count, 2):
            ends = [
                (start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share)
                for share in (index / count, min(1.0, (index + 1) / count))
            ]
            self.line(ends, colour, width)

    def polygon(self, points: Sequence[Point], fill: Colour) -> None:
        self.draw.polygon([tuple(self._pixels(x, y)) for x, y in points], fill=fill)

    def disc(
        self,
        centre: Point,
        radius: float,
        fill: Colour | None = None,
        edge: Colour | None = None,
        width: float = 1,
    ) -> None:
        x, y = centre
        corners = self._pixels(x - radius, y - radius, x + radius, y + radius)
        self.draw.ellipse(corners, fill=fill, outline=edge, width=max(1, *self._pixels(width)))

    def cross(self, centre: Point, reach: float, colour: Colour, width: float) -> None:
        x, y = centre
        for slope in (1, -1):
            ends = ((x - reach, y - slope * reach), (x + reach, y + slope * reach))
            self.line(ends, colour, width)

    def text(self, at: Point, text: str, size: float, colour: Colour, anchor: str = "la") -> None:
        x, y = self._pixels(*at)
        self.draw.text((x, y), text, fill=colour, font=self._sized(size), anchor=anchor)

    def width(self, text: str, size: float) -> float:
        return self._sized(size).getlength(text) / self.scale

    def fitted(self, text: str, size: float, width: float) -> str:
        """The longest beginning of a text that is no wider; an ellipsis marks a cut."""
        if self.width(text, size) <= width:
            return text
        few, many = 0, len(text)
        while few < many:
            half = (few + many + 1) // 2
            fits = self.width(f"{text[:half].rstrip()}…", size) <= width
            few, many = (half, many) if fits else (few, half - 1)
        return f"{text[:few].rstrip()}…"

    def wrapped(self, text: str, size: float, width: float, most: int) -> list[str]:
        """A text in at most so many lines of at most this width."""
        lines: list[str] = []
        words = text.split()
        while words and len(lines) < most - 1:
            count = 1
            while count < len(words) and self.width(" ".join(words[: count + 1]), size) <= width:
                count += 1
            lines.append(self.fitted(" ".join(words[:count]), size, width))
            words = words[count:]
        return [*lines, self.fitted(" ".join(words), size, width)] if words else lines

    def _sized(self, size: float) -> ImageFont.FreeTypeFont:
        return _font(round(max(9 * _SUPERSAMPLING, size * self.scale)))


# ---- pictures ----


def render(
    frame: Frame | Sequence[str],
    labels: Labels,
    theme: ThemeName = "light",
    size: SizeName = "medium",
) -> Image.Image:
    """Draws one picture.

    Returns:
        An image in the palette of its theme, so that all pictures of a film share one.
    """
    pen = _Pen(THEMES[theme], SCALES[size])
    if isinstance(frame, Frame):
        _draw_header(pen, labels, f"cycle {frame.cycle}" if frame.cycle else "")
        _draw_boards(pen, frame, labels)
        _draw_caption(pen, frame, labels.phases)
        _draw_key(pen, _EDGE + 2, HEIGHT - 30)
    else:
        _draw_header(pen, labels, "")
        for number, line in enumerate(frame):
            points, colour = (24, pen.theme.ink) if number == 0 else (16, pen.theme.quiet)
            at = WIDTH / 2, HEIGHT / 2 - 30 + number * 36
            pen.text(at, pen.fitted(line, points, WIDTH - 2 * _EDGE), points, colour, "mm")
    image = pen.image.reduce(_SUPERSAMPLING)
    return image.quantize(palette=pen.theme.palette(), dither=Image.Dither.NONE)


def _draw_header(pen: _Pen, labels: Labels, right: str) -> None:
    title = pen.fitted(labels.title, 20, 560)
    used = pen.width(title, 20)
    subtitle = pen.fitted(labels.subtitle, 15, WIDTH - 2 * _EDGE - used - 130)
    pen.text((_EDGE, 14), title, 20, pen.theme.ink)
    pen.text((_EDGE + used + 14, 19), subtitle, 15, pen.theme.quiet)
    pen.text((WIDTH - _EDGE, 14), right, 20, pen.theme.ink, "ra")


def _draw_boards(pen: _Pen, frame: Frame, labels: Labels) -> None:
    note = " (place, charge, near dirt: last return)" if frame.by_return else ""
    acting = frame.phase in ("execution", "action")
    wrong = mistaken_cells(frame.belief, frame.truth)
    sides = (
        (_EDGE, f"The world as it is{note}", frame.truth, labels.no_truth),
        (_RIGHT, labels.belief_title, frame.belief, "The agent holds no picture of the grid here."),
    )
    for left, title, board, missing in sides:
        pen.text((left + _LABELS, 52), title, 15, pen.theme.quiet)
        if board is None:
            _draw_missing(pen, left, missing)
            continue
        believed = left == _RIGHT
        grid = _Grid(pen, board, (left, _BOARD_TOP), _BOARD)
        grid.draw(frame.path, wrong if believed else frozenset())
        for option in frame.options if believed and not acting else ():
            grid.draw_move(option)
        grid.draw_robot()
        _draw_battery(pen, left + _LABELS, board)


def _draw_missing(pen: _Pen, left: float, reason: str) -> None:
    box = (left + _LABELS, _BOARD_TOP + _LABELS, left + _BOARD, _BOARD_TOP + _BOARD)
    pen.box(box, edge=pen.theme.line, width=1.5)
    middle, top = (box[0] + box[2]) / 2, box[1]
    pen.text((middle, top + 100), "Not in this trace", 18, pen.theme.ink, "mm")
    for number, line in enumerate(pen.wrapped(reason, 15, box[2] - box[0] - 50, 5)):
        pen.text((middle, top + 132 + number * 22), line, 15, pen.theme.quiet, "mm")


def _draw_battery(pen: _Pen, left: float, board: Board) -> None:
    theme, top, width, height = pen.theme, _BATTERY_TOP, 150, 16
    pen.box((left, top, left + width, top + height), edge=theme.quiet, width=1.5, radius=3)
    pen.box((left + width + 1, top + 5, left + width + 4, top + height - 5), fill=theme.quiet)
    charge = (width - 6) * board.battery / 100
    if charge >= 1:
        colour = theme.alarm if board.battery <= _LOW_BATTERY else theme.good
        pen.box((left + 3, top + 3, left + 3 + charge, top + height - 3), fill=colour)
    words = f"battery {board.battery}" + (" · stranded" if board.stranded else "")
    ink = theme.alarm if board.stranded else theme.ink
    pen.text((left + width + 14, top + height / 2), words, 15, ink, "lm")


def _draw_caption(pen: _Pen, frame: Frame, phases: Sequence[str]) -> None:
    theme, inner = pen.theme, WIDTH - 2 * _EDGE - 36
    corners = (_EDGE, _CAPTION_TOP, WIDTH - _EDGE, _CAPTION_BOTTOM)
    pen.box(corners, fill=theme.panel, edge=theme.line, radius=8)
    left, top = _EDGE + 12.0, _CAPTION_TOP + 10
    for name in phases:
        word, on = name.capitalize(), name == frame.phase
        width = pen.width(word, 15) + 24
        if on:
            pen.box((left, top, left + width, top + 28), fill=theme.robot, radius=6)
        colour = theme.panel if on else theme.quiet
        pen.text((left + width / 2, top + 14), word, 15, colour, "mm")
        left += width + 10
    rule = _CAPTION_TOP + 45
    pen.line(((_EDGE + 1, rule), (WIDTH - _EDGE - 1, rule)), theme.line)
    top = _CAPTION_TOP + 54
    for sentence in frame.caption.split("\n"):
        for line in pen.wrapped(sentence, 16, inner, 2 if frame.options else 4):
            pen.text((_EDGE + 18, top), line, 16, theme.ink)
            top += 23
    for number, option in enumerate(frame.options[:_SHOWN_OPTIONS]):
        _draw_option(pen, option, _CAPTION_TOP + 119 + number * 27)
    rest = len(frame.options) - _SHOWN_OPTIONS
    if rest > 0:
        at = WIDTH - _EDGE - 18, _CAPTION_TOP + 84
        pen.text(at, f"and {rest} more", 13, theme.quiet, "ra")


def _draw_option(pen: _Pen, option: Option, middle: float) -> None:
    theme, left, end = pen.theme, _EDGE + 18, WIDTH - _EDGE - 18
    _draw_mark(pen, option.mark, left + 8, middle)
    colour = theme.quiet if option.mark == "rejected" else theme.ink
    pen.text((left + 26, middle), pen.fitted(option.text, 15, 235), 15, colour, "lm")
    column: float = left + 276
    if option.rejected_by:
        name = pen.fitted(option.rejected_by, 15, 250)
        pen.text((column, middle), name, 15, theme.alarm, "lm")
        column += pen.width(name, 15) + 12
    elif option.score is not None:
        pen.box((column, middle - 4, column + 84, middle + 4), fill=theme.unseen, radius=2)
        full = column + max(2, 84 * option.score)
        pen.box((column, middle - 4, full, middle + 4), fill=theme.path, radius=2)
        pen.text((column + 94, middle), f"{option.score:.2f}", 15, colour, "lm")
        column += 150
    pen.text((column, middle), pen.fitted(option.reason, 13, end - column), 13, theme.quiet, "lm")


def _draw_mark(pen: _Pen, mark: Mark, x: float, y: float) -> None:
    """Ring: proposed; tick: allowed; cross: rejected; filled arrow: chosen."""
    theme = pen.theme
    match mark:
        case "proposed":
            pen.disc((x, y), 5, edge=theme.quiet, width=1.5)
        case "allowed":
            pen.line(((x - 6, y), (x - 2, y + 5), (x + 6, y - 5)), theme.good, 2)
        case "rejected":
            pen.cross((x, y), 5, theme.alarm, 2)
        case "chosen":
            pen.line(((x - 8, y), (x, y)), theme.robot, 3)
            pen.polygon(((x - 1, y - 6), (x + 8, y), (x - 1, y + 6)), theme.robot)


def _draw_key(pen: _Pen, left: float, top: float) -> None:
    """What the signs on a grid mean, in one row."""
    here, side = frozenset([(0, 0)]), 18.0
    empty = Board(grid=(1, 1))
    signs = (
        ("charger", replace(empty, charger=(0, 0))),
        ("dirt", replace(empty, dirty=here)),
        ("obstacle", replace(empty, obstacles=here)),
        ("hidden obstacle", replace(empty, obstacles=here, hidden=here)),
        ("no cleaning", replace(empty, forbidden=here)),
        ("not seen yet", replace(empty, known=frozenset())),
        ("otherwise than believed", empty),
    )
    for word, board in signs:
        grid = _Grid(pen, board, (left - _LABELS, top - _LABELS), side + _LABELS)
        grid.draw_cells((), here if board is empty else frozenset())
        pen.text((left + side + 6, top + side / 2), word, 13, pen.theme.quiet, "lm")
        left += side + 26 + pen.width(word, 13)


@dataclass(frozen=True, slots=True)
class _Grid:
    """A board at a place of a picture."""

    pen: _Pen
    board: Board
    corner: Point
    side: float

    @property
    def cell(self) -> float:
        return (self.side - _LABELS) / max(self.board.grid)

    def _spot(self, cell: Cell, x: float = 0.5, y: float = 0.5) -> Point:
        """A point in a cell; x and y are shares of its sides."""
        left, top = self.corner[0] + _LABELS, self.corner[1] + _LABELS
        return left + (cell[0] + x) * self.cell, top + (cell[1] + y) * self.cell

    def draw(self, path: Sequence[Cell], wrong: frozenset[Cell]) -> None:
        """Draws all but moves and the run's own robot, with the numbers of columns and rows."""
        width, height = self.board.grid
        step = 1 if max(width, height) <= 12 else 10
        for x in range(0, width, step):
            at = self._spot((x, 0))[0], self.corner[1] + _LABELS / 2 - 1
            self.pen.text(at, str(x), 12, self.pen.theme.quiet, "mm")
        for y in range(0, height, step):
            at = self.corner[0] + _LABELS / 2 - 1, self._spot((0, y))[1]
            self.pen.text(at, str(y), 12, self.pen.theme.quiet, "mm")
        self.draw_cells(path, wrong)

    def draw_cells(self, path: Sequence[Cell], wrong: frozenset[Cell]) -> None:
        pen, theme, board = self.pen, self.pen.theme, self.board
        for cell in cells_of(board.grid):
            self._draw_floor(cell)
        points = [self._spot(cell) for cell in path if inside(cell, board.grid)]
        if len(points) > 1:
            pen.line(points, theme.path, max(2.0, self.cell * 0.06))
        for cell in sorted(board.obstacles):
            self._draw_obstacle(cell)
        for cell in sorted(board.forbidden):
            x, y = self._spot(cell, 0.18, 0.82)
            reach = self.cell * 0.12
            pen.disc((x, y), reach, fill=theme.panel, edge=theme.alarm, width=2)
            slant = reach * 0.6
            pen.line(((x - slant, y + slant), (x + slant, y - slant)), theme.alarm, 2)
        for cell in board.others:
            pen.disc(self._spot(cell), self.cell * 0.3, edge=theme.robot, width=2)
        for cell in sorted(wrong):
            corner = [self._spot(cell, x, y) for x, y in ((0.74, 0), (1, 0), (1, 0.26))]
            pen.polygon(corner, theme.alarm)

    def _draw_floor(self, cell: Cell) -> None:
        pen, theme, board = self.pen, self.pen.theme, self.board
        unseen = board.known is not None and cell not in board.known
        fill = theme.unseen if unseen else theme.panel
        fill = theme.charger if cell == board.charger else fill
        fill = theme.tint if cell in board.dirty and cell != board.charger else fill
        pen.box((*self._spot(cell, 0, 0), *self._spot(cell, 1, 1)), fill=fill, edge=theme.line)
        if unseen and cell != board.charger:
            pen.disc(self._spot(cell), max(1.0, self.cell * 0.03), fill=theme.line)
        if cell in board.dirty:
            specks = ((20, 24, 5), (50, 14, 3), (80, 30, 4), (30, 55, 3), (68, 62, 5), (48, 84, 3))
            for x, y, size in specks:
                spot = self._spot(cell, x / 100, y / 100)
                pen.disc(spot, self.cell * size / 100, fill=theme.dirt)
        if cell == board.charger:
            bolt = ((78, 6), (62, 23), (72, 23), (66, 38), (88, 17), (77, 17))
            pen.polygon([self._spot(cell, x / 100, y / 100) for x, y in bolt], theme.good)

    def _draw_obstacle(self, cell: Cell) -> None:
        """A block; a hidden one has stripes."""
        pen, colour = self.pen, self.pen.theme.obstacle
        corners = (*self._spot(cell, 0.12, 0.12), *self._spot(cell, 0.88, 0.88))
        if cell not in self.board.hidden:
            pen.box(corners, fill=colour, radius=self.cell * 0.08)
            return
        pen.box(corners, edge=colour, width=1.5)
        for low, high in ((0.12, 0.5), (0.12, 0.88), (0.5, 0.88)):
            pen.line((self._spot(cell, low, high), self._spot(cell, high, low)), colour, 1.5)

    def draw_move(self, option: Option) -> None:
        """An arrow the way a candidate moves; with a cross at its end if it is rejected."""
        here, pen, theme = self.board.robot, self.pen, self.pen.theme
        if option.way is None or here is None:
            return
        dx, dy = neighbour((0, 0), option.way)
        start = self._spot(here, 0.5 + dx * 0.32, 0.5 + dy * 0.32)
        tip = self._spot(here, 0.5 + dx * 0.86, 0.5 + dy * 0.86)
        if option.mark == "rejected":
            pen.dashes(start, tip, theme.alarm, 2.5)
            pen.cross(tip, self.cell * 0.09, theme.alarm, 2.5)
            return
        chosen = option.mark == "chosen"
        colour, width = (theme.robot, 4.0) if chosen else (theme.quiet, 2.0)
        pen.line((start, tip), colour, width)
        back = self.cell * (0.15 if chosen else 0.11)
        base = tip[0] - dx * back, tip[1] - dy * back
        ahead = tip[0] + dx * back * 0.6, tip[1] + dy * back * 0.6
        wings = [(base[0] + dy * side, base[1] + dx * side) for side in (back, -back)]
        pen.polygon((ahead, *wings), colour)

    def draw_robot(self) -> None:
        here, pen, theme = self.board.robot, self.pen, self.pen.theme
        if here is None:
            return
        at, stranded = self._spot(here), self.board.stranded
        pen.disc(at, self.cell * 0.29, fill=theme.alarm if stranded else theme.robot)
        if stranded:
            pen.cross(at, self.cell * 0.13, theme.panel, 3)
        else:
            pen.disc(at, self.cell * 0.2, edge=theme.panel, width=max(1.0, self.cell * 0.035))
            pen.disc(at, self.cell * 0.07, fill=theme.panel)
