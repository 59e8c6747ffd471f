"""The fewest actions for a piece of work, the battery minded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vacuum_world.world import (
    CLEAN_COST,
    DIRECTIONS,
    FULL_BATTERY,
    MOVE_COST,
    Cell,
    inside,
    neighbour,
)

_Node = tuple[Cell, frozenset[Cell], int]
"""Where the robot is, what is left to clean, and the charge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is to be done, and where."""

    start: Cell
    """Where the robot begins."""
    battery: int
    """Its charge."""
    cells: tuple[Cell, ...]
    """What is to be cleaned."""
    charger: Cell
    """The charger's cell."""
    grid: Cell
    """Width and height."""
    blocked: frozenset[Cell]
    """Where obstacles stand."""


def fewest_actions(work: Work, most: int = 30) -> int | None:
    """Moves and cleanings until all is clean and the robot not stranded; None beyond `most`."""
    layer: set[_Node] = {(work.start, frozenset(work.cells), work.battery)}
    seen = set(layer)
    for actions in range(most + 1):
        if any(not left for _, left, _ in layer):
            return actions
        layer = {after for node in layer for after in _steps(work, node)} - seen
        seen |= layer
    return None


def _steps(work: Work, node: _Node) -> Iterator[_Node]:
    here, left, battery = node
    if here in left and battery > CLEAN_COST:
        yield here, left - {here}, battery - CLEAN_COST
    for direction in DIRECTIONS if battery >= MOVE_COST else ():
        there = neighbour(here, direction)
        if not inside(there, work.grid) or there in work.blocked:
            continue
        if there == work.charger:
            yield there, left, FULL_BATTERY
        elif battery > MOVE_COST:
            yield there, left, battery - MOVE_COST
