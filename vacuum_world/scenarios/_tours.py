"""The cheapest way to clean a few cells."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise, permutations

from vacuum_world.world import CLEAN_COST, MOVE_COST, Cell, distances_from


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
