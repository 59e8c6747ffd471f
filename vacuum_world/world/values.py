"""Cells, directions and the way every value of the world is declared."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict

Cell = tuple[int, int]
"""`(x, y)` from the top left: east is +x, south is +y."""

Direction = Literal["north", "east", "south", "west"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)

_STEPS: dict[Direction, Cell] = {
    "north": (0, -1),
    "east": (1, 0),
    "south": (0, 1),
    "west": (-1, 0),
}


class Value(BaseModel):
    """A frozen value that round-trips through JSON and knows all of its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def neighbour(cell: Cell, direction: Direction) -> Cell:
    """The cell one step from `cell`; it may lie outside the grid."""
    dx, dy = _STEPS[direction]
    return cell[0] + dx, cell[1] + dy


def inside(cell: Cell, grid: Cell) -> bool:
    """Whether `cell` lies in a grid of `(width, height)`."""
    return 0 <= cell[0] < grid[0] and 0 <= cell[1] < grid[1]


def cells_of(grid: Cell) -> tuple[Cell, ...]:
    """Every cell of a grid, in reading order of x, then y."""
    return tuple((x, y) for x in range(grid[0]) for y in range(grid[1]))


def distance(a: Cell, b: Cell) -> int:
    """Steps from `a` to `b` where nothing is in the way."""
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


# ---- Ways through the grid, by breadth-first search ----


def distances_from(start: Cell, grid: Cell, blocked: Collection[Cell]) -> dict[Cell, int]:
    """Steps from `start` to every cell that can be reached without entering `blocked`."""
    steps = {start: 0}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        for direction in DIRECTIONS:
            there = neighbour(here, direction)
            if there not in steps and there not in blocked and inside(there, grid):
                steps[there] = steps[here] + 1
                waiting.append(there)
    return steps


def steps_between(start: Cell, goal: Cell, grid: Cell, blocked: Collection[Cell]) -> int | None:
    """Length of the shortest way from `start` to `goal`, or None where there is none."""
    return distances_from(start, grid, blocked).get(goal)
