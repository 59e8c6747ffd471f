"""Drawing one picture of a run: the world as it is, the world as believed, and a caption."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from PIL import Image, ImageDraw, ImageFont
from pydantic import ValidationError

from case_study.robot import VacuumState
from vacuum_world.world import (
    DIRECTIONS,
    Cell,
    Direction,
    Reading,
    WorldState,
    cells_of,
    inside,
    neighbour,
)

ThemeName = Literal["light", "dark"]
SizeName = Literal["small", "medium", "large"]
Mark = Literal["proposed", "allowed", "rejected", "chosen"]
"""What is known of a candidate so far."""
Colour = tuple[int, ...]
Point = tuple[float, float]
Cells = frozenset[Cell]

SCALES: dict[SizeName, float] = {"small": 0.75, "medium": 1.0, "large": 1.5}
"""Pixels per layout unit."""
WIDTH, HEIGHT = 860, 762
"""Size of a picture in layout units."""
_SUPERSAMPLING = 3
_MOST_CELLS = 50
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
    dirty: Cells = frozenset()
    known: Cells | None = None
    """Cells that were ever seen; None where all cells are known."""
    obstacles: Cells = frozenset()
    hidden: Cells = frozenset()
    """Obstacles that no sensor feels."""
    forbidden: Cells = frozenset()
    others: tuple[Cell, ...] = ()

    def after(self, reading: Reading) -> Board:
        """The board with a later reading of the robot's sensors applied."""
        seen = {reading.position: reading.dirty.here}
        for way in DIRECTIONS:
            seen[neighbour(reading.position, way)] = getattr(reading.dirty, way)
        dirty = self.dirty - {cell for cell, is_dirty in seen.items() if is_dirty is not None}
        return replace(
            self,
            robot=reading.position,
            battery=reading.battery,
            stranded=reading.stranded,
            dirty=_within(dirty | {cell for cell, is_dirty in seen.items() if is_dirty}, self.grid),
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


def world_board(environment: Any, name: str) -> Board | None:
    """The world as a snapshot holds it; None if that is no state of the vacuum world."""
    try:
        world = WorldState.model_validate(environment)
    except (ValidationError, RecursionError):
        return None
    own = next((one for one in world.robots if one.name == name), next(iter(world.robots), None))
    return Board(
        grid=world.grid,
        charger=world.charger,
        robot=own.position if own else None,
        battery=own.battery if own else 0,
        stranded=bool(own and own.stranded),
        dirty=frozenset(world.dirty),
        obstacles=frozenset(one.cell for one in world.obstacles),
        hidden=frozenset(one.cell for one in world.obstacles if not one.visible),
        forbidden=frozenset(world.forbidden),
        others=tuple(one.position for one in world.robots if one is not own),
    )


def believed_board(state: Any) -> Board | None:
    """The grid as a perceptual state has it; None if that is not a vacuum robot's, or is empty."""
    try:
        believed = VacuumState.model_validate(state)
    except (ValidationError, RecursionError):
        return None
    grid, here = believed.grid, believed.position
    if not all(1 <= side <= _MOST_CELLS for side in grid):
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


def _within(cells: Iterable[Cell], grid: Cell) -> Cells:
    return frozenset(cell for cell in cells if inside(cell, grid))


def _mistaken(belief: Board | None, truth: Board | None) -> Cells:
    """Seen cells that are otherwise than believed: in dirt, or in what stands there."""
    if belief is None or truth is None or belief.grid != truth.grid:
        return frozenset()
    imagined = belief.obstacles - truth.obstacles - set(truth.others)
    otherwise = (belief.dirty ^ truth.dirty) | (truth.obstacles - belief.obstacles)
    return imagined | (otherwise & (belief.known or frozenset()))


# ---- colours and strokes ----

_COLOURS = (
    *("ground", "panel", "unseen", "line", "ink", "quiet", "dirt", "tint", "obstacle"),
    *("charger", "robot", "path", "good", "alarm"),
)
_HEX: dict[ThemeName, str] = {
    "light": "fbfaf7 ffffff ecebe5 cdcac1 1d1f24 5d626d 966226 f5e6ce 4d5561 cfebd5 1f5fbf 86a9e0 "
    "187034 b3261e",
    "dark": "17191e 22252c 1a1c22 4a4f5a e8e8e3 a6abb7 deb270 4a3a22 969eae 24502f 8ab4f8 4e6ea6 "
    "81c995 f28b82",
}
THEMES = {
    name: dict(zip(_COLOURS, (tuple(bytes.fromhex(one)) for one in colours.split()), strict=True))
    for name, colours in _HEX.items()
}
"""The colours of a picture; each of them is repeated by a shape or a word."""


@cache
def _palette(theme: ThemeName) -> Image.Image:
    """An image whose palette holds the theme's colours and the shades between them."""
    colours = THEMES[theme]
    shades = [
        tuple((a * (4 - share) + b * share) // 4 for a, b in zip(back, ink, strict=True))
        for back in map(colours.__getitem__, ("panel", "ground", "tint", "unseen", "robot"))
        for ink in colours.values()
        for share in (1, 2, 3)
    ]
    image = Image.new("P", (1, 1))
    found = list(dict.fromkeys([*colours.values(), *shades]))[:256]
    image.putpalette([number for colour in found for number in colour])
    return image


@cache
def _font(pixels: int) -> ImageFont.FreeTypeFont:
    """Pillow's own font, so that pictures are the same on every machine."""
    font = ImageFont.load_default(pixels)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise RuntimeError("This Pillow was built without FreeType, so it has no font to scale.")
    return font.font_variant(layout_engine=ImageFont.Layout.BASIC)


class _Pen:
    """Draws in layout units, with the names of a theme's colours, on a supersampled image."""

    def __init__(self, theme: ThemeName, scale: float) -> None:
        self._theme = THEMES[theme]
        self._scale = scale * _SUPERSAMPLING
        size = round(WIDTH * scale) * _SUPERSAMPLING, round(HEIGHT * scale) * _SUPERSAMPLING
        self.image = Image.new("RGB", size, self._theme["ground"])
        self._draw = ImageDraw.Draw(self.image)

    def _pixels(self, *units: float) -> list[int]:
        return [round(unit * self._scale) for unit in units]

    def _style(self, fill: str, edge: str, width: float) -> dict[str, Any]:
        stroke = max(1, *self._pixels(width))
        return {"fill": self._theme.get(fill), "outline": self._theme.get(edge), "width": stroke}

    def box(
        self, corners: Sequence[float], fill: str = "", edge: str = "", width: float = 1, r: int = 0
    ) -> None:
        left, top, right, bottom = self._pixels(*corners)
        self._draw.rounded_rectangle(
            (left, top, right - 1, bottom - 1), r * self._scale, **self._style(fill, edge, width)
        )

    def disc(
        self, at: Point, radius: float, fill: str = "", edge: str = "", width: float = 1
    ) -> None:
        x, y = at
        corners = self._pixels(x - radius, y - radius, x + radius, y + radius)
        self._draw.ellipse(corners, **self._style(fill, edge, width))

    def line(self, points: Sequence[Point], colour: str, width: float = 1) -> None:
        flat = [number for x, y in points for number in self._pixels(x, y)]
        stroke = max(1, *self._pixels(width))
        self._draw.line(flat, fill=self._theme[colour], width=stroke, joint="curve")

    def cross(self, at: Point, reach: float, colour: str, width: float) -> None:
        x, y = at
        for rise in (reach, -reach):
            self.line(((x - reach, y - rise), (x + reach, y + rise)), colour, width)

    def polygon(self, points: Sequence[Point], fill: str) -> None:
        self._draw.polygon([tuple(self._pixels(x, y)) for x, y in points], self._theme[fill])

    def text(
        self, at: Point, text: str, size: float, colour: str = "ink", anchor: str = "lm"
    ) -> float:
        """Writes a text; gives its width."""
        x, y = self._pixels(*at)
        self._draw.text((x, y), text, self._theme[colour], self._sized(size), anchor)
        return self.width(text, size)

    def width(self, text: str, size: float) -> float:
        return self._sized(size).getlength(text) / self._scale

    def fitted(self, text: str, size: float, width: float) -> str:
        """The longest beginning of a text that is no wider; an ellipsis marks a cut."""
        short = text
        while short and self.width(short, size) > width:
            text = text[:-1].rstrip()
            short = f"{text}…" if text else ""
        return short

    def wrapped(self, text: str, size: float, width: float, most: int) -> list[str]:
        """A text in at most so many lines of at most this width."""
        lines = [""]
        for word in text.split():
            longer = f"{lines[-1]} {word}".strip()
            if not lines[-1] or len(lines) == most or self.width(longer, size) <= width:
                lines[-1] = longer
            else:
                lines.append(word)
        return [self.fitted(line, size, width) for line in lines]

    def _sized(self, size: float) -> ImageFont.FreeTypeFont:
        return _font(round(max(9 * _SUPERSAMPLING, size * self._scale)))


# ---- pictures ----


def render(
    frame: Frame | Sequence[str],
    labels: Labels,
    theme: ThemeName = "light",
    size: SizeName = "medium",
) -> Image.Image:
    """Draws a frame, or a card with some lines, in the palette of its theme."""
    pen = _Pen(theme, SCALES[size])
    used = pen.text((_EDGE, 24), pen.fitted(labels.title, 20, 560), 20)
    subtitle = pen.fitted(labels.subtitle, 15, WIDTH - 2 * _EDGE - used - 130)
    pen.text((_EDGE + used + 14, 26), subtitle, 15, "quiet")
    if isinstance(frame, Frame):
        pen.text(
            (WIDTH - _EDGE, 24), f"cycle {frame.cycle}" if frame.cycle else "", 20, "ink", "rm"
        )
        _draw_boards(pen, frame, labels)
        _draw_caption(pen, frame, labels.phases)
        _draw_key(pen)
    else:
        for number, line in enumerate(frame):
            points, colour = (16, "quiet") if number else (24, "ink")
            at = WIDTH / 2, HEIGHT / 2 - 30 + number * 36
            pen.text(at, pen.fitted(line, points, WIDTH - 2 * _EDGE), points, colour, "mm")
    image = pen.image.reduce(_SUPERSAMPLING)
    return image.quantize(palette=_palette(theme), dither=Image.Dither.NONE)


def _draw_boards(pen: _Pen, frame: Frame, labels: Labels) -> None:
    note = " (place, charge, near dirt: last return)" if frame.by_return else ""
    wrong = _mistaken(frame.belief, frame.truth)
    sides = (
        (_EDGE, f"The world as it is{note}", frame.truth, labels.no_truth),
        (_RIGHT, labels.belief_title, frame.belief, "The agent holds no picture of the grid here."),
    )
    for left, title, board, missing in sides:
        pen.text((left + _LABELS, 60), title, 15, "quiet")
        if board is None:
            _draw_missing(pen, left, missing)
            continue
        grid, believed = _Grid(pen, board, (left, _BOARD_TOP), _BOARD), left == _RIGHT
        grid.number()
        grid.draw(frame.path, wrong if believed else frozenset())
        if believed and frame.phase not in ("execution", "action"):
            for option in frame.options:
                grid.draw_move(option)
        grid.draw_robot()
        _draw_battery(pen, left + _LABELS, board)


def _draw_missing(pen: _Pen, left: float, reason: str) -> None:
    box = (left + _LABELS, _BOARD_TOP + _LABELS, left + _BOARD, _BOARD_TOP + _BOARD)
    pen.box(box, edge="line", width=1.5)
    middle, top = (box[0] + box[2]) / 2, box[1]
    pen.text((middle, top + 100), "Not in this trace", 18, "ink", "mm")
    for number, line in enumerate(pen.wrapped(reason, 15, box[2] - box[0] - 50, 5)):
        pen.text((middle, top + 132 + number * 22), line, 15, "quiet", "mm")


def _draw_battery(pen: _Pen, left: float, board: Board) -> None:
    top, width, height = _BATTERY_TOP, 150, 16
    pen.box((left, top, left + width, top + height), edge="quiet", width=1.5, r=3)
    pen.box((left + width + 1, top + 5, left + width + 4, top + height - 5), "quiet")
    if board.battery:
        full = left + 3 + (width - 6) * board.battery / 100
        colour = "alarm" if board.battery <= _LOW_BATTERY else "good"
        pen.box((left + 3, top + 3, full, top + height - 3), colour)
    words = f"battery {board.battery}" + (" · stranded" if board.stranded else "")
    at = left + width + 14, top + height / 2
    pen.text(at, words, 15, "alarm" if board.stranded else "ink")


def _draw_caption(pen: _Pen, frame: Frame, phases: Sequence[str]) -> None:
    corners = (_EDGE, _CAPTION_TOP, WIDTH - _EDGE, _CAPTION_BOTTOM)
    pen.box(corners, "panel", "line", r=8)
    left, top = _EDGE + 12.0, _CAPTION_TOP + 10
    for name in phases:
        on, width = name == frame.phase, pen.width(name.capitalize(), 15) + 24
        if on:
            pen.box((left, top, left + width, top + 28), "robot", r=6)
        at = left + width / 2, top + 14
        pen.text(at, name.capitalize(), 15, "panel" if on else "quiet", "mm")
        left += width + 10
    rule, top = _CAPTION_TOP + 45, _CAPTION_TOP + 64
    pen.line(((_EDGE + 1, rule), (WIDTH - _EDGE - 1, rule)), "line")
    for sentence in frame.caption.split("\n"):
        for line in pen.wrapped(sentence, 16, WIDTH - 2 * _EDGE - 36, 2 if frame.options else 4):
            pen.text((_EDGE + 18, top), line, 16)
            top += 23
    for number, option in enumerate(frame.options[:_SHOWN_OPTIONS]):
        _draw_option(pen, option, _CAPTION_TOP + 119 + number * 27)
    rest = len(frame.options) - _SHOWN_OPTIONS
    if rest > 0:
        at = WIDTH - _EDGE - 18, _CAPTION_TOP + 91
        pen.text(at, f"and {rest} more", 13, "quiet", "rm")


def _draw_option(pen: _Pen, option: Option, middle: float) -> None:
    left, end = _EDGE + 18, WIDTH - _EDGE - 18
    _draw_mark(pen, option.mark, left + 8, middle)
    colour = "quiet" if option.mark == "rejected" else "ink"
    pen.text((left + 26, middle), pen.fitted(option.text, 15, 235), 15, colour)
    column: float = left + 276
    if option.rejected_by:
        name = pen.fitted(option.rejected_by, 15, 250)
        column += pen.text((column, middle), name, 15, "alarm") + 12
    elif option.score is not None:
        full = column + max(2, 84 * option.score)
        pen.box((column, middle - 4, column + 84, middle + 4), "unseen", r=2)
        pen.box((column, middle - 4, full, middle + 4), "path", r=2)
        pen.text((column + 94, middle), f"{option.score:.2f}", 15, colour)
        column += 150
    pen.text((column, middle), pen.fitted(option.reason, 13, end - column), 13, "quiet")


def _draw_mark(pen: _Pen, mark: Mark, x: float, y: float) -> None:
    """Ring: proposed; tick: allowed; cross: rejected; filled arrow: chosen."""
    match mark:
        case "proposed":
            pen.disc((x, y), 5, edge="quiet", width=1.5)
        case "allowed":
            pen.line(((x - 6, y), (x - 2, y + 5), (x + 6, y - 5)), "good", 2)
        case "rejected":
            pen.cross((x, y), 5, "alarm", 2)
        case "chosen":
            pen.line(((x - 8, y), (x, y)), "robot", 3)
            pen.polygon(((x - 1, y - 6), (x + 8, y), (x - 1, y + 6)), "robot")


def _draw_key(pen: _Pen) -> None:
    """What the signs on a grid mean, in one row."""
    left, top, side, here = _EDGE + 2.0, HEIGHT - 30, 18.0, frozenset([(0, 0)])
    empty = Board(grid=(1, 1))
    signs = {
        "charger": replace(empty, charger=(0, 0)),
        "dirt": replace(empty, dirty=here),
        "obstacle": replace(empty, obstacles=here),
        "hidden obstacle": replace(empty, obstacles=here, hidden=here),
        "no cleaning": replace(empty, forbidden=here),
        "not seen yet": replace(empty, known=frozenset()),
        "otherwise than believed": empty,
    }
    for word, board in signs.items():
        grid = _Grid(pen, board, (left - _LABELS, top - _LABELS), side + _LABELS)
        grid.draw((), here if board is empty else frozenset())
        left += side + 26 + pen.text((left + side + 6, top + side / 2), word, 13, "quiet")


@dataclass(frozen=True, slots=True)
class _Grid:
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

    def number(self) -> None:
        (left, top), half = self.corner, _LABELS / 2 - 1
        step = 1 if max(self.board.grid) <= 12 else 10
        for x in range(0, self.board.grid[0], step):
            self.pen.text((self._spot((x, 0))[0], top + half), str(x), 12, "quiet", "mm")
        for y in range(0, self.board.grid[1], step):
            self.pen.text((left + half, self._spot((0, y))[1]), str(y), 12, "quiet", "mm")

    def draw(self, path: Sequence[Cell], wrong: Cells) -> None:
        pen, board, side = self.pen, self.board, self.cell
        for cell in cells_of(board.grid):
            self._draw_floor(cell)
        points = [self._spot(cell) for cell in path if inside(cell, board.grid)]
        if len(points) > 1:
            pen.line(points, "path", max(2.0, side * 0.06))
        for cell in sorted(board.obstacles):
            self._draw_obstacle(cell)
        for cell in sorted(board.forbidden):
            x, y = self._spot(cell, 0.18, 0.82)
            slant = side * 0.072
            pen.disc((x, y), side * 0.12, "panel", "alarm", 2)
            pen.line(((x - slant, y + slant), (x + slant, y - slant)), "alarm", 2)
        for cell in board.others:
            pen.disc(self._spot(cell), side * 0.3, edge="robot", width=2)
        for cell in sorted(wrong):
            pen.polygon(
                [self._spot(cell, x, y) for x, y in ((0.74, 0), (1, 0), (1, 0.26))], "alarm"
            )

    def _draw_floor(self, cell: Cell) -> None:
        pen, board = self.pen, self.board
        unseen = board.known is not None and cell not in board.known
        charges, dirty = cell == board.charger, cell in board.dirty
        fill = "charger" if charges else "tint" if dirty else "unseen" if unseen else "panel"
        pen.box((*self._spot(cell, 0, 0), *self._spot(cell, 1, 1)), fill, "line")
        if unseen and not charges:
            pen.disc(self._spot(cell), max(1.0, self.cell * 0.03), "line")
        if dirty:
            specks = ((20, 24, 5), (50, 14, 3), (80, 30, 4), (30, 55, 3), (68, 62, 5), (48, 84, 3))
            for x, y, size in specks:
                pen.disc(self._spot(cell, x / 100, y / 100), self.cell * size / 100, "dirt")
        if charges:
            bolt = ((78, 6), (62, 23), (72, 23), (66, 38), (88, 17), (77, 17))
            pen.polygon([self._spot(cell, x / 100, y / 100) for x, y in bolt], "good")

    def _draw_obstacle(self, cell: Cell) -> None:
        """A block; a hidden one has stripes."""
        corners = (*self._spot(cell, 0.12, 0.12), *self._spot(cell, 0.88, 0.88))
        if cell not in self.board.hidden:
            self.pen.box(corners, "obstacle", r=round(self.cell * 0.08))
            return
        self.pen.box(corners, edge="obstacle", width=1.5)
        for low, high in ((0.12, 0.5), (0.12, 0.88), (0.5, 0.88)):
            ends = self._spot(cell, low, high), self._spot(cell, high, low)
            self.pen.line(ends, "obstacle", 1.5)

    def draw_move(self, option: Option) -> None:
        """An arrow the way a candidate moves; with a cross at its end if it is rejected."""
        here, pen = self.board.robot, self.pen
        if option.way is None or here is None:
            return
        dx, dy = neighbour((0, 0), option.way)
        start = self._spot(here, 0.5 + dx * 0.32, 0.5 + dy * 0.32)
        tip = self._spot(here, 0.5 + dx * 0.86, 0.5 + dy * 0.86)
        if option.mark == "rejected":
            pen.line((start, tip), "alarm", 1.5)
            pen.cross(tip, self.cell * 0.09, "alarm", 2.5)
            return
        chosen = option.mark == "chosen"
        colour, back = ("robot", self.cell * 0.15) if chosen else ("quiet", self.cell * 0.11)
        pen.line((start, tip), colour, 4 if chosen else 2)
        ahead = tip[0] + dx * back * 0.6, tip[1] + dy * back * 0.6
        base = tip[0] - dx * back, tip[1] - dy * back
        wings = [(base[0] + dy * side, base[1] + dx * side) for side in (back, -back)]
        pen.polygon((ahead, *wings), colour)

    def draw_robot(self) -> None:
        here, pen, side = self.board.robot, self.pen, self.cell
        if here is None:
            return
        at, stranded = self._spot(here), self.board.stranded
        pen.disc(at, side * 0.29, "alarm" if stranded else "robot")
        if stranded:
            pen.cross(at, side * 0.13, "panel", 3)
        else:
            pen.disc(at, side * 0.2, edge="panel", width=max(1.0, side * 0.035))
            pen.disc(at, side * 0.07, "panel")
