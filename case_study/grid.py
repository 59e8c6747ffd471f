"""What readings and texts say of cells."""

from __future__ import annotations

import re

from vacuum_world.world import DIRECTIONS, Cell, Reading, inside, last_state_line, neighbour

_CELL = re.compile(r"\((\d+), ?(\d+)\)")


def cells_in(text: str) -> tuple[Cell, ...]:
    """The cells that a text names, in order."""
    return tuple((int(x), int(y)) for x, y in _CELL.findall(text))


def around(cell: Cell, grid: Cell) -> list[Cell]:
    """The cells next to one that lie in the grid."""
    near = (neighbour(cell, way) for way in DIRECTIONS)
    return [one for one in near if inside(one, grid)]


def dirt_sensed(reading: Reading) -> dict[Cell, bool]:
    """What is told of dirt, underfoot and next door; nothing of what the sensor is silent about."""
    here, dirty = reading.position, reading.dirty
    told = {} if dirty.here is None else {here: dirty.here}
    return told | _sensed(reading, dirty)


def ways_sensed(reading: Reading) -> dict[Cell, bool]:
    """Which cells next door are told to be blocked or open."""
    return _sensed(reading, reading.blocked)


def _sensed(reading: Reading, told: object) -> dict[Cell, bool]:
    found = {neighbour(reading.position, way): getattr(told, way) for way in DIRECTIONS}
    return {
        cell: value
        for cell, value in found.items()
        if value is not None and inside(cell, reading.grid)
    }


def is_possible(reading: Reading) -> bool:
    """Whether a robot can stand where the ways are felt so: edges are felt, some way is open."""
    felt = {way: getattr(reading.blocked, way) for way in DIRECTIONS}
    edges = [w for w in DIRECTIONS if not inside(neighbour(reading.position, w), reading.grid)]
    return not all(felt.values()) and not any(felt[way] is False for way in edges)


def is_stranded(result: str) -> bool:
    """Whether the result of an action tells that the robot is stranded."""
    reading = last_state_line(result)
    return reading is not None and reading.stranded
