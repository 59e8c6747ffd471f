"""The shortest way to an end, by breadth-first search over what is known of the grid."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import lru_cache

from ._chart import GOAL, LAVA, Cell
from ._physics import UNSEEN, Action, Scene
from ._reading import Reading

_MOVES: tuple[Action, ...] = ("move_forward", "turn_left", "turn_right", "pick_up", "toggle")
Reached = Callable[[Scene], bool]


def shortest(grid: Mapping[Cell, str], start: Scene, reached: Reached) -> tuple[Action, ...] | None:
    """The fewest actions to a scene that is wanted, never through lava; None if there is no way."""
    came: dict[Scene, tuple[Scene, Action] | None] = {start: None}
    waiting = deque([start])
    while waiting:
        scene = waiting.popleft()
        if reached(scene):
            return _way(came, scene)
        for action in _MOVES:
            after, problem = scene.after(grid, action)
            if problem or after in came or after.what(grid, after.at) == LAVA:
                continue
            came[after] = (scene, action)
            waiting.append(after)
    return None


def _way(came: Mapping[Scene, tuple[Scene, Action] | None], end: Scene) -> tuple[Action, ...]:
    way: list[Action] = []
    step = came[end]
    while step is not None:
        end, action = step
        way.append(action)
        step = came[end]
    return tuple(reversed(way))


def plan(reading: Reading, aim: str) -> tuple[Action, ...]:
    """What to do by what the chart shows: to the aim, or to where more can be seen.

    Args:
        reading: Where one is, with the chart of all that was seen.
        aim: `goal` to stand on it, `door` to open one.

    Returns:
        The fewest actions; empty where nothing is left to do or to find out.
    """
    return _planned(reading.line(), aim)


@lru_cache(maxsize=2_000)
def _planned(line: str, aim: str) -> tuple[Action, ...]:
    reading = Reading.model_validate_json(line)
    grid = reading.chart.cells()
    start = Scene(at=reading.at, facing=reading.facing, carrying=reading.carrying)
    wanted = shortest(grid, start, lambda scene: _aim_reached(grid, scene, aim))
    if wanted is not None:
        return wanted
    return shortest(grid, start, lambda scene: scene.what(grid, scene.ahead) == UNSEEN) or ()


def _aim_reached(grid: Mapping[Cell, str], scene: Scene, aim: str) -> bool:
    if aim == "door":
        return any(what.startswith("open") for _, what in scene.changed)
    return scene.what(grid, scene.at) == GOAL
