"""The open world: 100 actions under dynamics, judged by what the world measures.

## Description

No trap but chance: obstacles move, cleaned cells turn dirty again, cleanings fail. The goal is a
grid that is clean for as much of the time as possible, with little energy.

## Observation space

The usual reading: the robot's cell and charge, dirt here and next door, blocked ways, the charger
and the grid's size.

## Action space

`move` (5 charge) and `clean` (10 charge), as everywhere in this world.

## Transition dynamics

The paper's probabilities, times 0.3 (easy), 0.6 (medium) or 1 (hard), each tick.

## Success

The robot is not stranded, and the score is at least `facts.bar`. The score is the share of the
first dirt that was away on average over 100 ticks, less a fiftieth of the energy taken as a share
of what cleaning at every action would take.

## Starting state

5 by 5, 6 by 6 or 8 by 8 cells, the robot on the charger in one of the corners, dirt on 30 % of
the cells, obstacles on 12 %.

## Episode end

After 100 actions, or when the robot is stranded. A robot that stops early is judged as if it had
waited.

## Arguments

`seed` decides corner, places and chance; `episode` is 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from vacuum_world.world import Cell, Dice, Dynamics, WorldState, create_world

from .setup import Scenario, ScenarioFacts, ScenarioSetup, ScenarioTruth, described

HORIZON = 100
"""Actions of an episode."""

_Level = Literal["open-world-easy", "open-world-medium", "open-world-hard"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Difficulty:
    """How hard a level is."""

    name: _Level
    title: str
    size: int
    """Cells along each side."""
    share: float
    """Of the paper's probabilities."""
    bar: float
    """The score that counts as success."""


def _build(level: _Difficulty) -> Callable[[int, int, Cell | None], ScenarioSetup]:
    def build(seed: int, episode: int, wall: Cell | None) -> ScenarioSetup:
        """The set-up: dirt and obstacles by chance, the robot on the charger."""
        dice = Dice(seed, level.name)
        edge = level.size - 1
        charger = (dice.choice((0, edge)), dice.choice((0, edge)))
        paper = Dynamics()
        dynamics = Dynamics(
            obstacle_mobility=paper.obstacle_mobility * level.share,
            dirt_entropy=paper.dirt_entropy * level.share,
            clean_uncertainty=paper.clean_uncertainty * level.share,
        )
        grid = (level.size, level.size)
        world = create_world(seed, grid=grid, dynamics=dynamics, charger=charger)
        return ScenarioSetup(
            name=level.name,
            seed=seed,
            episode=episode,
            world=world,
            facts=ScenarioFacts(
                start=charger,
                battery=100,
                dirty=world.dirty,
                charger=charger,
                grid=grid,
                horizon=HORIZON,
                bar=level.bar,
            ),
            shortest=1,
            max_actions=HORIZON,
        )

    return build


def _succeeded(facts: ScenarioFacts, world: WorldState, truth: ScenarioTruth) -> bool:
    score, bar = truth.score, facts.bar
    return not truth.stranded and score is not None and bar is not None and score >= bar


def _scenario(level: _Difficulty) -> Scenario:
    return Scenario(
        name=level.name,
        title=level.title,
        summary=f"{HORIZON} actions on {level.size} by {level.size} cells with {level.share:g} "
        "times the paper's dynamics, for clean cells and little energy",
        description=described(__doc__),
        episodes=1,
        build=_build(level),
        succeeded=_succeeded,
    )


EASY = _scenario(
    _Difficulty(name="open-world-easy", title="The Open World, easy", size=5, share=0.3, bar=0.2)
)
MEDIUM = _scenario(
    _Difficulty(
        name="open-world-medium", title="The Open World, medium", size=6, share=0.6, bar=0.06
    )
)
HARD = _scenario(
    _Difficulty(name="open-world-hard", title="The Open World, hard", size=8, share=1.0, bar=0.01)
)
