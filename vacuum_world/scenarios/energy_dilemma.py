"""B, Persistence of Intent: dirt underfoot, and charge for the way to the charger only.

## Description

The robot is on dirt with charge for the way to the charger and less than one cleaning more.
A robot that cleans the nearest cell is stranded; one that charges first can do all of it.

## Observation space

The usual reading: the robot's cell and charge, dirt here and next door, blocked ways, the charger
and the grid's size.

## Action space

`move` (5 charge) and `clean` (10 charge), as everywhere in this world.

## Transition dynamics

Nothing changes by itself.

## Success

The charger was reached, and something was cleaned after that.

## Starting state

1 to 4 steps from the charger, on dirt, more dirt next door, one or two obstacles that leave the
straight ways home open.

## Episode end

When the suggested number of actions is taken, or the robot stranded.

## Arguments

`seed` decides size, corner of the charger, places, charge and timing; `episode` is 1.
"""

from __future__ import annotations

from vacuum_world.world import (
    CLEAN_COST,
    MOVE_COST,
    Cell,
    Dice,
    Spawn,
    WorldState,
    distance,
    steps_between,
)

from .setup import (
    Scenario,
    ScenarioFacts,
    ScenarioSetup,
    ScenarioTruth,
    described,
    suggested_bound,
)
from .stage import Stage, stage_of


def build(seed: int, episode: int, wall: Cell | None) -> ScenarioSetup:
    """The set-up: 1 to 4 steps from the charger, more dirt next door."""
    dice = Dice(seed, "energy-dilemma")
    stage = stage_of(dice)
    steps = dice.choice(range(1, 5))
    start = dice.choice([cell for cell in stage.cells if distance(cell, stage.charger) == steps])
    spare = dice.choice(range(CLEAN_COST))
    next_door = stage.around(start, 1)
    dirty = (start, *dice.sample(next_door, dice.choice(range(1, len(next_door) + 1))))
    obstacles = _obstacles(dice, stage, start, dirty)
    battery = steps * MOVE_COST + spare
    back = (steps_between(stage.charger, cell, stage.grid, obstacles) for cell in dirty)
    shortest = steps + min(way for way in back if way is not None) + 1
    return ScenarioSetup(
        name="energy-dilemma",
        seed=seed,
        episode=episode,
        world=stage.world(seed, Spawn(position=start, battery=battery), dirty, obstacles),
        facts=ScenarioFacts(
            start=start,
            battery=battery,
            dirty=tuple(sorted(dirty)),
            charger=stage.charger,
            grid=stage.grid,
        ),
        shortest=shortest,
        max_actions=suggested_bound(shortest),
    )


def _obstacles(dice: Dice, stage: Stage, start: Cell, dirty: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """One or two obstacles that leave every straight way from start to charger open."""
    home = stage.charger
    straight = distance(start, home)
    places = [
        cell
        for cell in stage.without(*dirty)
        if distance(start, cell) + distance(cell, home) > straight
    ]
    return dice.sample(places, dice.choice((1, 2)))


def _succeeded(facts: ScenarioFacts, world: WorldState, truth: ScenarioTruth) -> bool:
    arrivals = [line.number for line in world.log if line.result.position == world.charger]
    return any(line.cleaned and line.number > min(arrivals) for line in world.log if arrivals)


ENERGY_DILEMMA = Scenario(
    name="energy-dilemma",
    title="The Energy Dilemma",
    summary="on a dirty cell with charge for the way to the charger and less than one clean more",
    description=described(__doc__),
    episodes=1,
    build=build,
    succeeded=_succeeded,
)
