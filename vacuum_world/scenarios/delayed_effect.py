"""J, Delayed Effect: a cleaning shows only some ticks later; begun again, it starts over.

## Description

A cleaning is reported as applied, and the cell stays dirty for 3 to 5 ticks. A robot that cleans
until it shows starts it over each time, and runs out of charge or actions.

## Observation space

The usual reading: the robot's cell and charge, dirt here and next door, blocked ways, the charger
and the grid's size. A cell is sensed as dirty until its cleaning shows.

## Action space

`move` (5 charge) and `clean` (10 charge), as everywhere in this world.

## Transition dynamics

A cleaning shows `delay` ticks after it was begun last. Nothing else changes.

## Success

Every listed cell is clean or its cleaning under way, the robot is not stranded, and no cell was
cleaned needlessly more than once.

## Starting state

Two or three dirty cells, charge for the work, the way home and two needless cleanings.

## Episode end

When the suggested number of actions is taken, or the robot stranded.

## Arguments

`seed` decides size, corner of the charger, places, charge and timing; `episode` is 1.
"""

from __future__ import annotations

from collections import Counter

from vacuum_world.world import Cell, Dice, WorldState

from .setup import Scenario, ScenarioFacts, ScenarioSetup, ScenarioTruth, described
from .stage import Instance, drafted, set_up

_DELAYS = (3, 4, 5)


def build(seed: int, episode: int, wall: Cell | None) -> ScenarioSetup:
    """The set-up: charge for the work, the way to the charger and two needless cleanings."""
    dice = Dice(seed, "delayed-effect")
    draft = drafted(dice)
    delay = dice.choice(_DELAYS)
    made = Instance(
        name="delayed-effect",
        seed=seed,
        episode=episode,
        battery=min(100, draft.tour.charge + 20),
        shortest=draft.tour.actions,
        facts={"delay": delay},
        world={"clean_delay": delay},
    )
    return set_up(draft, made)


def _succeeded(facts: ScenarioFacts, world: WorldState, truth: ScenarioTruth) -> bool:
    needless = Counter(line.position_before for line in world.log if line.needless)
    patient = all(times <= 1 for times in needless.values())
    return not truth.remaining and not truth.stranded and patient


DELAYED_EFFECT = Scenario(
    name="delayed-effect",
    title="The Delayed Effect",
    summary="a cleaning shows 3 to 5 ticks later; cleaning again costs and makes it take longer",
    description=described(__doc__),
    episodes=1,
    build=build,
    succeeded=_succeeded,
)
