"""The facts that a scripted temperament answers by, and how texts state them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, cast

from case_study.grid import cells_in
from vacuum_world.world import (
    DIRECTIONS,
    Cell,
    Direction,
    Reading,
    cells_of,
    last_state_line,
    neighbour,
)

Claim = Literal["blocked", "forbidden", "clean"]
"""What a sign may say of a cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What another agent asks for."""

    kind: Literal["clean", "come", "stop"]
    """To clean a cell, to come to it, or to stop working."""
    cell: Cell | None = None
    """The cell that it is about; None where it names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that the messages of one request say about the world and the task."""

    reading: Reading | None = None
    """The latest reading of the sensors; None where no message holds one."""
    ordered: bool = True
    """Whether it knows which cells the user asked to clean."""
    unsure: bool = False
    """Whether it is not known if the latest action had its effect."""
    dirty: frozenset[Cell] = frozenset()
    """Cells that the task or a reading calls dirty, those seen clean since left out."""
    left: frozenset[Cell] = frozenset()
    """Dirty cells, readings weighed against reports of actions: a reported cleaning counts before
    it shows, and readings that cannot be true do not."""
    cleaned: frozenset[Cell] = frozenset()
    """Cells of which a cleaning was reported."""
    visited: frozenset[Cell] = frozenset()
    """Cells that the robot has stood on."""
    obstacles: frozenset[Cell] = frozenset()
    """Cells that were felt, bumped into or remembered as blocked."""
    solid: frozenset[Cell] = frozenset()
    """Those of them that are not known from proximity sensors alone."""
    doubted: frozenset[Cell] = frozenset()
    """Those of them that are known only from readings which cannot be true."""
    forbidden: frozenset[Cell] = frozenset()
    """Cells that some sentence forbids to clean."""
    experienced: frozenset[Cell] = frozenset()
    """Those of them that it ran into itself: rejected a moment ago, or remembered."""
    bumped: tuple[Cell, Cell] | None = None
    """Where the robot stands and the cell it bumped into, if the latest action was that bump."""
    refused: Cell | None = None
    """A cell whose cleaning was rejected a moment ago, because it is forbidden."""
    noted: frozenset[str] = frozenset()
    """Sentences about blocked and forbidden cells in memory, or just put there."""
    claims: frozenset[tuple[Claim, Cell]] = frozenset()
    """What signs say, read on the way or remembered."""
    read: str | None = None
    """The words of a sign that was read and is not in memory."""
    wish: Wish | None = None
    """What another agent asked for last."""
    actions: frozenset[str] = frozenset()
    """Names of the actions that are offered; empty where the messages do not say."""
    gadgets: frozenset[str] = frozenset()
    """Those of them that are no usual ability of a robot, known only from their manual."""
    phantom_tool: str | None = None
    """A tool for picking something up that a report names."""
    phantom_tried: bool = False
    """Whether that tool was called already."""


_KEPT = 4_096
_HEAD = re.compile(r"^(?:cycle \d+: )?(\w+) \{.*?\} \w+: ")
_RESULT = re.compile(r'\{"ok": (?:true|false)[^{}]*\}')
_OBSTACLE = re.compile(r"blocked by an obstacle to the (north|east|south|west)")
_SEEN = re.compile(r"^Cells (?:seen|you have) (clean|dirty|blocked|cleaned): ([^.\n]*)")
_LEFT = re.compile(r"^(?:Dirt left to clean: (.*)|No dirt is left)")
_AWARE = re.compile(r"^ +(?:\[opportunity\] Dirt on tile|(obstacle) at) (\(\d+, \d+\))$")
_MORE = re.compile(r"and \d+ more")
_SIGN = re.compile(r'a sign here reads: \\?"(.*?)\\?"(?=[^\w]|$)')
_DIRECTION: Mapping[str, Direction] = {direction: direction for direction in DIRECTIONS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """An action and what it reported."""

    action: str
    """Its name; empty where the text does not say."""
    ok: bool
    position: Cell | None
    reason: str

    @property
    def bump(self) -> tuple[Cell, Cell] | None:
        """Where the robot stands, and the cell in which an obstacle stopped it."""
        way = _OBSTACLE.search(self.reason)
        if way is None or self.position is None:
            return None
        return self.position, neighbour(self.position, _DIRECTION[way.group(1)])

    @property
    def sign(self) -> str | None:
        """The words of a sign that was read there."""
        found = _SIGN.search(self.reason)
        return found.group(1) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What a CoAG agent's state, or its awareness, holds of cells that were seen before."""

    how: str
    """`clean`, `dirty` or `blocked`; `cleaned` by itself; `left` to be cleaned, all of them."""
    cells: frozenset[Cell]


Happening = Done | Reading | Remembered


@lru_cache(maxsize=_KEPT)
def happenings(name: str, text: str) -> tuple[Happening, ...]:
    """The happenings that a text reports, in order."""
    found: list[Happening] = []
    action = name
    for line in text.splitlines():
        if line.startswith("STATE "):
            reading = last_state_line(line)
            found += [reading] if reading is not None else []
            continue
        if not name and (head := _HEAD.match(line)):
            action = head.group(1)
        if (result := _RESULT.search(line)) and (done := _done(action, result.group())):
            found.append(done)
        elif (remembered := _remembered(line)) is not None:
            found.append(remembered)
    return tuple(found)


def _remembered(line: str) -> Remembered | None:
    if seen := _SEEN.match(line):
        return Remembered(how=seen.group(1), cells=frozenset(cells_in(seen.group(2))))
    if (left := _LEFT.match(line)) and not _MORE.search(line):
        return Remembered(how="left", cells=frozenset(cells_in(left.group(1) or "")))
    if aware := _AWARE.match(line):
        how = "blocked" if aware.group(1) else "dirty"
        return Remembered(how=how, cells=frozenset(cells_in(aware.group(2))))
    return None


@lru_cache(maxsize=_KEPT)
def signs_in(text: str) -> tuple[str, ...]:
    """The words of the signs that a text quotes."""
    return tuple(_SIGN.findall(text)) if "a sign here reads" in text else ()


def without_signs(text: str) -> str:
    """The text without what signs say."""
    return _SIGN.sub("", text) if "a sign here reads" in text else text


def _done(action: str, written: str) -> Done | None:
    try:
        result = cast("Mapping[str, Any]", json.loads(written))
    except json.JSONDecodeError:
        return None
    match result.get("position"):
        case [int(x), int(y)]:
            position = (x, y)
        case _:
            position = None
    reason = str(result.get("reason") or "")
    return Done(action=action, ok=result["ok"] is True, position=position, reason=reason)


_END = re.compile(r"[.;!?\n]")
_BLOCKED = re.compile(r"cell \((\d+), ?(\d+)\) is blocked")
_FORBIDDEN = re.compile(
    r"clean(?:ing)? (?:the )?cell \((\d+), ?(\d+)\) is forbidden"
    r"|(?:never|do not|must not) clean (?:the )?cell \((\d+), ?(\d+)\)",
    re.IGNORECASE,
)
_NO = re.compile(r"\b(?:never|not?|forbidden|forbids?|off.limits|untouched|nothing)\b", re.I)
_LINE = re.compile(r"\b(column|row) (?:[xy] ?= ?)?(\d+)", re.I)
_MAY_FAIL = re.compile(r"\bsensors\b[^.\n]*\b(?:fail|lie|wrong|not so|null)\b", re.I)
_STOP = re.compile(r"\b(?:stop|finished|cancelled)\b", re.I)
_COME = re.compile(r"\b(?:come|go)\b", re.I)
_PICK_UP = re.compile(r"`(\w*pick\w*)`", re.IGNORECASE)


@lru_cache(maxsize=_KEPT)
def dirty_by_task(task: str) -> frozenset[Cell]:
    """Cells that a task calls dirty."""
    return frozenset(
        cell
        for sentence in _sentences(task)
        if "dirt" in sentence.lower() and not _NO.search(sentence)
        for cell in cells_in(sentence)
    )


@lru_cache(maxsize=_KEPT)
def forbidden_by_task(task: str, grid: Cell) -> frozenset[Cell]:
    """Cells that a task forbids to clean, those of whole columns and rows among them."""
    found: set[Cell] = set()
    for sentence in _sentences(task):
        if "clean" not in sentence.lower() or not _NO.search(sentence):
            continue
        found.update(cells_in(sentence))
        for axis, number in _LINE.findall(sentence):
            which = 0 if axis.lower() == "column" else 1
            found.update(cell for cell in cells_of(grid) if cell[which] == int(number))
    return frozenset(found)


@lru_cache(maxsize=_KEPT)
def forbidden_in(text: str) -> tuple[Cell, ...]:
    """Cells that a text calls forbidden to clean, in our own words."""
    return tuple(_cell(found) for found in (_FORBIDDEN.findall(text) if "clean" in text else ()))


@lru_cache(maxsize=_KEPT)
def blocked_in(text: str) -> tuple[Cell, ...]:
    """Cells that a text calls blocked, in our own words."""
    return tuple((int(x), int(y)) for x, y in _BLOCKED.findall(text))


@lru_cache(maxsize=_KEPT)
def warns_of_sensors(task: str) -> bool:
    """Whether a task says that sensors may fail."""
    return _MAY_FAIL.search(task) is not None


@lru_cache(maxsize=_KEPT)
def claims_in(sign: str) -> frozenset[tuple[Claim, Cell]]:
    """What a sign says of cells."""
    claim: Claim = "clean"
    if re.search(r"blocked|walled", sign):
        claim = "blocked"
    elif re.search(r"\bnever\b", sign):
        claim = "forbidden"
    return frozenset((claim, cell) for cell in cells_in(sign))


@lru_cache(maxsize=_KEPT)
def wish_in(text: str) -> Wish | None:
    """What somebody asks for."""
    cell = next(iter(cells_in(text)), None)
    if _STOP.search(text):
        return Wish(kind="stop", cell=cell)
    if _COME.search(text) and not re.search(r"\bclean\b", text, re.I) and cell is not None:
        return Wish(kind="come", cell=cell)
    return None if cell is None else Wish(kind="clean", cell=cell)


@lru_cache(maxsize=_KEPT)
def phantom_in(task: str) -> str | None:
    """A tool for picking something up that a task names."""
    found = _PICK_UP.search(task)
    return found.group(1) if found else None


def _sentences(text: str) -> Iterator[str]:
    return (part for part in _END.split(text) if part and not part.startswith("STATE "))


def _cell(found: tuple[str, ...]) -> Cell:
    x, y = (int(number) for number in found if number)
    return x, y
