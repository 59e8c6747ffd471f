"""What the experimenter does to the world between the robot's perception and its action."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from types import MappingProxyType

from vacuum_world.world import (
    AddDirt,
    AddObstacle,
    Cell,
    Direction,
    Intervention,
    PlaceRobot,
    RemoveDirt,
    Robot,
    SetBattery,
    WorldState,
    cells_of,
    inside,
    neighbour,
    obstacle_cells,
)

Plan = Callable[[WorldState, Robot, Direction | None, random.Random], Intervention | None]
"""From the world, the robot, where it is about to move (None: to clean) and dice, to what is
done; None where it cannot be done now."""


def _wall(visible: bool) -> Plan:
    def plan(
        world: WorldState, robot: Robot, direction: Direction | None, dice: random.Random
    ) -> Intervention | None:
        if direction is None:
            return None
        cell = neighbour(robot.position, direction)
        if cell == world.charger or not _free(world, cell):
            return None
        return AddObstacle(cell=cell, visible=visible)

    return plan


def _drained(
    world: WorldState, robot: Robot, direction: Direction | None, dice: random.Random
) -> Intervention | None:
    """The battery loses most of its charge."""
    left = dice.choice((6, 8, 11, 16, 21))
    if left >= robot.battery or robot.position == world.charger:
        return None
    return SetBattery(robot=robot.id, battery=left)


def _carried_off(
    world: WorldState, robot: Robot, direction: Direction | None, dice: random.Random
) -> Intervention | None:
    """Somebody puts the robot elsewhere."""
    there = neighbour(robot.position, direction) if direction else robot.position
    places = [
        cell
        for cell in cells_of(world.grid)
        if _free(world, cell) and cell not in (robot.position, there, world.charger)
    ]
    return PlaceRobot(robot=robot.id, cell=dice.choice(places)) if places else None


def _somebody_cleans(
    world: WorldState, robot: Robot, direction: Direction | None, dice: random.Random
) -> Intervention | None:
    """The dirt that the robot is about to clean is gone."""
    if direction is not None or robot.position not in world.dirty:
        return None
    return RemoveDirt(cell=robot.position)


def _dirt_returns(
    world: WorldState, robot: Robot, direction: Direction | None, dice: random.Random
) -> Intervention | None:
    """A cell that was cleaned gets dirty again, within sight of where the robot goes."""
    end = neighbour(robot.position, direction) if direction else robot.position
    near = [end, *(neighbour(end, way) for way in ("north", "east", "south", "west"))]
    again = [
        cell
        for cell in near
        if cell in world.cleaned and cell not in world.dirty and inside(cell, world.grid)
    ]
    return AddDirt(cell=dice.choice(again)) if again else None


PLANS: Mapping[str, Plan] = MappingProxyType(
    {
        "wall in the way": _wall(True),
        "hidden wall in the way": _wall(False),
        "battery drained": _drained,
        "carried off": _carried_off,
        "somebody cleans": _somebody_cleans,
        "dirt returns": _dirt_returns,
    }
)
"""What can happen to the world, by name."""


def _free(world: WorldState, cell: Cell) -> bool:
    robots = {robot.position for robot in world.robots}
    return inside(cell, world.grid) and cell not in obstacle_cells(world) | robots
