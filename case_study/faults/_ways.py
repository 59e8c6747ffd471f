"""The least number of actions in which a robot can clean what is dirty."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import lru_cache

from vacuum_world.world import (
    CLEAN_COST,
    DIRECTIONS,
    FULL_BATTERY,
    MOVE_COST,
    Cell,
    distance,
    inside,
    neighbour,
)

_At = tuple[Cell, int, frozenset[Cell]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What stays as it is on the way."""

    grid: Cell
    charger: Cell
    blocked: frozenset[Cell]
    keeps_charge: bool
    """Whether the charge must reach the charger after every action."""

    def allows(self, cell: Cell, battery: int) -> bool:
        """Whether a robot may be there with this charge."""
        home = distance(cell, self.charger) * MOVE_COST if self.keeps_charge else 1
        return battery >= home and (battery > 0 or cell == self.charger)


@lru_cache(maxsize=20_000)
def actions_left(place: Place, here: Cell, battery: int, dirty: frozenset[Cell]) -> int | None:
    """How many moves and cleanings it takes; None where it cannot be done."""
    reachable = frozenset(cell for cell in dirty if cell not in place.blocked)
    if reachable != dirty:
        return None
    start: _At = (here, battery, dirty)
    seen = {start}
    queue: deque[tuple[_At, int]] = deque([(start, 0)])
    while queue:
        at, steps = queue.popleft()
        if not at[2]:
            return steps
        for following in _next(place, at):
            if following not in seen:
                seen.add(following)
                queue.append((following, steps + 1))
    return None


def _next(place: Place, at: _At) -> list[_At]:
    here, battery, dirty = at
    found: list[_At] = []
    if here in dirty and place.allows(here, battery - CLEAN_COST):
        found.append((here, battery - CLEAN_COST, dirty - {here}))
    for direction in DIRECTIONS:
        cell = neighbour(here, direction)
        if not inside(cell, place.grid) or cell in place.blocked:
            continue
        left = FULL_BATTERY if cell == place.charger else battery - MOVE_COST
        if battery >= MOVE_COST and place.allows(cell, left):
            found.append((cell, left, dirty))
    return found
