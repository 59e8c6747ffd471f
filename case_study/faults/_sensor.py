"""Sensors that lie: what becomes of a true reading on its way to the agent."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from types import MappingProxyType

from vacuum_world.world import (
    DIRECTIONS,
    Cell,
    Direction,
    Reading,
    inside,
    neighbour,
)

Lie = Callable[[Reading, Reading, random.Random], Reading]
"""From a true reading, the true one before it, and dice, to what the agent is told."""


def _battery(reading: Reading, before: Reading, dice: random.Random) -> Reading:
    """A gauge that is off by 20 to 60."""
    off = dice.choice((-60, -45, -30, -20, 20, 30, 45, 60))
    told = min(100, max(5, reading.battery + off))
    return reading.model_copy(update={"battery": told})


def _position(reading: Reading, before: Reading, dice: random.Random) -> Reading:
    """It locates itself in a neighbouring cell."""
    near = [neighbour(reading.position, direction) for direction in DIRECTIONS]
    places = [cell for cell in near if inside(cell, reading.grid)]
    return reading.model_copy(update={"position": dice.choice(places)})


def _stale(reading: Reading, before: Reading, dice: random.Random) -> Reading:
    """It shows the reading before this one."""
    return before


def _dirt_here(reading: Reading, before: Reading, dice: random.Random) -> Reading:
    """Clean floor looks dirty, or dirty floor clean, underfoot."""
    return _with_dirt(reading, "here", not reading.dirty.here)


def _dirt_near(reading: Reading, before: Reading, dice: random.Random) -> Reading:
    """The same in a neighbouring cell."""
    direction = dice.choice(_open_ways(reading))
    return _with_dirt(reading, direction, not getattr(reading.dirty, direction))


def _blind_to_dirt(reading: Reading, before: Reading, dice: random.Random) -> Reading:
    """It sees no dirt at all."""
    seen = {name: False for name, dirty in reading.dirty.model_dump().items() if dirty}
    return reading.model_copy(update={"dirty": reading.dirty.model_copy(update=seen)})


def _proximity(reading: Reading, before: Reading, dice: random.Random) -> Reading:
    """It feels an obstacle where there is none, or none where there is one."""
    direction = dice.choice(_open_ways(reading))
    felt = not getattr(reading.blocked, direction)
    blocked = reading.blocked.model_copy(update={direction: felt})
    return reading.model_copy(update={"blocked": blocked})


LIES: Mapping[str, Lie] = MappingProxyType(
    {
        "battery gauge off": _battery,
        "located next door": _position,
        "stale reading": _stale,
        "dirt underfoot flipped": _dirt_here,
        "dirt next door flipped": _dirt_near,
        "blind to dirt": _blind_to_dirt,
        "proximity flipped": _proximity,
    }
)
"""The ways in which sensors lie, by name. One more, `no reading`, is a sensor that fails."""


def _with_dirt(reading: Reading, where: str, dirty: bool) -> Reading:
    return reading.model_copy(update={"dirty": reading.dirty.model_copy(update={where: dirty})})


def _open_ways(reading: Reading) -> list[Direction]:
    def there(direction: Direction) -> Cell:
        return neighbour(reading.position, direction)

    return [direction for direction in DIRECTIONS if inside(there(direction), reading.grid)]
