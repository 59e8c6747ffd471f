"""What all scenarios build on: a still 5x5 world with its things in place."""

from __future__ import annotations

from collections.abc import Collection

from vacuum_world.world import (
    STILL,
    Cell,
    Obstacle,
    Spawn,
    Trigger,
    WorldState,
    cells_of,
    distance,
    seeded_streams,
)

GRID: Cell = (5, 5)
CHARGER: Cell = (0, 0)
CELLS = cells_of(GRID)


def staged(
    seed: int,
    spawn: Spawn,
    dirty: Collection[Cell],
    obstacles: Collection[Obstacle],
    triggers: tuple[Trigger, ...] = (),
) -> WorldState:
    """A world without dynamics in which time passes with every action."""
    return WorldState(
        seed=seed,
        grid=GRID,
        charger=CHARGER,
        dynamics=STILL,
        dirty=tuple(sorted(dirty)),
        obstacles=tuple(obstacles),
        spawn=spawn,
        streams=seeded_streams(seed),
        triggers=triggers,
    )


def around(centre: Cell, radius: int) -> list[Cell]:
    """Cells other than `centre` and the charger, at most `radius` steps from it."""
    near = (cell for cell in CELLS if 0 < distance(cell, centre) <= radius)
    return [cell for cell in near if cell != CHARGER]
