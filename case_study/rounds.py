"""Rounds of cleaning, by one search: what the charge allows, those of the fewest actions first."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Literal

from vacuum_world.world import (
    CLEAN_COST,
    DIRECTIONS,
    FULL_BATTERY,
    MOVE_COST,
    Cell,
    Direction,
    distance,
    distances_from,
    neighbour,
)


@lru_cache(maxsize=20_000)
def ways(start: Cell, grid: Cell, blocked: frozenset[Cell]) -> Mapping[Cell, int]:
    """Steps from a cell to every cell that can be reached without entering blocked ones."""
    return distances_from(start, grid, blocked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What is known of the place, and how careful to be in it."""

    grid: Cell
    charger: Cell
    blocked: frozenset[Cell] = frozenset()
    reserve: int = 0
    """Charge to keep beside the way to the charger, where obstacles may come into the way."""
    keeps: Literal["way", "distance", "nothing"] = "way"
    """The charge that is to be left after each cleaning: for the way to the charger, for the
    distance to it, whatever is in between, or none but what keeps the robot from being stranded."""
    full: int = FULL_BATTERY
    """The charge with which the robot leaves the charger."""

    def first_step(self, start: Cell, goal: Cell) -> Direction | None:
        """The first move of a shortest way; None where there is none."""
        away = self.steps_to(goal, start)
        left = away.get(start)
        if not left:
            return None
        return next(way for way in DIRECTIONS if away.get(neighbour(start, way)) == left - 1)

    def steps_to(self, goal: Cell, start: Cell | None = None) -> Mapping[Cell, int]:
        """Steps to a cell from all others; it and the start count as open."""
        return ways(goal, self.grid, self.blocked - {start or goal, goal})

    def home(self, cell: Cell) -> int | None:
        """The charge to be left in a cell; None where the charger cannot be reached."""
        if self.keeps == "way":
            steps = self.steps_to(self.charger).get(cell)
            return None if steps is None else max(steps * MOVE_COST + self.reserve, 1)
        return max(1, distance(cell, self.charger) * MOVE_COST if self.keeps == "distance" else 0)


def rounds(
    ground: Ground, start: Cell, battery: int, work: Collection[Cell]
) -> Iterator[tuple[int, tuple[Cell, ...], Cell | None]]:
    """The rounds that clean some of the work: their actions, what they leave, where they go first.

    The charger may be called at in between; the robot is never stranded on a round.
    """
    numbers = count()
    queue: list[tuple[int, int, Cell, tuple[Cell, ...], int, Cell | None]] = []
    heapq.heappush(queue, (0, next(numbers), start, tuple(sorted(set(work))), battery, None))
    most: dict[tuple[Cell, tuple[Cell, ...]], int] = {}  # charge with which one was there before
    while queue:
        actions, _, here, left, charge, first = heapq.heappop(queue)
        if charge <= most.get((here, left), -1):
            continue
        most[here, left] = charge
        yield actions, left, first
        for goal, taken, after in _legs(ground, here, charge, left):
            rest = tuple(cell for cell in left if cell != goal)
            entry = (goal, rest, after, goal if first is None else first)
            heapq.heappush(queue, (actions + taken, next(numbers), *entry))


def _legs(
    ground: Ground, here: Cell, charge: int, left: Sequence[Cell]
) -> Iterator[tuple[Cell, int, int]]:
    """Where a round may go next: the place, the actions it takes, and the charge left there."""
    away = ground.steps_to(here)
    to_charger = away.get(ground.charger)
    if to_charger and charge >= to_charger * MOVE_COST:
        yield ground.charger, to_charger, ground.full
    for goal in left:
        moves, home = away.get(goal), ground.home(goal)
        if moves is None or home is None:
            continue
        after = charge - moves * MOVE_COST - CLEAN_COST
        if goal == ground.charger:
            if charge >= moves * MOVE_COST:
                yield goal, moves + 1, ground.full
        elif after >= home:
            yield goal, moves + 1, after


def best_round(ground: Ground, start: Cell, battery: int, work: Sequence[Cell]) -> Cell | None:
    """Where the round goes first that cleans the most cells in the fewest actions.

    None where nothing can be cleaned.
    """
    fewest, best = len(work), None
    for _, left, first in rounds(ground, start, battery, work):
        if len(left) < fewest:
            fewest, best = len(left), first
            if not left:
                break
    return best


@lru_cache(maxsize=20_000)
def actions_left(ground: Ground, here: Cell, battery: int, work: frozenset[Cell]) -> int | None:
    """Moves and cleanings until no work is left; None where that cannot be done."""
    found = rounds(ground, here, battery, work)
    return next((actions for actions, left, _ in found if not left), None)
