"""The experimenter's hand: changes of the world that no robot makes."""

from __future__ import annotations

from typing import Annotated, Literal, assert_never

from pydantic import Field

from vacuum_world.errors import ImpossibleInterventionError

from .state import (
    Battery,
    Dynamics,
    EventKind,
    Obstacle,
    Step,
    Trigger,
    WorldEvent,
    WorldState,
    obstacle_cells,
    powered,
    robot_cells,
    robot_of,
    with_cell,
    with_robot,
    without_cell,
)
from .values import Cell, Value, inside


class AddObstacle(Value):
    """Put an obstacle on a free cell."""

    kind: Literal["add_obstacle"] = "add_obstacle"
    cell: Cell
    """Where."""
    visible: bool = True
    """Whether robots feel it by proximity."""


class RemoveObstacle(Value):
    """Take an obstacle away."""

    kind: Literal["remove_obstacle"] = "remove_obstacle"
    cell: Cell
    """Where it is."""


class AddDirt(Value):
    """Make a cell dirty."""

    kind: Literal["add_dirt"] = "add_dirt"
    cell: Cell
    """Which one."""


class RemoveDirt(Value):
    """Make a cell clean, without it counting as cleaned."""

    kind: Literal["remove_dirt"] = "remove_dirt"
    cell: Cell
    """Which one."""


class SetBattery(Value):
    """Set a robot's charge; more than 0 frees a stranded robot."""

    kind: Literal["set_battery"] = "set_battery"
    robot: str
    """Its id."""
    battery: Battery
    """The charge, 0 to 100; on the charger it is 100 at once."""


class PlaceRobot(Value):
    """Put a robot on a free cell."""

    kind: Literal["place_robot"] = "place_robot"
    robot: str
    """Its id."""
    cell: Cell
    """Where to."""


class ForbidCleaning(Value):
    """Forbid cleaning a cell: counted from now on, not enforced."""

    kind: Literal["forbid_cleaning"] = "forbid_cleaning"
    cell: Cell
    """Which one."""


class AllowCleaning(Value):
    """Take a prohibition back."""

    kind: Literal["allow_cleaning"] = "allow_cleaning"
    cell: Cell
    """Which one."""


class SetDynamics(Value):
    """Change what changes by itself."""

    kind: Literal["set_dynamics"] = "set_dynamics"
    dynamics: Dynamics
    """The new probabilities."""


class Arm(Value):
    """Arm a trigger that goes off inside the rules."""

    kind: Literal["arm"] = "arm"
    trigger: Trigger
    """What to wait for, and what to do then."""


_OnCell = AddObstacle | RemoveObstacle | AddDirt | RemoveDirt | ForbidCleaning | AllowCleaning
_OnRobot = SetBattery | PlaceRobot

Intervention = Annotated[_OnCell | _OnRobot | SetDynamics | Arm, Field(discriminator="kind")]
"""Any intervention; `kind` says which."""


def intervene(state: WorldState, intervention: Intervention) -> Step[None]:
    """Apply an intervention.

    Raises:
        ImpossibleInterventionError: It would break the world (the message says how).
        UnknownRobotError: It names a robot that is not here.
    """
    match intervention:
        case SetBattery() | PlaceRobot():
            return _on_robot(state, intervention)
        case SetDynamics(dynamics=dynamics):
            after = state.model_copy(update={"dynamics": dynamics})
            return _done(after, "changed", f"the dynamics are now {dynamics!r}")
        case Arm(trigger=trigger):
            cell = trigger.target if trigger.kind == "wall_on_approach" else trigger.cell
            _need_inside(state, cell)
            after = state.model_copy(update={"triggers": (*state.triggers, trigger)})
            return _done(after, "changed", f"armed: {trigger!r}")
        case _:
            _need_inside(state, intervention.cell)
            return _on_cell(state, intervention)


def _done(
    state: WorldState, kind: EventKind, text: str, cell: Cell | None = None, secret: bool = True
) -> Step[None]:
    event = WorldEvent(kind=kind, tick=state.tick, cell=cell, text=text, secret=secret)
    return Step(state=state, result=None, events=(event,))


def _need_inside(state: WorldState, cell: Cell) -> None:
    if not inside(cell, state.grid):
        raise ImpossibleInterventionError(f"cell {cell} lies outside the grid {state.grid}")


def _need_free(state: WorldState, cell: Cell) -> None:
    _need_inside(state, cell)
    if cell in obstacle_cells(state):
        raise ImpossibleInterventionError(f"an obstacle stands on {cell}; remove it first")
    if cell in robot_cells(state):
        raise ImpossibleInterventionError(f"a robot stands on {cell}; place it elsewhere first")


def _on_cell(state: WorldState, intervention: _OnCell) -> Step[None]:
    cell = intervention.cell
    match intervention:
        case AddObstacle() | RemoveObstacle():
            return _on_obstacle(state, intervention)
        case AddDirt():
            after = state.model_copy(update={"dirty": with_cell(state.dirty, cell)})
            return _done(after, "dirt_appeared", f"{cell} was made dirty", cell, secret=False)
        case RemoveDirt():
            after = state.model_copy(update={"dirty": without_cell(state.dirty, cell)})
            return _done(after, "dirt_removed", f"{cell} was made clean", cell, secret=False)
        case ForbidCleaning():
            after = state.model_copy(update={"forbidden": with_cell(state.forbidden, cell)})
            return _done(after, "cell_forbidden", f"cleaning {cell} is forbidden now", cell)
        case AllowCleaning():
            after = state.model_copy(update={"forbidden": without_cell(state.forbidden, cell)})
            return _done(after, "cell_allowed", f"cleaning {cell} is allowed again", cell)
        case _:
            assert_never(intervention)


def _on_obstacle(state: WorldState, intervention: AddObstacle | RemoveObstacle) -> Step[None]:
    cell = intervention.cell
    if isinstance(intervention, AddObstacle):
        _need_free(state, cell)
        if cell == state.charger:
            raise ImpossibleInterventionError(f"{cell} is the charger: no obstacle may stand there")
        added = Obstacle(cell=cell, visible=intervention.visible)
        after = state.model_copy(update={"obstacles": (*state.obstacles, added)})
        text = f"an obstacle was put on {cell}"
        return _done(after, "obstacle_appeared", text, cell, not intervention.visible)
    removed = [obstacle for obstacle in state.obstacles if obstacle.cell == cell]
    if not removed:
        raise ImpossibleInterventionError(f"no obstacle stands on {cell}")
    left = tuple(obstacle for obstacle in state.obstacles if obstacle.cell != cell)
    after = state.model_copy(update={"obstacles": left})
    text = f"the obstacle on {cell} was removed"
    return _done(after, "obstacle_removed", text, cell, not removed[0].visible)


def _on_robot(state: WorldState, intervention: _OnRobot) -> Step[None]:
    robot = robot_of(state, intervention.robot)
    if isinstance(intervention, SetBattery):
        changed = robot.model_copy(update={"battery": intervention.battery})
        text = f"{robot.name}'s battery was set to {intervention.battery}"
    else:
        _need_free(state, intervention.cell)
        changed = robot.model_copy(update={"position": intervention.cell})
        text = f"{robot.name} was put on {intervention.cell}"
    changed = powered(changed, state.charger)
    return _done(with_robot(state, changed), "changed", text, changed.position, secret=False)
