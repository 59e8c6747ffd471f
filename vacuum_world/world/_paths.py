"""Ways through the grid, by breadth-first search."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from ._values import DIRECTIONS, Cell, inside, neighbour


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
