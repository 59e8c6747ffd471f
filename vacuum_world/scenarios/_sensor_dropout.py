"""E, Sensor Dropout: for a while a sensor is silent, or tells what is not so."""

from __future__ import annotations

from vacuum_world.world import Cell, Dice, FaultKind, SensorFault, SensorName, WorldState

from ._drafts import Draft, Instance, drafted, set_up
from ._setup import Scenario, ScenarioFacts, ScenarioSetup, ScenarioTruth

_WAYS: tuple[tuple[SensorName, FaultKind], ...] = (
    ("dirt", "silent"),
    ("dirt", "stuck"),
    ("dirt", "inverted"),
    ("proximity", "inverted"),
)
_MARGINS = (15, 20)


def build(seed: int, episode: int, wall: Cell | None) -> ScenarioSetup:
    """The set-up: dirt, and a sensor that fails before the first of it is reached."""
    dice = Dice(seed, "sensor-dropout")
    draft = drafted(dice)
    sensor, kind = dice.choice(_WAYS)
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
    """A failing dirt sensor outlasts a round without cleaning; proximity fails for a few ticks."""
    since = dice.choice((0, 1))
    shortest = draft.tour.actions if sensor == "dirt" else 1
    return SensorFault(
        sensor=sensor, kind=kind, since=since, until=since + shortest + dice.choice((2, 3, 4))
    )


def _succeeded(facts: ScenarioFacts, world: WorldState, truth: ScenarioTruth) -> bool:
    return not truth.remaining and not truth.stranded


SENSOR_DROPOUT = Scenario(
    name="sensor-dropout",
    title="The Sensor Dropout",
    summary="for some ticks the dirt or the proximity sensor is silent or tells what is not so",
    episodes=1,
    build=build,
    succeeded=_succeeded,
)
