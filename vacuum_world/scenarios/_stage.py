"""What scenarios build on: a still world of a seed's size, with its things in place."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from vacuum_world.world import (
    STILL,
    Cell,
    Dice,
    Obstacle,
    Spawn,
    Trigger,
    WorldState,
    cells_of,
    distance,
    seeded_streams,
)

_SIDES = (4, 5, 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where an instance is played."""

    grid: Cell
    """Width and height, 4 to 6 cells each."""
    charger: Cell
    """The charger, in one of the corners."""

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell."""
        return cells_of(self.grid)

    @property
    def floor(self) -> list[Cell]:
        """Every cell but the charger's."""
        return [cell for cell in self.cells if cell != self.charger]

    def around(self, centre: Cell, radius: int) -> list[Cell]:
        """Cells other than `centre` and the charger, at most `radius` steps from it."""
        return [cell for cell in self.floor if 0 < distance(cell, centre) <= radius]

    def without(self, *taken: Cell) -> list[Cell]:
        """Every cell but the charger's and those that are taken."""
        return [cell for cell in self.floor if cell not in taken]

    def world(
        self,
        seed: int,
        spawn: Spawn,
        dirty: Collection[Cell],
        obstacles: Collection[Cell | Obstacle] = (),
        triggers: tuple[Trigger, ...] = (),
        **more: Any,
    ) -> WorldState:
        """A world without dynamics in which time passes with every action.

        Args:
            seed: The world's seed.
            spawn: Where its robot begins.
            dirty: Dirty cells.
            obstacles: Obstacles; those given as cells are visible.
            triggers: What is armed.
            more: Other fields of the world.
        """
        things = (each if isinstance(each, Obstacle) else Obstacle(cell=each) for each in obstacles)
        return WorldState(
            seed=seed,
            grid=self.grid,
            charger=self.charger,
            dynamics=STILL,
            dirty=tuple(sorted(dirty)),
            obstacles=tuple(things),
            spawn=spawn,
            streams=seeded_streams(seed),
            triggers=triggers,
            **more,
        )


def stage_of(dice: Dice) -> Stage:
    """A grid of 4 to 6 cells each way with the charger in any corner."""
    width, height = dice.choice(_SIDES), dice.choice(_SIDES)
    corner = (dice.choice((0, width - 1)), dice.choice((0, height - 1)))
    return Stage(grid=(width, height), charger=corner)
