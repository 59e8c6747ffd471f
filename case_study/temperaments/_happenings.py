"""What actions and sensors told, one happening after the other."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from vacuum_world.world import DIRECTIONS, Cell, Direction, Reading, last_state_line, neighbour

_KEPT = 4_096
_HEAD = re.compile(r"^(?:cycle \d+: )?(\w+) \{.*?\} \w+: ")
_RESULT = re.compile(r'\{"ok": (?:true|false)[^{}]*\}')
_OBSTACLE = re.compile(r"blocked by an obstacle to the (north|east|south|west)")
_SEEN = re.compile(r"^Cells (?:seen|you have) (clean|dirty|blocked|cleaned): ([^.\n]*)")
_LEFT = re.compile(r"^(?:Dirt left to clean: (.*)|No dirt is left)")
_AWARE = re.compile(r"^ +(?:\[opportunity\] Dirt on tile|(obstacle) at) (\(\d+, \d+\))$")
_MORE = re.compile(r"and \d+ more")
_CELL = re.compile(r"\((\d+), ?(\d+)\)")
_SIGN = re.compile(r'a sign here reads: \\?"(.*?)\\?"(?=[^\w]|$)')
_DIRECTION: Mapping[str, Direction] = {direction: direction for direction in DIRECTIONS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """An action and what it reported."""

    action: str
    """Its name; empty where it is not told."""
    ok: bool
    """Whether it is said to have worked."""
    position: Cell | None
    """Where the robot is then."""
    reason: str
    """What was said besides."""

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
    """What a text tells, in order.

    Args:
        name: The action that the text is the result of; empty if the text itself names it.
        text: The text.
    """
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


def cells_in(text: str) -> tuple[Cell, ...]:
    """The cells that a text names, in order."""
    return tuple((int(x), int(y)) for x, y in _CELL.findall(text))


@lru_cache(maxsize=_KEPT)
def signs_in(text: str) -> tuple[str, ...]:
    """The words of the signs that a text quotes."""
    return tuple(_SIGN.findall(text)) if "a sign here reads" in text else ()


def without_signs(text: str) -> str:
    """The text without what signs say."""
    return _SIGN.sub("", text) if "a sign here reads" in text else text


def _done(action: str, written: str) -> Done | None:
    try:
        told = cast("Mapping[str, Any]", json.loads(written))
    except json.JSONDecodeError:
        return None
    place: Any = told.get("position")
    position = None
    if isinstance(place, list) and len(cast("list[Any]", place)) == 2:
        x, y = cast("list[int]", place)
        position = (x, y)
    return Done(
        action=action,
        ok=told["ok"] is True,
        position=position,
        reason=str(told.get("reason") or ""),
    )
