"""The whole world as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Generic, Literal, Self, TypeVar

from pydantic import Field, StringConstraints, model_validator

from vacuum_world.errors import UnknownRobotError

from ._chance import Streams
from ._mechanics import Gadget, SensorFault, Sign, SlowCleaning
from ._record import Counters, LoggedAction, WorldEvent
from ._values import Cell, Value, inside

FULL_BATTERY = 100
"""What the charger restores."""
MOVE_COST = 5
"""Charge a move takes, blocked or not."""
CLEAN_COST = 10
"""Charge a cleaning takes, successful or not."""

LOG_KEPT = 10_000
"""Lines of the action log that are kept; repeated ids are found among these."""

TickMode = Literal["action", "manual", "clock"]
"""When time passes: after every action, by hand only, or by the server's clock."""

Probability = Annotated[float, Field(ge=0, le=1)]
Battery = Annotated[int, Field(ge=0, le=FULL_BATTERY)]
RobotName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=64)]


class Dynamics(Value):
    """What may change without a robot doing it; the defaults are the paper's."""

    obstacle_mobility: Probability = 0.2
    """Per tick and obstacle: it moves to a random free cell."""
    dirt_entropy: Probability = 0.3
    """Per tick and clean cell that was cleaned before: it turns dirty."""
    clean_uncertainty: Probability = 0.4
    """Per cleaning: it fails; half of the failures are reported as success."""


STILL = Dynamics(obstacle_mobility=0, dirt_entropy=0, clean_uncertainty=0)
"""No dynamics: nothing changes but by robots and interventions."""


class Obstacle(Value):
    """Something that blocks a cell."""

    cell: Cell
    """Where it stands."""
    visible: bool = True
    """Whether robots next to it feel it before they bump into it."""


class Robot(Value):
    """A robot that somebody drives."""

    id: str
    """Unique in this world, such as `r1`."""
    name: RobotName
    """Unique in this world, chosen by whoever joined."""
    position: Cell
    """Where it is."""
    battery: Battery
    """Charge left."""
    stranded: bool = False
    """Whether the battery ran empty away from the charger."""


class Spawn(Value):
    """Where robots that join begin (the nearest free cell, if it is taken)."""

    position: Cell
    """The cell."""
    battery: Battery = FULL_BATTERY
    """The charge they begin with."""


class WallOnApproach(Value):
    """Armed: the first move that nears `target` meets a hidden obstacle in its destination.

    It waits for a move whose destination is free, is not where robots begin (so that the same
    world can be met again with the wall in place), and leaves the target reachable.
    """

    kind: Literal["wall_on_approach"] = "wall_on_approach"
    target: Cell
    """The cell that robots must near to set it off."""


class ForbidAfterActions(Value):
    """Armed: once `actions` actions were taken, cleaning `cell` is forbidden."""

    kind: Literal["forbid_after_actions"] = "forbid_after_actions"
    cell: Cell
    """The cell."""
    actions: Annotated[int, Field(ge=0)]
    """How many actions it waits for, those of all robots counted."""


Trigger = Annotated[WallOnApproach | ForbidAfterActions, Field(discriminator="kind")]


class WorldState(Value):
    """Everything there is to know; the rules are functions from this to the next one."""

    version: Literal[1] = 1
    """Version of this format."""
    seed: int
    """The seed it was built from."""
    grid: tuple[Annotated[int, Field(ge=2, le=50)], Annotated[int, Field(ge=2, le=50)]] = (5, 5)
    """Width and height."""
    charger: Cell = (0, 0)
    """The cell that restores the battery."""
    ticks: TickMode = "action"
    """When time passes."""
    tick: Annotated[int, Field(ge=0)] = 0
    """Ticks passed."""
    dynamics: Dynamics = Dynamics()
    """What changes by itself."""
    dirty: tuple[Cell, ...] = ()
    """Dirty cells, sorted."""
    cleaned: tuple[Cell, ...] = ()
    """Cells that were cleaned at least once, sorted; dirt may be back."""
    obstacles: tuple[Obstacle, ...] = ()
    """Obstacles, in a fixed order."""
    robots: tuple[Robot, ...] = ()
    """Robots, in order of joining."""
    joined: Annotated[int, Field(ge=0)] = 0
    """How many robots ever joined; the next one's number."""
    spawn: Spawn | None = None
    """Where robots begin; None means at the charger with a full battery."""
    streams: Streams
    """Where chance stands."""
    triggers: tuple[Trigger, ...] = ()
    """Interventions that wait for their moment."""
    forbidden: tuple[Cell, ...] = ()
    """Cells that must not be cleaned, sorted; counted, not enforced."""
    faults: tuple[SensorFault, ...] = ()
    """Sensors that fail for a while, earliest first."""
    gadgets: tuple[Gadget, ...] = ()
    """What robots can use besides moving and cleaning."""
    signs: tuple[Sign, ...] = ()
    """What stands to be read."""
    clean_delay: Annotated[int, Field(ge=0, le=50)] = 0
    """Ticks until a cleaning shows; 0 means at once."""
    under_way: tuple[SlowCleaning, ...] = ()
    """Cleanings that do not show yet, in the order in which they were begun."""
    counters: Counters = Counters()
    """Totals."""
    log: tuple[LoggedAction, ...] = ()
    """The latest actions, oldest first."""

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        places = [o.cell for o in self.obstacles] + [r.position for r in self.robots]
        if len(set(places)) < len(places):
            raise ValueError("two obstacles or robots share a cell")
        if self.charger in {o.cell for o in self.obstacles}:
            raise ValueError(f"an obstacle stands on the charger {self.charger}")
        for cell in self._cells_named():
            if not inside(cell, self.grid):
                raise ValueError(f"cell {cell} lies outside the grid {self.grid}")
        for what in ("id", "name"):
            names = [getattr(robot, what) for robot in self.robots]
            if len(set(names)) < len(names):
                raise ValueError(f"two robots have the same {what}")
        gadgets = [gadget.name for gadget in self.gadgets]
        if len(set(gadgets)) < len(gadgets):
            raise ValueError("two gadgets have the same name")
        return self

    def _cells_named(self) -> list[Cell]:
        things = [*self.obstacles, *self.signs, *self.under_way]
        spawn = [self.spawn.position] if self.spawn else []
        robots = [robot.position for robot in self.robots]
        floor = [*self.dirty, *self.cleaned, *self.forbidden]
        return [self.charger, *(thing.cell for thing in things), *spawn, *robots, *floor]


ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Generic[ResultT]):
    """What a rule gives back: the world after it, its result, and what happened."""

    state: WorldState
    """The world afterwards."""
    result: ResultT
    """What the caller is told."""
    events: tuple[WorldEvent, ...] = ()
    """What happened, in order."""


def robot_of(state: WorldState, robot_id: str) -> Robot:
    """The robot with this id.

    Raises:
        UnknownRobotError: There is none.
    """
    for robot in state.robots:
        if robot.id == robot_id:
            return robot
    raise UnknownRobotError(robot_id, (robot.id for robot in state.robots))


def with_robot(state: WorldState, robot: Robot) -> WorldState:
    """The state in which the robot of this id is as given."""
    robots = tuple(robot if robot.id == other.id else other for other in state.robots)
    return state.model_copy(update={"robots": robots})


def obstacle_cells(state: WorldState) -> frozenset[Cell]:
    """Where obstacles stand, hidden ones included."""
    return frozenset(obstacle.cell for obstacle in state.obstacles)


def robot_cells(state: WorldState) -> frozenset[Cell]:
    """Where robots are."""
    return frozenset(robot.position for robot in state.robots)


def with_cell(cells: tuple[Cell, ...], cell: Cell) -> tuple[Cell, ...]:
    """The sorted cells with `cell` among them."""
    return cells if cell in cells else tuple(sorted((*cells, cell)))


def without_cell(cells: tuple[Cell, ...], cell: Cell) -> tuple[Cell, ...]:
    """The cells without `cell`."""
    return tuple(other for other in cells if other != cell)


def powered(robot: Robot, charger: Cell) -> Robot:
    """The robot after the charger's turn and, only then, the stranded check."""
    battery = FULL_BATTERY if robot.position == charger else robot.battery
    return robot.model_copy(update={"battery": battery, "stranded": battery == 0})
