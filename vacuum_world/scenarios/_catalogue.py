"""The four scenarios by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from vacuum_world.errors import UnknownScenarioError
from vacuum_world.world import Cell, WorldState

from ._energy_dilemma import ENERGY_DILEMMA
from ._evolution import EVOLUTION
from ._phantom_object import PHANTOM
from ._setup import Scenario, ScenarioSetup, ScenarioTruth
from ._sudden_wall import SUDDEN_WALL
from ._truth import count

SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {scenario.name: scenario for scenario in (SUDDEN_WALL, ENERGY_DILEMMA, PHANTOM, EVOLUTION)}
)
"""Every scenario, in the paper's order."""


def scenario_named(name: str) -> Scenario:
    """The scenario of this name.

    Raises:
        UnknownScenarioError: There is none; the message lists those that exist.
    """
    if name not in SCENARIOS:
        raise UnknownScenarioError(name, SCENARIOS)
    return SCENARIOS[name]


def build_scenario(
    name: str, seed: int, *, episode: int = 1, wall: Cell | None = None
) -> ScenarioSetup:
    """The instance of a scenario that a seed gives; the same arguments give the same instance.

    Args:
        name: One of `SCENARIOS`.
        seed: What places, distances and dirt are varied by.
        episode: 1, or 2 for the same place met again (only `sudden-wall` changes: its wall
            stands there from the start).
        wall: For episode 2 of `sudden-wall`, where the wall stood at the end of episode 1
            (`ScenarioTruth.wall`); None puts it on the first step of the straight way.

    Raises:
        UnknownScenarioError: There is no such scenario.
        ValueError: `episode` is below 1, or no wall can stand on `wall`.
    """
    if episode < 1:
        raise ValueError(f"episodes are counted from 1, got {episode!r}")
    return scenario_named(name).build(seed, episode, wall)


def measure(setup: ScenarioSetup, world: WorldState) -> ScenarioTruth:
    """The ground truth of a world that was set up so, whatever an agent says of it."""
    truth = count(setup.facts, world)
    success = SCENARIOS[setup.name].succeeded(setup.facts, world, truth)
    return truth.model_copy(update={"success": success})
