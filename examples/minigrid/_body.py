"""The agent's body in a MiniGrid environment: acts, sees its own 7x7 view, knows where it went.

Nothing of the full grid comes through here. The view says what is seen and which way it looks;
the body counts its own steps from the start, by what it saw ahead before each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import gymnasium

from minigrid.core.constants import IDX_TO_COLOR, IDX_TO_OBJECT, OBJECT_TO_IDX
from minigrid.minigrid_env import MiniGridEnv

from ._chart import FACINGS, FLOOR, NOTHING, Cell, Chart, beside, turned
from ._levels import Level
from ._physics import Action, Scene
from ._reading import Over, Reading

_NUMBERS: Mapping[Action, int] = {
    "turn_left": 0,
    "turn_right": 1,
    "move_forward": 2,
    "pick_up": 3,
    "drop": 4,
    "toggle": 5,
}
"""MiniGrid's numbers of the actions."""
_DOORS = ("open", "closed", "locked")
"""MiniGrid's states of a door, by number."""
_NAMES = {"empty": FLOOR, "unseen": "", "agent": FLOOR}
_SIGHT = 7
_COLOURED = ("door", "key", "ball", "box")

Observation = Mapping[str, Any]


class Body:
    """One episode of a level, seen from inside.

    Args:
        level: What is played.
        seed: Which instance of it.
    """

    def __init__(self, level: Level, seed: int) -> None:
        made: Any = gymnasium.make(level.environment)
        self._env = cast("MiniGridEnv", made.unwrapped)
        observation, _ = self._env.reset(seed=seed)
        self.level = level
        self.mission = str(observation["mission"])
        """What MiniGrid asks for."""
        self.actions = 0
        """Actions so far; looking is none."""
        self.reward = 0.0
        """What the environment gave; more than 0 means success."""
        self.reading = _reading((0, 0), FLOOR, observation)
        """What it sees now."""

    @property
    def environment(self) -> MiniGridEnv:
        """The environment itself, with all that is hidden: for the oracle and for tests."""
        return self._env

    def act(self, action: Action) -> str:
        """Acts; gives in words why nothing happened, empty where something did.

        After the end of the episode nothing happens any more.
        """
        if self.reading.over:
            return f"the episode is over: {self.reading.over}"
        before, seen = self.reading, self.reading.chart.cells()
        foreseen, problem = scene_of(before).after(seen, action)
        observation, reward, terminated, truncated, _ = self._env.step(_NUMBERS[action])
        self.actions += 1
        self.reward += float(reward)
        after = _reading(foreseen.at, seen.get(foreseen.at, FLOOR), observation)
        over = self._ended(terminated=terminated, truncated=truncated)
        self.reading = after.model_copy(update={"over": over})
        return problem

    def _ended(self, *, terminated: bool, truncated: bool) -> Over:
        if self.reward > 0:
            return "success"
        if terminated:
            return "death"
        return "time is up" if truncated else ""

    def close(self) -> None:
        """Releases the environment."""
        self._env.close()


def scene_of(reading: Reading) -> Scene:
    """The scene that a reading shows."""
    return Scene(at=reading.at, facing=reading.facing, carrying=reading.carrying)


def everything(body: Body) -> Chart:
    """The full grid, which no contender but the oracle sees."""
    env, (x, y) = body.environment, body.reading.at
    left, top = int(env.agent_pos[0]) - x, int(env.agent_pos[1]) - y
    cells: dict[Cell, str] = {}
    for column in range(env.width):
        for row in range(env.height):
            there = env.grid.get(column, row)
            encoded = (OBJECT_TO_IDX["empty"], 0, 0) if there is None else there.encode()
            cells[column - left, row - top] = _named(*encoded)
    return Chart.of(cells)


def _reading(at: Cell, underfoot: str, observation: Observation) -> Reading:
    """What an observation says at that place; what is underfoot no view shows."""
    facing = FACINGS[int(observation["direction"])]
    image = observation["image"]
    right = turned(facing, 1)
    cells: dict[Cell, str] = {at: underfoot}
    for across in range(_SIGHT):
        for down in range(_SIGHT):
            what = _named(*(int(number) for number in image[across, down]))
            ahead, aside = _SIGHT - 1 - down, across - _SIGHT // 2
            if what and (ahead or aside):
                cells[beside(beside(at, facing, ahead), right, aside)] = what
    held = _named(*(int(number) for number in image[_SIGHT // 2, _SIGHT - 1]))
    carrying = held if held.endswith(_COLOURED) else NOTHING
    return Reading(at=at, facing=facing, carrying=carrying, chart=Chart.of(cells))


def _named(kind: int, colour: int, state: int) -> str:
    """What a triple of MiniGrid's encoding means; empty for what is not seen."""
    name = IDX_TO_OBJECT[kind]
    if name not in _COLOURED:
        return _NAMES.get(name, name)
    coloured = f"{IDX_TO_COLOR[colour]} {name}"
    return f"{_DOORS[state]} {coloured}" if name == "door" else coloured
