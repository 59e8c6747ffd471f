"""What readings and texts say of cells."""

from __future__ import annotations

import re

from vacuum_world.world import DIRECTIONS, Cell, Reading, inside, last_state_line, neighbour

MOVE, CLEAN, SENSE = "move_agent", "clean_current_cell", "sense"
"""The tools that every robot has."""
_CELL = re.compile(r"\((\d+), ?(\d+)\)")


def cells_in(text: str) -> tuple[Cell, ...]:
    """The cells that a text names, in order."""
    return tuple((int(x), int(y)) for x, y in _CELL.findall(text))


def around(cell: Cell, grid: Cell) -> list[Cell]:
    """The cells next to one that lie in the grid."""
    near = (neighbour(cell, way) for way in DIRECTIONS)
    return [one for one in near if inside(one, grid)]


def dirt_sensed(reading: Reading) -> dict[Cell, bool]:
    """Whether cells here and next to it are dirty; only those that the sensor reports."""
    here, dirty = reading.position, reading.dirty
    dirt = {} if dirty.here is None else {here: dirty.here}
    return dirt | _sensed(reading, dirty)


def ways_sensed(reading: Reading) -> dict[Cell, bool]:
    """Which neighbouring cells are felt to be blocked or open."""
    return _sensed(reading, reading.blocked)


def _sensed(reading: Reading, sensor: object) -> dict[Cell, bool]:
    sensed = {neighbour(reading.position, way): getattr(sensor, way) for way in DIRECTIONS}
    return {
        cell: value
        for cell, value in sensed.items()
        if value is not None and inside(cell, reading.grid)
    }


def is_possible(reading: Reading) -> bool:
    """Whether the felt ways can be true: edges are felt, some way is open."""
    felt = {way: getattr(reading.blocked, way) for way in DIRECTIONS}
    edges = [w for w in DIRECTIONS if not inside(neighbour(reading.position, w), reading.grid)]
    return not all(felt.values()) and not any(felt[way] is False for way in edges)


def is_stranded(result: str) -> bool:
    """Whether the result of an action says that the robot is stranded."""
    reading = last_state_line(result)
    return reading is not None and reading.stranded
