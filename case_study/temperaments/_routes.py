"""Ways through what is known of the grid; remembered, for every phase asks the same."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise, permutations

from vacuum_world.world import (
    DIRECTIONS,
    Cell,
    Direction,
    distance,
    distances_from,
    neighbour,
)

_MOST_PLANNED = 6
"""Cells up to which every order of visiting them is weighed."""
_FAR = 1_000
_KEPT = 4_096


@lru_cache(maxsize=_KEPT)
def ways(start: Cell, grid: Cell, blocked: frozenset[Cell]) -> Mapping[Cell, int]:
    """Steps from a cell to every cell that can be reached without entering blocked ones."""
    return distances_from(start, grid, blocked)


def steps_to(start: Cell, goal: Cell, grid: Cell, blocked: frozenset[Cell]) -> int | None:
    """Steps between two cells, which themselves count as open; None where there is no way."""
    return ways(goal, grid, blocked - {start, goal}).get(start)


def first_steps(
    start: Cell, goal: Cell, grid: Cell, blocked: frozenset[Cell]
) -> tuple[Direction, ...]:
    """The first steps of the shortest ways; none where there is no way, or nothing to walk."""
    away = ways(goal, grid, blocked - {start, goal})
    left = away.get(start)
    if not left:
        return ()
    return tuple(way for way in DIRECTIONS if away.get(neighbour(start, way)) == left - 1)


@lru_cache(maxsize=_KEPT)
def best_round(
    here: Cell, work: frozenset[Cell], home: Cell, grid: Cell, blocked: frozenset[Cell]
) -> tuple[Cell, ...]:
    """The nearest cells of some work in the order of the shortest round.

    Of equally short ones it is the round that ends nearest to home.
    """
    nearest = sorted(sorted(work), key=lambda cell: (distance(here, cell), cell))[:_MOST_PLANNED]
    away = {cell: ways(cell, grid, blocked - {cell}) for cell in (here, *nearest)}
    steps = {a: {b: away[a].get(b, _FAR) for b in (*nearest, home)} for a in away}

    def length(order: tuple[Cell, ...]) -> tuple[int, int]:
        return (
            sum(steps[a][b] for a, b in pairwise((here, *order))),
            steps[order[-1]][home] if order else 0,
        )

    return min(permutations(nearest), key=length)
