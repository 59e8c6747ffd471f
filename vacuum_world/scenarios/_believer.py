"""A robot that takes every reading for the truth: whom failing sensors and delays mislead."""

from __future__ import annotations

from vacuum_world.world import (
    DIRECTIONS,
    Cell,
    WorldState,
    clean,
    distances_from,
    inside,
    join,
    move,
    neighbour,
    sense,
)

_FAR = 10_000


class Believer:
    """Knows its task, and believes its sensors.

    It cleans what it takes to be dirty, nearest first; it takes silence for "no"; it stops when
    nothing is left to its knowledge, or no way leads there.

    Args:
        world: The world before it joins.
        dirty: The cells of its task.
    """

    def __init__(self, world: WorldState, dirty: tuple[Cell, ...]) -> None:
        joined = join(world, "believer")
        self.world = joined.state
        """The world now."""
        self._robot = joined.result.id
        self._dirty = set(dirty)
        self._felt = set[Cell]()

    def play(self, most: int) -> WorldState:
        """The world after as many actions as it takes, `most` at most."""
        for _ in range(most):
            here = self._look()
            if here in self._dirty:
                self.world = clean(self.world, self._robot).state
            elif not self._go(here):
                break
        return self.world

    def _look(self) -> Cell:
        reading = sense(self.world, self._robot)
        here = reading.position
        self._felt.discard(here)
        _sort(here, reading.dirty.here, self._dirty)
        for direction in DIRECTIONS:
            cell = neighbour(here, direction)
            if inside(cell, reading.grid):
                _sort(cell, getattr(reading.dirty, direction), self._dirty)
                _sort(cell, getattr(reading.blocked, direction), self._felt)
        return here

    def _go(self, here: Cell) -> bool:
        """One step towards the nearest goal; False where there is none."""
        grid = self.world.grid
        ways = distances_from(here, grid, self._felt)
        goals = sorted(cell for cell in self._dirty if cell in ways)
        if not goals:
            return False
        left = distances_from(min(goals, key=lambda cell: ways[cell]), grid, self._felt)
        best = min(DIRECTIONS, key=lambda word: left.get(neighbour(here, word), _FAR))
        line = move(self.world, self._robot, best)
        self.world = line.state
        if line.result.bumped_into is not None:
            self._felt.add(line.result.bumped_into)
        return True


def _sort(cell: Cell, told: bool | None, cells: set[Cell]) -> None:
    (cells.add if told else cells.discard)(cell)
