"""One picture: header, the two grids with their batteries, and the caption."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ._boards import Board
from ._canvas import Canvas
from ._grid import LABELS, Grid, mistaken
from ._key import draw_key
from ._scenes import Mark, Option, Scene
from ._theme import HEIGHT, WIDTH, Colour

_EDGE = 24
_BOARD_TOP = 78
_BOARD = 370
_RIGHT = WIDTH - _EDGE - _BOARD
_BATTERY_TOP = _BOARD_TOP + _BOARD + 8
_CAPTION_TOP = _BATTERY_TOP + 38
_CAPTION_BOTTOM = HEIGHT - 42
_OPTIONS = 4
"""Lines of candidates that there is room for."""
_LOW = 15
"""Charge for three moves; from here on the battery is drawn as low."""
_NO_BOARD = "Not in this trace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is the same in every picture of a film."""

    title: str
    """Who ran in what."""
    subtitle: str
    """With which model, from which seed."""
    phases: tuple[str, ...]
    """The names of the phases, in order."""
    believed: str
    """Above the grid on the right."""
    without_truth: str
    """Why there is no grid on the left, where there is none."""


def draw_scene(canvas: Canvas, scene: Scene, setting: Setting) -> None:
    """Draws a picture of one moment."""
    _header(canvas, setting, f"cycle {scene.cycle}" if scene.cycle else "")
    _boards(canvas, scene, setting)
    _caption(canvas, scene, setting)
    draw_key(canvas, _EDGE + 2, HEIGHT - 30)


def draw_card(canvas: Canvas, setting: Setting, lines: Sequence[str]) -> None:
    """Draws a picture that holds words alone: what is left out."""
    _header(canvas, setting, "")
    for number, line in enumerate(lines):
        size, colour = (24, canvas.theme.ink) if number == 0 else (16, canvas.theme.quiet)
        at = WIDTH / 2, HEIGHT / 2 - 30 + number * 36
        canvas.text(at, canvas.fitted(line, size, WIDTH - 2 * _EDGE), size, colour, "mm")


def _header(canvas: Canvas, setting: Setting, right: str) -> None:
    theme = canvas.theme
    canvas.text((_EDGE, 14), canvas.fitted(setting.title, 20, 560), 20, theme.ink)
    used = canvas.width_of(canvas.fitted(setting.title, 20, 560), 20)
    room = WIDTH - 2 * _EDGE - used - 130
    canvas.text((_EDGE + used + 14, 19), canvas.fitted(setting.subtitle, 15, room), 15, theme.quiet)
    canvas.text((WIDTH - _EDGE, 14), right, 20, theme.ink, "ra")


def _boards(canvas: Canvas, scene: Scene, setting: Setting) -> None:
    left, colour = _EDGE, canvas.theme.quiet
    note = " (place, charge, near dirt: last return)" if scene.by_return else ""
    canvas.text((left + LABELS, 52), f"The world as it is{note}", 15, colour)
    canvas.text((_RIGHT + LABELS, 52), setting.believed, 15, colour)
    if scene.truth is None:
        _no_board(canvas, left, setting.without_truth)
    else:
        grid = Grid(canvas, scene.truth, (left, _BOARD_TOP - 4), _BOARD)
        grid.draw(scene.path, (), frozenset())
        _battery(canvas, left + LABELS, scene.truth)
    if scene.belief is None:
        _no_board(canvas, _RIGHT, "The agent holds no picture of the grid here.")
        return
    wrong = mistaken(scene.belief, scene.truth)
    done = scene.phase in ("execution", "action")
    grid = Grid(canvas, scene.belief, (_RIGHT, _BOARD_TOP - 4), _BOARD)
    grid.draw(scene.path, () if done else scene.options, wrong)
    _battery(canvas, _RIGHT + LABELS, scene.belief)


def _no_board(canvas: Canvas, left: float, why: str) -> None:
    theme = canvas.theme
    near, top = left + LABELS, _BOARD_TOP + LABELS - 4
    far, bottom = left + _BOARD, _BOARD_TOP + _BOARD - 4
    corners = ((near, top), (far, top), (far, bottom), (near, bottom))
    for start, end in zip(corners, (*corners[1:], corners[0]), strict=True):
        canvas.dashes(start, end, theme.line, 1.5)
    middle = (near + far) / 2
    canvas.text((middle, top + 100), _NO_BOARD, 18, theme.ink, "mm")
    for number, line in enumerate(canvas.wrapped(why, 15, far - near - 50, 5)):
        canvas.text((middle, top + 132 + number * 22), line, 15, theme.quiet, "mm")


def _battery(canvas: Canvas, left: float, board: Board) -> None:
    theme, top, width, height = canvas.theme, _BATTERY_TOP, 150, 16
    low = board.battery <= _LOW
    colour = theme.alarm if low else theme.good
    canvas.box((left, top, left + width, top + height), edge=theme.quiet, width=1.5, radius=3)
    canvas.box((left + width + 1, top + 5, left + width + 4, top + height - 5), fill=theme.quiet)
    full = (width - 6) * board.battery / 100
    if full >= 1:
        canvas.box((left + 3, top + 3, left + 3 + full, top + height - 3), fill=colour)
    words = f"battery {board.battery}" + (" · stranded" if board.stranded else "")
    ink = theme.alarm if board.stranded else theme.ink
    canvas.text((left + width + 14, top + height / 2), words, 15, ink, "lm")


def _caption(canvas: Canvas, scene: Scene, setting: Setting) -> None:
    theme = canvas.theme
    canvas.box(
        (_EDGE, _CAPTION_TOP, WIDTH - _EDGE, _CAPTION_BOTTOM),
        fill=theme.panel,
        edge=theme.line,
        width=1,
        radius=8,
    )
    _phases(canvas, scene.phase, setting.phases)
    inner = WIDTH - 2 * _EDGE - 36
    top = _CAPTION_TOP + 54
    for sentence in scene.about.split("\n"):
        for line in canvas.wrapped(sentence, 16, inner, 2 if scene.options else 4):
            canvas.text((_EDGE + 18, top), line, 16, theme.ink)
            top += 23
    shown = scene.options[:_OPTIONS]
    top = _CAPTION_TOP + 110
    for option in shown:
        _option(canvas, option, top)
        top += 27
    if len(scene.options) > len(shown):
        more = f"and {len(scene.options) - len(shown)} more"
        canvas.text((WIDTH - _EDGE - 18, _CAPTION_TOP + 84), more, 13, theme.quiet, "ra")


def _phases(canvas: Canvas, now: str, phases: Sequence[str]) -> None:
    """The phases in a row; the one that is on stands on a filled ground, with a bar below."""
    theme, left, top = canvas.theme, _EDGE + 12.0, _CAPTION_TOP + 10
    for name in phases:
        word, width = name.capitalize(), canvas.width_of(name.capitalize(), 15) + 24
        on = name == now
        if on:
            canvas.box((left, top, left + width, top + 28), fill=theme.robot, radius=6)
        canvas.text(
            (left + width / 2, top + 14), word, 15, theme.panel if on else theme.quiet, "mm"
        )
        left += width + 10
    canvas.line(
        ((_EDGE + 1, _CAPTION_TOP + 45), (WIDTH - _EDGE - 1, _CAPTION_TOP + 45)), theme.line
    )


def _option(canvas: Canvas, option: Option, top: float) -> None:
    theme, left, middle = canvas.theme, _EDGE + 18, top + 9
    _sign(canvas, option.mark, left + 8, middle)
    colour = theme.quiet if option.mark is Mark.REJECTED else theme.ink
    text = canvas.fitted(option.text, 15, 235)
    canvas.text((left + 26, middle), text, 15, colour, "lm")
    column = left + 276
    if option.died_of:
        name = canvas.fitted(option.died_of, 15, 250)
        canvas.text((column, middle), name, 15, theme.alarm, "lm")
        used = canvas.width_of(name, 15) + 12
        room = WIDTH - _EDGE - 18 - column - used
        reason = canvas.fitted(option.reason, 13, room)
        canvas.text((column + used, middle + 0.5), reason, 13, theme.quiet, "lm")
        return
    if option.score is not None:
        _score(canvas, option.score, column, middle, colour)
        column += 150
    room = WIDTH - _EDGE - 18 - column
    canvas.text(
        (column, middle + 0.5), canvas.fitted(option.reason, 13, room), 13, theme.quiet, "lm"
    )


def _score(canvas: Canvas, score: float, left: float, middle: float, colour: Colour) -> None:
    theme, width = canvas.theme, 84
    canvas.box((left, middle - 4, left + width, middle + 4), fill=theme.unseen, radius=2)
    canvas.box(
        (left, middle - 4, left + max(2, width * score), middle + 4), fill=theme.path, radius=2
    )
    canvas.text((left + width + 10, middle), f"{score:.2f}", 15, colour, "lm")


def _sign(canvas: Canvas, mark: Mark, x: float, y: float) -> None:
    """Ring: proposed; tick: allowed; cross: rejected; filled arrow: chosen."""
    theme: Colour
    match mark:
        case Mark.PROPOSED:
            canvas.disc((x, y), 5, edge=canvas.theme.quiet, width=1.5)
        case Mark.ALLOWED:
            theme = canvas.theme.good
            canvas.line(((x - 6, y), (x - 2, y + 5), (x + 6, y - 5)), theme, 2)
        case Mark.REJECTED:
            theme = canvas.theme.alarm
            canvas.line(((x - 5, y - 5), (x + 5, y + 5)), theme, 2)
            canvas.line(((x - 5, y + 5), (x + 5, y - 5)), theme, 2)
        case Mark.CHOSEN:
            theme = canvas.theme.robot
            canvas.line(((x - 8, y), (x, y)), theme, 3)
            canvas.shape(((x - 1, y - 6), (x + 8, y), (x - 1, y + 6)), theme)
