"""The scenarios by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from vacuum_world.errors import UnknownScenarioError
from vacuum_world.world import Cell, WorldState

from .believer import Believer
from .contradiction import CONTRADICTION
from .delayed_effect import DELAYED_EFFECT
from .distraction import DISTRACTION
from .energy_dilemma import ENERGY_DILEMMA
from .evolution import EVOLUTION
from .false_manual import FALSE_MANUAL
from .open_world import EASY, HARD, MEDIUM
from .phantom_object import PHANTOM
from .poisoned_memory import POISONED_MEMORY
from .sensor_dropout import SENSOR_DROPOUT
from .setup import Scenario, ScenarioName, ScenarioSetup, ScenarioTruth
from .sudden_wall import SUDDEN_WALL
from .truth import count

_PAPER = (SUDDEN_WALL, ENERGY_DILEMMA, PHANTOM, EVOLUTION)
_MORE = (
    SENSOR_DROPOUT,
    FALSE_MANUAL,
    DISTRACTION,
    POISONED_MEMORY,
    CONTRADICTION,
    DELAYED_EFFECT,
)
_OPEN_WORLD = (EASY, MEDIUM, HARD)

SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {scenario.name: scenario for scenario in (*_PAPER, *_MORE, *_OPEN_WORLD)}
)
"""Every scenario, in the order A to J and open world."""

PAPER: tuple[ScenarioName, ...] = tuple(scenario.name for scenario in _PAPER)
"""The paper's four, A to D."""

ADVERSARIAL: tuple[ScenarioName, ...] = tuple(scenario.name for scenario in (*_PAPER, *_MORE))
"""Those with a trap, A to J."""

OPEN_WORLD: tuple[ScenarioName, ...] = tuple(scenario.name for scenario in _OPEN_WORLD)
"""The open world, from easy to hard."""


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
            is there from the start).
        wall: For episode 2 of `sudden-wall`, where the wall stood at the end of episode 1
            (`ScenarioTruth.wall`); None puts it on the first step of the straight way.

    Raises:
        UnknownScenarioError: There is no such scenario.
        ValueError: `episode` is below 1, or no wall can stand on `wall`.
    """
    if episode < 1:
        raise ValueError(f"episodes are counted from 1, got {episode!r}")
    return _built(scenario_named(name), seed, episode, wall)


@lru_cache(maxsize=256)
def _built(scenario: Scenario, seed: int, episode: int, wall: Cell | None) -> ScenarioSetup:
    return scenario.build(seed, episode, wall)


def believed(setup: ScenarioSetup) -> WorldState:
    """The world after a robot that takes every reading for the truth has done its work in it."""
    return Believer(setup.world, setup.facts.dirty).play(setup.max_actions)


def measure(setup: ScenarioSetup, world: WorldState) -> ScenarioTruth:
    """The ground truth of a world that was set up so, whatever an agent says of it."""
    truth = count(setup.facts, world)
    success = SCENARIOS[setup.name].succeeded(setup.facts, world, truth)
    return truth.model_copy(update={"success": success})
