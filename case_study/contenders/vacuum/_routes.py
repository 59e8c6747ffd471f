"""Ways through the grid, and rounds of cleaning that the charge allows."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from vacuum_world.world import (
    CLEAN_COST,
    DIRECTIONS,
    FULL_BATTERY,
    MOVE_COST,
    Cell,
    Direction,
    distances_from,
    neighbour,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What is known of the place, and how careful to be in it."""

    grid: Cell
    """Width and height."""
    charger: Cell
    """The charger's cell."""
    blocked: frozenset[Cell] = frozenset()
    """Cells that cannot be entered."""
    reserve: int = 0
    """Charge to keep beside the way to the charger, where obstacles may come into the way."""

    def steps(self, start: Cell, goal: Cell) -> int | None:
        """Moves from cell to cell; None where there is no way."""
        return distances_from(start, self.grid, self.blocked - {start, goal}).get(goal)

    def first_step(self, start: Cell, goal: Cell) -> Direction | None:
        """The first move of a shortest way; None where there is none."""
        away = distances_from(goal, self.grid, self.blocked - {start, goal})
        left = away.get(start)
        if not left:
            return None
        for way in DIRECTIONS:
            if away.get(neighbour(start, way)) == left - 1:
                return way
        return None


@dataclass(frozen=True, slots=True)
class _Stop:
    """A place on a round."""

    cleaned: int
    """How many cells are clean by then."""
    first: Cell | None
    """Where the round goes first; None at its beginning."""


def best_round(ground: Ground, start: Cell, battery: int, work: Sequence[Cell]) -> Cell | None:
    """Where the round goes first that cleans the most cells in the fewest actions.

    The charger may be called at in between; the robot is never stranded on it, and can always
    reach the charger from where the round ends. None where nothing can be cleaned.

    Args:
        ground: The place.
        start: Where the robot is.
        battery: Its charge.
        work: The cells to clean.
    """
    places = (start, ground.charger, *work)
    steps = {a: distances_from(a, ground.grid, ground.blocked - {a}) for a in places}
    home = {cell: steps[ground.charger].get(cell) for cell in places}
    everything = frozenset(work)
    best = _Stop(0, None)
    queue: list[tuple[int, int, Cell, tuple[Cell, ...], int, Cell | None]] = []
    heapq.heappush(queue, (0, 0, start, tuple(sorted(everything)), battery, None))
    seen: set[tuple[Cell, tuple[Cell, ...], int]] = set()
    number = 0
    while queue:
        actions, _, here, left, charge, first = heapq.heappop(queue)
        if (here, left, charge) in seen:
            continue
        seen.add((here, left, charge))
        if len(work) - len(left) > best.cleaned:
            best = _Stop(len(work) - len(left), first)
            if not left:
                break
        for goal, cost, after in _legs(here, left, charge, ground, steps[here], home):
            number += 1
            rest = tuple(cell for cell in left if cell != goal)
            entry = (actions + cost, number, goal, rest, after, goal if first is None else first)
            heapq.heappush(queue, entry)
    return best.first


def _legs(
    here: Cell,
    left: Collection[Cell],
    charge: int,
    ground: Ground,
    away: dict[Cell, int],
    home: dict[Cell, int | None],
) -> Iterator[tuple[Cell, int, int]]:
    """Where a round may go next: the place, the actions it takes, and the charge left there."""
    to_charger = away.get(ground.charger)
    if to_charger and charge >= to_charger * MOVE_COST:
        yield ground.charger, to_charger, FULL_BATTERY
    for goal in left:
        moves, back = away.get(goal), home[goal]
        if moves is None or back is None:
            continue
        after = charge - moves * MOVE_COST - CLEAN_COST
        if goal == ground.charger:
            if charge >= moves * MOVE_COST:
                yield goal, moves + 1, FULL_BATTERY
        elif after >= max(back * MOVE_COST + ground.reserve, 1):
            yield goal, moves + 1, after
