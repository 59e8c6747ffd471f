"""What an environment shows and takes, as Gymnasium's spaces, and readings put into them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from vacuum_world.world import DIRECTIONS, FULL_BATTERY, Cell, Reading

SIDE = 8
"""Cells along each side of the largest grid of a scenario."""
UNKNOWN = 2
"""What a sensor tells of a cell outside the grid, and of every cell while it is silent."""

Observation = dict[str, Any]


def observation_space() -> spaces.Dict:
    """The readings, and what the task tells."""
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
    """A reading and what was told, as a member of the space."""
    dirt = [reading.dirty.here, *(getattr(reading.dirty, way) for way in DIRECTIONS)]
    ways = [getattr(reading.blocked, way) for way in DIRECTIONS]
    return {
        "position": np.array(reading.position, dtype=np.int64),
        "battery": np.int64(reading.battery),
        "dirty": _told(dirt),
        "blocked": _told(ways),
        "charger": np.array(reading.charger, dtype=np.int64),
        "grid": np.array(reading.grid, dtype=np.int64),
        "stranded": np.int64(reading.stranded),
        "task": _board(task),
        "off_limits": _board(off_limits),
    }


def _told(values: list[bool | None]) -> NDArray[np.int64]:
    numbers = [UNKNOWN if value is None else int(value) for value in values]
    return np.array(numbers, dtype=np.int64)


def _board(cells: Collection[Cell]) -> NDArray[np.int8]:
    board = cast("NDArray[np.int8]", np.zeros((SIDE, SIDE), dtype=np.int8))
    for x, y in cells:
        board[x, y] = 1
    return board
