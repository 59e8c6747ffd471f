"""How worlds begin, and how robots come and go."""

from __future__ import annotations

from vacuum_world.errors import NameTakenError, WorldFullError

from .state import (
    Dice,
    Dynamics,
    Obstacle,
    Robot,
    Spawn,
    Step,
    TickMode,
    WorldEvent,
    WorldState,
    obstacle_cells,
    powered,
    robot_cells,
    robot_of,
    seeded_streams,
)
from .values import Cell, cells_of, distance, distances_from

_OBSTACLES_PER_CELL = 0.12
_DIRT_PER_CELL = 0.3


def create_world(
    seed: int,
    *,
    grid: Cell = (5, 5),
    charger: Cell = (0, 0),
    dynamics: Dynamics | None = None,
    ticks: TickMode = "action",
) -> WorldState:
    """A world with dirt and visible obstacles placed by chance, every free cell reachable."""
    dice = Dice(seed, "layout")
    cells = cells_of(grid)
    obstacles = _scattered(dice, grid, charger, round(len(cells) * _OBSTACLES_PER_CELL))
    free = [cell for cell in cells if cell not in obstacles and cell != charger]
    dirt = dice.sample(free, min(len(free), round(len(cells) * _DIRT_PER_CELL)))
    return WorldState(
        seed=seed,
        grid=grid,
        charger=charger,
        ticks=ticks,
        dynamics=dynamics or Dynamics(),
        dirty=tuple(sorted(dirt)),
        obstacles=tuple(Obstacle(cell=cell) for cell in obstacles),
        streams=seeded_streams(seed),
    )


def _scattered(dice: Dice, grid: Cell, charger: Cell, count: int) -> tuple[Cell, ...]:
    """Up to `count` cells for obstacles that leave all other cells connected."""
    chosen: tuple[Cell, ...] = ()
    cells = cells_of(grid)
    for cell in dice.sample(cells, len(cells)):
        if len(chosen) == count:
            break
        blocked = (*chosen, cell)
        reached = distances_from(charger, grid, blocked)
        if cell != charger and len(reached) == len(cells) - len(blocked):
            chosen = blocked
    return chosen


def join(state: WorldState, name: str) -> Step[Robot]:
    """Let a new robot in; it begins at the spawn cell or the nearest free one.

    Raises:
        NameTakenError: A robot of this name is here already.
        WorldFullError: No cell is free.
    """
    if any(robot.name == name for robot in state.robots):
        raise NameTakenError(name)
    spawn = state.spawn or Spawn(position=state.charger)
    taken = obstacle_cells(state) | robot_cells(state)
    free = [cell for cell in cells_of(state.grid) if cell not in taken]
    if not free:
        raise WorldFullError
    position = min(free, key=lambda cell: (distance(cell, spawn.position), cell))
    number = state.joined + 1
    robot = Robot(id=f"r{number}", name=name, position=position, battery=spawn.battery)
    robot = powered(robot, state.charger)
    changes = {"robots": (*state.robots, robot), "joined": number}
    return Step(
        state=state.model_copy(update=changes),
        result=robot,
        events=(_event(state, robot, "joined"),),
    )


def leave(state: WorldState, robot_id: str) -> Step[Robot]:
    """Take a robot out of the world; the result is the robot as it was.

    Raises:
        UnknownRobotError: No robot has this id.
    """
    robot = robot_of(state, robot_id)
    robots = tuple(other for other in state.robots if other.id != robot_id)
    return Step(
        state=state.model_copy(update={"robots": robots}),
        result=robot,
        events=(_event(state, robot, "left"),),
    )


def _event(state: WorldState, robot: Robot, what: str) -> WorldEvent:
    return WorldEvent(
        kind="joined" if what == "joined" else "left",
        tick=state.tick,
        robot=robot.id,
        cell=robot.position,
        text=f"{robot.name} {what} at {robot.position}",
    )
