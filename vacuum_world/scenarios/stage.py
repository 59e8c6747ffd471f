"""What scenarios build on: a still world of a seed's size, with its things in place."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vacuum_world.world import (
    CLEAN_COST,
    MOVE_COST,
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

from .believer import Tour, Work, shortest_tour
from .setup import ScenarioFacts, ScenarioName, ScenarioSetup, suggested_bound

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


# ---- Drafts of instances: some dirt that can be cleaned in one go, and what to make of it ----


_LONGEST = 10
_MOST_CHARGE = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A robot's place and its work."""

    stage: Stage
    """Where it is played."""
    start: Cell
    """Where the robot begins; it is not dirty."""
    dirty: tuple[Cell, ...]
    """What is to be cleaned, sorted."""
    obstacles: tuple[Cell, ...]
    """Where visible obstacles are."""
    tour: Tour
    """The shortest way to clean all of it."""

    @property
    def work_charge(self) -> int:
        """What the work takes, without the way to the charger."""
        cleans = len(self.dirty)
        return (self.tour.actions - cleans) * MOVE_COST + cleans * CLEAN_COST

    def work(self, battery: int) -> Work:
        """The work with so much charge at the beginning."""
        return Work(
            start=self.start,
            battery=battery,
            cells=self.dirty,
            charger=self.stage.charger,
            grid=self.stage.grid,
            blocked=frozenset(self.obstacles),
        )


def drafted(dice: Dice, *, dirt: Sequence[int] = (2, 3), radius: int = 3) -> Draft:
    """Some dirty cells near a start, and up to two obstacles, cleaned by 10 actions at most.

    Args:
        dice: What it is drawn by.
        dirt: How many dirty cells there may be.
        radius: Their distance from the start at most.
    """
    while True:
        stage = stage_of(dice)
        start = dice.choice(stage.floor)
        near = stage.around(start, radius)
        dirty = dice.sample(near, min(len(near), dice.choice(dirt)))
        obstacles = dice.sample(stage.without(start, *dirty), dice.choice((0, 1, 2)))
        tour = shortest_tour(start, dirty, stage.charger, stage.grid, obstacles)
        if tour and tour.actions <= _LONGEST and tour.charge <= _MOST_CHARGE:
            return Draft(
                stage=stage,
                start=start,
                dirty=tuple(sorted(dirty)),
                obstacles=obstacles,
                tour=tour,
            )


def _nothing() -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """What a scenario makes of a draft."""

    name: ScenarioName
    """The scenario."""
    seed: int
    """What it is varied by."""
    episode: int
    """Which episode."""
    battery: int
    """The charge at the beginning."""
    shortest: int
    """The fewest actions to success."""
    facts: Mapping[str, Any] = field(default_factory=_nothing)
    """Facts of this scenario."""
    world: Mapping[str, Any] = field(default_factory=_nothing)
    """Fields of the world that this scenario needs."""
    also_dirty: tuple[Cell, ...] = ()
    """Dirt that is none of the task's."""


def set_up(draft: Draft, made: Instance) -> ScenarioSetup:
    """The instance as a set-up."""
    spawn = Spawn(position=draft.start, battery=made.battery)
    dirty = (*draft.dirty, *made.also_dirty)
    return ScenarioSetup(
        name=made.name,
        seed=made.seed,
        episode=made.episode,
        world=draft.stage.world(made.seed, spawn, dirty, draft.obstacles, **made.world),
        facts=ScenarioFacts(
            start=draft.start,
            battery=made.battery,
            dirty=draft.dirty,
            charger=draft.stage.charger,
            grid=draft.stage.grid,
            **made.facts,
        ),
        shortest=made.shortest,
        max_actions=suggested_bound(made.shortest),
    )
