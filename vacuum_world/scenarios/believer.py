"""A robot that takes every reading for the truth; failing sensors and delays mislead it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise, permutations

from vacuum_world.world import (
    CLEAN_COST,
    DIRECTIONS,
    FULL_BATTERY,
    MOVE_COST,
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


def _sort(cell: Cell, member: bool | None, cells: set[Cell]) -> None:
    (cells.add if member else cells.discard)(cell)


# ---- The fewest actions for a piece of work, the battery minded ----


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
    """Where obstacles are."""


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


# ---- The cheapest way to clean a few cells ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Tour:
    """A shortest round of cleaning."""

    actions: int
    """Moves and cleanings."""
    charge: int
    """What it costs, the way to the charger afterwards included."""


def shortest_tour(
    start: Cell, cells: Collection[Cell], charger: Cell, grid: Cell, blocked: Collection[Cell]
) -> Tour | None:
    """The tour with the fewest moves, or None where a cell cannot be reached."""
    places = {start, charger, *cells}
    steps = {place: distances_from(place, grid, blocked) for place in places}
    if any(place not in steps[start] for place in places):
        return None

    def moves(order: tuple[Cell, ...]) -> int:
        return sum(steps[a][b] for a, b in pairwise((start, *order)))

    best = min(permutations(cells), key=moves)
    last = best[-1] if best else start
    charge = (moves(best) + steps[last][charger]) * MOVE_COST + len(cells) * CLEAN_COST
    return Tour(actions=moves(best) + len(cells), charge=charge)
