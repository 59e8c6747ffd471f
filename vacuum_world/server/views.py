"""What watchers of a world are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vacuum_world.showing import Pace, Report
from vacuum_world.world import (
    Cell,
    Counters,
    Dynamics,
    Gadget,
    LoggedAction,
    Obstacle,
    Robot,
    SensorFault,
    Sign,
    SlowCleaning,
    TickMode,
    Trigger,
    Value,
    WorldEvent,
    WorldState,
)

TRAIL = 60
"""Cells of a robot's way that are shown."""
_LOOKED_THROUGH = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """All that can be seen at one moment."""

    state: WorldState
    """The world."""
    pace: Pace
    """Whether and how fast it runs."""
    reports: Mapping[str, Report]
    """What agents report of themselves, by the id of their robot."""


class Trail(Value):
    """The latest part of the way that a robot has gone by itself."""

    robot: str
    """Its id."""
    cells: tuple[Cell, ...]
    """Cells in the order in which it was on them, the present one last."""


class Reported(Value):
    """What the driver of a robot reports of its agent."""

    robot: str
    """The robot's id."""
    report: Report
    """The text; of others, to be shown and not to be believed."""


class WorldView(Value):
    """The world as an onlooker sees it; what is hidden is shown to the experimenter only."""

    tick: int
    """Ticks passed."""
    ticks: TickMode
    """When time passes."""
    grid: Cell
    """Width and height."""
    charger: Cell
    """The charger's cell."""
    dirty: tuple[Cell, ...]
    """Dirty cells."""
    obstacles: tuple[Obstacle, ...]
    """Obstacles; hidden ones for the experimenter only."""
    robots: tuple[Robot, ...]
    """Robots with their batteries."""
    forbidden: tuple[Cell, ...] | None
    """Forbidden cells, for the experimenter only."""
    counters: Counters | None
    """Totals, for the experimenter only."""
    dynamics: Dynamics | None
    """What changes by itself, for the experimenter only."""
    triggers: tuple[Trigger, ...] | None
    """What is armed, for the experimenter only."""
    signs: tuple[Sign, ...]
    """The signs to be read; anybody sees them."""
    faults: tuple[SensorFault, ...] | None
    """Sensors that fail now or later, for the experimenter only."""
    gadgets: tuple[Gadget, ...] | None
    """Gadgets with what is true of them, for the experimenter only."""
    under_way: tuple[SlowCleaning, ...] | None
    """Cleanings that do not show yet, for the experimenter only."""
    trails: tuple[Trail, ...]
    """The way of each robot."""


class Change(Value):
    """One message of the event stream."""

    number: int
    """Counts the messages since the server started."""
    view: WorldView
    """The world after the change."""
    events: tuple[WorldEvent, ...]
    """What happened."""
    pace: Pace
    """Whether and how fast the world runs."""
    reports: tuple[Reported, ...]
    """What agents report of themselves; nothing of it is part of the world."""


def view_of(state: WorldState, *, secrets: bool) -> WorldView:
    """The view for the experimenter (`secrets`) or for anybody."""
    return WorldView(
        tick=state.tick,
        ticks=state.ticks,
        grid=state.grid,
        charger=state.charger,
        dirty=state.dirty,
        obstacles=tuple(o for o in state.obstacles if o.visible or secrets),
        robots=state.robots,
        forbidden=state.forbidden if secrets else None,
        counters=state.counters if secrets else None,
        dynamics=state.dynamics if secrets else None,
        triggers=state.triggers if secrets else None,
        signs=state.signs,
        faults=tuple(one for one in state.faults if one.until > state.tick) if secrets else None,
        gadgets=state.gadgets if secrets else None,
        under_way=state.under_way if secrets else None,
        trails=tuple(_trail(robot, state.log[-_LOOKED_THROUGH:]) for robot in state.robots),
    )


def _trail(robot: Robot, log: tuple[LoggedAction, ...]) -> Trail:
    """The way of a robot since it was last put somewhere by hand."""
    way: list[Cell] = []
    for line in log:
        if line.robot == robot.id:
            way = way if way and way[-1] == line.position_before else [line.position_before]
            if line.result.position != way[-1]:
                way.append(line.result.position)
    if not way or way[-1] != robot.position:
        way = [robot.position]
    return Trail(robot=robot.id, cells=tuple(way[-TRAIL:]))
