"""The levels that are played: which environment, and how many actions are allowed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from coag.errors import UnknownNameError
from coag.schema import Value


class Level(Value):
    """One of MiniGrid's environments as a level of this example."""

    name: str
    """What it is called here."""
    environment: str
    """Its id in Gymnasium."""
    summary: str
    """What is hard about it."""
    aim: Literal["goal", "door"] = "goal"
    """What the environment rewards: standing on the goal, or an open door."""
    max_actions: int
    """External actions that a contender may take; the environments themselves allow more."""


_LEVELS = (
    Level(
        name="empty",
        environment="MiniGrid-Empty-Random-6x6-v0",
        summary="an empty room, a start anywhere in it",
        max_actions=30,
    ),
    Level(
        name="doorkey-5x5",
        environment="MiniGrid-DoorKey-5x5-v0",
        summary="a key to pick up, a locked door to open, the goal behind it",
        max_actions=40,
    ),
    Level(
        name="doorkey-6x6",
        environment="MiniGrid-DoorKey-6x6-v0",
        summary="the same with longer ways",
        max_actions=50,
    ),
    Level(
        name="unlock",
        environment="MiniGrid-Unlock-v0",
        summary="a key somewhere in a room of 6x6, and a locked door; success is the open door",
        aim="door",
        max_actions=50,
    ),
    Level(
        name="lava-gap",
        environment="MiniGrid-LavaGapS6-v0",
        summary="one gap in a strip of deadly lava",
        max_actions=40,
    ),
    Level(
        name="lava-crossing",
        environment="MiniGrid-LavaCrossingS9N1-v0",
        summary="a river of lava, with its one crossing out of sight",
        max_actions=70,
    ),
    Level(
        name="two-rooms",
        environment="MiniGrid-MultiRoom-N2-S4-v0",
        summary="a closed door between two rooms; what is behind it cannot be seen",
        max_actions=40,
    ),
)
LEVELS: Mapping[str, Level] = MappingProxyType({level.name: level for level in _LEVELS})
"""Every level by name."""


def level_named(name: str) -> Level:
    """The level of this name.

    Raises:
        UnknownNameError: There is none; the message lists those that exist.
    """
    if name not in LEVELS:
        raise UnknownNameError("level", name, LEVELS)
    return LEVELS[name]
