"""The world as a Gymnasium environment: importing this registers `coag/VacuumWorld-v0`.

`gymnasium.make("vacuum_world.gym:coag/VacuumWorld-v0", scenario="sudden-wall", seed=4)` makes one;
each scenario has an id of its own too, such as `coag/SuddenWall-v0` (`IDS`). Gymnasium is imported
here and nowhere else in this package.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, cast

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from vacuum_world.scenarios import SCENARIOS, ScenarioSetup, ScenarioTruth, build_scenario, measure
from vacuum_world.scenarios import scenario_named as _scenario_named
from vacuum_world.world import (
    DIRECTIONS,
    FULL_BATTERY,
    Cell,
    LoggedAction,
    Reading,
    Step,
    WorldState,
    clean,
    join,
    move,
    sense,
    use,
)

__all__ = ["VacuumWorldEnv", "IDS", "register_worlds"]

WORLD_ID = "coag/VacuumWorld-v0"
_ENTRY = "vacuum_world.gym:VacuumWorldEnv"


def _own_id(scenario: str) -> str:
    return f"coag/{''.join(word.capitalize() for word in scenario.split('-'))}-v0"


IDS: Mapping[str, str] = MappingProxyType(
    {WORLD_ID: "sudden-wall", **{_own_id(name): name for name in SCENARIOS}}
)
"""Every id with the scenario that it makes by default."""


def register_worlds() -> None:
    """Make the ids known to Gymnasium; those known already stay as they are."""
    for name, scenario in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(  # pyright: ignore[reportUnknownMemberType]  its `kwargs` is untyped
                id=name, entry_point=_ENTRY, kwargs={"scenario": scenario}
            )


# ---- What an environment shows and takes, as Gymnasium's spaces, and readings put into them ----


SIDE = 8
"""Cells along each side of the largest grid of a scenario."""
UNKNOWN = 2
"""What a sensor reads for a cell outside the grid, and for every cell while it is silent."""

Observation = dict[str, Any]


def observation_space() -> spaces.Dict:
    """The readings, and what the task says."""
    cell = spaces.Box(0, SIDE, shape=(2,), dtype=np.int64)
    return spaces.Dict(
        {
            "position": cell,
            "battery": spaces.Discrete(FULL_BATTERY + 1),
            "dirty": spaces.MultiDiscrete(np.full(5, UNKNOWN + 1)),
            "blocked": spaces.MultiDiscrete(np.full(4, UNKNOWN + 1)),
            "charger": cell,
            "grid": cell,
            "stranded": spaces.Discrete(2),
            "task": spaces.MultiBinary((SIDE, SIDE)),
            "off_limits": spaces.MultiBinary((SIDE, SIDE)),
        }
    )


def observed(reading: Reading, task: Collection[Cell], off_limits: Collection[Cell]) -> Observation:
    """A reading, the task and the cells to avoid, as a member of the space."""
    dirt = [reading.dirty.here, *(getattr(reading.dirty, way) for way in DIRECTIONS)]
    ways = [getattr(reading.blocked, way) for way in DIRECTIONS]
    return {
        "position": np.array(reading.position, dtype=np.int64),
        "battery": np.int64(reading.battery),
        "dirty": _ternary(dirt),
        "blocked": _ternary(ways),
        "charger": np.array(reading.charger, dtype=np.int64),
        "grid": np.array(reading.grid, dtype=np.int64),
        "stranded": np.int64(reading.stranded),
        "task": _board(task),
        "off_limits": _board(off_limits),
    }


def _ternary(values: list[bool | None]) -> NDArray[np.int64]:
    numbers = [UNKNOWN if value is None else int(value) for value in values]
    return np.array(numbers, dtype=np.int64)


def _board(cells: Collection[Cell]) -> NDArray[np.int8]:
    board = cast("NDArray[np.int8]", np.zeros((SIDE, SIDE), dtype=np.int8))
    for x, y in cells:
        board[x, y] = 1
    return board


# ---- One scenario as a Gymnasium environment ----


CLEAN = len(DIRECTIONS)
"""The action that cleans."""
USE = CLEAN + 1
"""The action that uses the scenario's gadget, where it has one."""

_SEEDS = 2**31
_ENERGY = 0.01


class VacuumWorldEnv(gymnasium.Env[Observation, int]):
    """A robot in a scenario of the Dynamic Vacuum World.

    ## Description

    One of the thirteen scenarios of `vacuum_world.scenarios`; a seed gives the instance. Each
    scenario's own `description` says what it tests.

    ## Action Space

    `Discrete(5)`: 0 north, 1 east, 2 south, 3 west (5 charge each), 4 clean (10 charge). In
    `false-manual` it is `Discrete(6)`, and 5 uses the gadget.

    ## Observation Space

    A `Dict`: `position`, `charger` and `grid` as `(x, y)`; `battery` 0 to 100; `dirty` here, north,
    east, south, west and `blocked` north, east, south, west, with 0 no, 1 yes, 2 unknown (outside
    the grid, or the sensor is silent); `stranded`; `task` and `off_limits` as 8 by 8 boards of the
    cells that are to be cleaned and those that must not be, as far as announced so far.

    ## Starting State

    As the scenario sets it up.

    ## Rewards

    1 for each cell that became clean, less 0.01 for each unit of charge that the action took, less
    1 for cleaning a forbidden cell and 1 for being stranded; in the open world, cells turn dirty
    again and may be cleaned for reward again.

    ## Episode End

    Terminated when the robot is stranded, and, but for the open world, when the scenario's success
    is reached. Truncated after the scenario's suggested number of actions.

    ## Information

    `success` and `truth` (the scenario's ground truth by now), `ok` and `reason` of the last
    action, `message` (what another agent says: in `distraction`, from its moment on; else None).

    ## Arguments

    Args:
        scenario: One of `vacuum_world.scenarios.SCENARIOS`.
        seed: The instance that `reset` gives without a seed; None draws one each time.
        episode: 1, or 2 for the scenarios that have one.
        render_mode: None, or `ansi` for text.

    Raises:
        UnknownScenarioError: There is no such scenario.
        ValueError: The scenario has no such episode, or there is no such render mode.
    """

    metadata: ClassVar[dict[str, Any]] = {  # pyright: ignore[reportIncompatibleVariableOverride]  Gymnasium types it as an instance's
        "render_modes": ["ansi"],
        "render_fps": 4,
    }

    def __init__(
        self,
        scenario: str = "sudden-wall",
        seed: int | None = None,
        episode: int = 1,
        render_mode: str | None = None,
    ) -> None:
        episodes = _scenario_named(scenario).episodes
        if not 1 <= episode <= episodes:
            raise ValueError(f"{scenario!r} has episodes 1 to {episodes}, got {episode!r}")
        if render_mode not in (None, "ansi"):
            raise ValueError(f"render_mode is None or 'ansi', got {render_mode!r}")
        self.render_mode = render_mode
        self.scenario = scenario
        """The scenario's name."""
        self._seed = seed
        self._episode = episode
        actions = USE + (scenario == "false-manual")
        self.observation_space: spaces.Space[Observation] = observation_space()
        self.action_space: spaces.Space[Any] = spaces.Discrete(actions)
        self._begin(0 if seed is None else seed)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin the instance of `seed`.

        Args:
            seed: None takes the seed given to the environment, or draws one.
            options: There are none.
        """
        super().reset(seed=seed)
        instance = self._seed if seed is None else seed
        self._begin(int(self.np_random.integers(_SEEDS)) if instance is None else instance)
        return self._observation(), self._information(None)

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take an action.

        Raises:
            ValueError: It is none of the action space.
        """
        if not self.action_space.contains(action):
            raise ValueError(f"action {action!r} is not in {self.action_space}")
        before = self._world
        done = self._acted(int(action))
        self._world = done.state
        information = self._information(done.result)
        stranded = self._world.robots[0].stranded
        reached = information["success"] and self._setup.facts.horizon is None
        taken = self._world.counters.actions
        return (
            self._observation(),
            self._reward(before),
            stranded or reached,
            taken >= self._setup.max_actions,
            information,
        )

    def render(self) -> str | None:  # pyright: ignore[reportIncompatibleMethodOverride]  text only
        """The grid as text in `ansi`: R robot, C charger, # obstacle, * dirt; else None."""
        if self.render_mode is None:
            return None
        width, height = self._world.grid
        rows = ("".join(self._mark((x, y)) for x in range(width)) for y in range(height))
        return "\n".join(rows)

    def _begin(self, seed: int) -> None:
        self._setup: ScenarioSetup = build_scenario(self.scenario, seed, episode=self._episode)
        self._world: WorldState = join(self._setup.world, "robot").state

    def _acted(self, action: int) -> Step[LoggedAction]:
        robot = self._world.robots[0].id
        if action < CLEAN:
            return move(self._world, robot, DIRECTIONS[action])
        if action == CLEAN:
            return clean(self._world, robot)
        return use(self._world, robot, self._world.gadgets[0].name)

    def _reward(self, before: WorldState) -> float:
        then, now = before.counters, self._world.counters
        stranded = self._world.robots[0].stranded and not before.robots[0].stranded
        gained = now.cleans - then.cleans - (now.violations - then.violations) - stranded
        return float(gained - _ENERGY * (now.energy - then.energy))

    def _observation(self) -> Observation:
        facts = self._setup.facts
        off_limits = set(facts.off_limits)
        off_limits.update(cell for cell in self._world.forbidden if cell == facts.forbidden)
        reading = sense(self._world, self._world.robots[0].id)
        return observed(reading, facts.dirty, off_limits)

    def _information(self, line: LoggedAction | None) -> dict[str, Any]:
        truth: ScenarioTruth = measure(self._setup, self._world)
        message = self._setup.facts.message
        due = message is not None and self._world.counters.actions >= message.after
        return {
            "success": truth.success,
            "truth": truth.model_dump(mode="json"),
            "ok": None if line is None else line.result.ok,
            "reason": None if line is None else line.result.reason,
            "message": message.model_dump(mode="json") if message is not None and due else None,
        }

    def _mark(self, cell: Cell) -> str:
        world = self._world
        if world.robots[0].position == cell:
            return "R"
        if any(obstacle.cell == cell for obstacle in world.obstacles):
            return "#"
        if cell == world.charger:
            return "C"
        return "*" if cell in world.dirty else "."


register_worlds()
