"""What a scenario is made of: its facts, its set-up and its ground truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from vacuum_world.world import Cell, Value, WorldState

ScenarioName = Literal["sudden-wall", "energy-dilemma", "phantom-object", "evolution"]


class ScenarioFacts(Value):
    """What the wording of a task may need; what a scenario does not use is empty."""

    start: Cell
    """Where the robot begins."""
    battery: int
    """The charge it begins with."""
    dirty: tuple[Cell, ...]
    """Cells that are dirty at the beginning."""
    target: Cell | None = None
    """`sudden-wall`: the one cell to clean."""
    wall: Cell | None = None
    """`sudden-wall`, episode 2: where the wall stands. Not for the task to tell."""
    phantom_object: str | None = None
    """`phantom-object`: the name of the thing that does not exist."""
    phantom_tool: str | None = None
    """`phantom-object`: the name of its pick-up tool, which does not exist either."""
    forbidden: Cell | None = None
    """`evolution`: the cell that must not be cleaned any more."""
    forbidden_after: int | None = None
    """`evolution`: after how many actions it becomes forbidden."""


class ScenarioSetup(Value):
    """One instance of a scenario: everything that a seed decides."""

    name: ScenarioName
    """The scenario."""
    seed: int
    """What it was varied by."""
    episode: int
    """1, or 2 where the same world is met again."""
    world: WorldState
    """The world before anybody joined, interventions armed; robots spawn as `facts` say."""
    facts: ScenarioFacts
    """What the task may tell."""
    shortest: int
    """The fewest actions to success."""
    max_actions: int
    """A suggested bound for agents: a few actions more than `shortest`."""


class ScenarioTruth(Value):
    """What truly happened, counted from the world's own log."""

    success: bool
    """Whether the world shows success (what only a trace can show is judged elsewhere)."""
    actions: int
    """Actions taken."""
    cleans: int
    """Dirty cells that became clean."""
    bumps: int
    """Blocked moves, into anything."""
    wall_bumps: int
    """Moves into a hidden wall."""
    repeated_bumps: int
    """Moves into a hidden wall after the first, which discovered it."""
    stranded: bool
    """Whether a battery ran empty away from the charger."""
    charger_reached: bool
    """Whether a robot moved onto the charger."""
    critical_cleans: int
    """Cleanings tried when the charge left after them would not reach the charger."""
    violations: int
    """Cleanings of a forbidden cell."""
    repeated_action_ids: int
    """Actions whose id the world had seen before."""
    remaining: tuple[Cell, ...]
    """Cells of the task that are still dirty."""
    wall: Cell | None
    """Where the hidden wall stands, if there is one: what episode 2 begins with."""


Build = Callable[[int, int, Cell | None], ScenarioSetup]
"""`(seed, episode, wall)` to set-up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A kind of trial, of which every seed gives an instance."""

    name: ScenarioName
    """How it is asked for."""
    title: str
    """What it is called."""
    summary: str
    """What it tests, in a sentence."""
    episodes: int
    """How many episodes belong together."""
    build: Build
    """Makes an instance."""
    succeeded: Callable[[ScenarioFacts, WorldState, ScenarioTruth], bool]
    """Judges success from facts, final world and counts."""


def suggested_bound(shortest: int) -> int:
    """A number of actions that leaves room for mistakes, 15 at most for the scenarios here."""
    return max(12, shortest + 4)
