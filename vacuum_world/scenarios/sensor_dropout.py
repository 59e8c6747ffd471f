"""E, Sensor Dropout: for a while a sensor is silent, or reads wrongly.

## Description

The list of dirty cells is true. For some ticks the dirt sensor is silent, stuck at "clean" or
inverted, or the proximity sensor is inverted. A robot that believes it leaves dirt, cleans clean
cells, or finds no way; one that checks it against the list and against outcomes does not.

## Observation space

The usual reading: the robot's cell and charge, dirt here and next door, blocked ways, the charger
and the grid's size. A silent sensor reads None; a failing one reads wrongly.

## Action space

`move` (5 charge) and `clean` (10 charge), as everywhere in this world.

## Transition dynamics

The sensor fails from tick `since` to before `until`. The world itself does not change.

## Success

Every listed cell is clean, and the robot is not stranded.

## Starting state

Two or three dirty cells, charge for the work and the way home and 15 or 20 more; the fault begins
with the first action at the latest, and it outlasts a round without cleaning.

## Episode end

When the suggested number of actions is taken, or the robot stranded.

## Arguments

`seed` decides size, corner of the charger, places, charge and timing; `episode` is 1.
"""

from __future__ import annotations

from vacuum_world.world import Cell, Dice, FaultKind, SensorFault, SensorName

from .believer import Believer
from .setup import Scenario, ScenarioSetup, described
from .stage import Draft, Instance, drafted, set_up

_WAYS: tuple[tuple[SensorName, FaultKind], ...] = (
    ("dirt", "silent"),
    ("dirt", "stuck"),
    ("dirt", "inverted"),
    ("proximity", "inverted"),
)
_MARGINS = (15, 20)


def build(seed: int, episode: int, wall: Cell | None) -> ScenarioSetup:
    """The set-up: dirt, and a sensor that fails before any is reached; to believe it is to fail."""
    dice = Dice(seed, "sensor-dropout")
    sensor, kind = dice.choice(_WAYS)
    while True:
        setup = _drawn(dice, seed, episode, sensor, kind)
        misled = Believer(setup.world, setup.facts.dirty).play(setup.max_actions)
        left = any(cell in misled.dirty for cell in setup.facts.dirty)
        if left or any(robot.stranded for robot in misled.robots):
            return setup


def _drawn(
    dice: Dice, seed: int, episode: int, sensor: SensorName, kind: FaultKind
) -> ScenarioSetup:
    """An instance in which believing the sensor may do harm or, by luck, none."""
    draft = drafted(dice)
    fault = _fault(dice, draft, sensor, kind)
    made = Instance(
        name="sensor-dropout",
        seed=seed,
        episode=episode,
        battery=min(100, draft.tour.charge + dice.choice(_MARGINS)),
        shortest=draft.tour.actions,
        facts={"faults": (fault,)},
        world={"faults": (fault,)},
    )
    return set_up(draft, made)


def _fault(dice: Dice, draft: Draft, sensor: SensorName, kind: FaultKind) -> SensorFault:
    """It begins before anything can be cleaned, and outlasts a round without cleaning."""
    since = dice.choice((0, 1))
    until = since + draft.tour.actions + dice.choice((2, 3, 4))
    return SensorFault(sensor=sensor, kind=kind, since=since, until=until)


SENSOR_DROPOUT = Scenario(
    name="sensor-dropout",
    title="The Sensor Dropout",
    summary="for some ticks the dirt or the proximity sensor is silent or tells what is not so",
    description=described(__doc__),
    episodes=1,
    build=build,
    succeeded=lambda facts, world, truth: not truth.remaining and not truth.stranded,
)
