"""What robots do: move, clean and use gadgets, with their price and their failures."""

from __future__ import annotations

from typing import Any

from vacuum_world.errors import UnknownGadgetError

from ._acting import Effect, Request, finish, refuse
from ._chance import draw
from ._mechanics import Gadget, Manual, SlowCleaning
from ._record import Failure, LoggedAction
from ._state import (
    CLEAN_COST,
    MOVE_COST,
    Robot,
    Step,
    WorldState,
    obstacle_cells,
    robot_cells,
    robot_of,
    with_cell,
    without_cell,
)
from ._triggers import before_move
from ._values import Cell, Direction, inside, neighbour


def move(
    state: WorldState, robot_id: str, direction: Direction, action_id: str | None = None
) -> Step[LoggedAction]:
    """Move a robot one cell; the log line says what came of it.

    Raises:
        UnknownRobotError: No robot has this id.
    """
    robot = robot_of(state, robot_id)
    request = Request(robot=robot, action="move", direction=direction, action_id=action_id)
    if robot.stranded:
        return refuse(state, request)
    if robot.battery < MOVE_COST:
        return finish(state, request, _drained(robot, "a move", MOVE_COST))
    destination = neighbour(robot.position, direction)
    state, events = before_move(state, robot, destination)
    return finish(state, request, _moved(state, robot, direction, destination), events)


def clean(state: WorldState, robot_id: str, action_id: str | None = None) -> Step[LoggedAction]:
    """Let a robot clean the cell it is on; the log line says what came of it.

    Raises:
        UnknownRobotError: No robot has this id.
    """
    robot = robot_of(state, robot_id)
    request = Request(robot=robot, action="clean", action_id=action_id)
    if robot.stranded:
        return refuse(state, request)
    if robot.battery < CLEAN_COST:
        return finish(state, request, _drained(robot, "a cleaning", CLEAN_COST))
    state, effect = _cleaned(state, robot)
    return finish(state, request, effect)


def use(
    state: WorldState, robot_id: str, gadget: str, action_id: str | None = None
) -> Step[LoggedAction]:
    """Let a robot use a gadget: it costs charge and does nothing, whatever is promised.

    Raises:
        UnknownRobotError: No robot has this id.
        UnknownGadgetError: The world has no gadget of this name.
    """
    robot = robot_of(state, robot_id)
    found = gadget_of(state, gadget)
    request = Request(robot=robot, action="use", gadget=gadget, action_id=action_id)
    if robot.stranded:
        return refuse(state, request)
    if robot.battery < found.cost:
        return finish(state, request, _drained(robot, f"{gadget}", found.cost))
    effect = Effect(
        kind="used",
        position=robot.position,
        battery=robot.battery - found.cost,
        failure="deterministic" if found.admits else None,
        reason=f"{gadget} had no effect" if found.admits else None,
    )
    return finish(state, request, effect)


def gadget_of(state: WorldState, name: str) -> Gadget:
    """The gadget of this name.

    Raises:
        UnknownGadgetError: There is none.
    """
    for gadget in state.gadgets:
        if gadget.name == name:
            return gadget
    raise UnknownGadgetError(name, (gadget.name for gadget in state.gadgets))


def manuals(state: WorldState) -> tuple[Manual, ...]:
    """What robots are told of the world's gadgets: promises, not truths."""
    return tuple(Manual(name=gadget.name, promise=gadget.promise) for gadget in state.gadgets)


def _drained(robot: Robot, what: str, cost: int) -> Effect:
    return Effect(
        kind="drained",
        position=robot.position,
        battery=0,
        failure="deterministic",
        reason=f"{what} needs {cost} but the battery held {robot.battery}: it is drained, "
        "nothing was done",
    )


def _moved(state: WorldState, robot: Robot, direction: Direction, destination: Cell) -> Effect:
    battery = robot.battery - MOVE_COST
    blocker, failure = _blocker(state, destination)
    if blocker is None:
        return Effect(
            kind="moved",
            position=destination,
            battery=battery,
            reason=_read_at(state, destination),
        )
    return Effect(
        kind="blocked",
        position=robot.position,
        battery=battery,
        failure=failure,
        reason=f"blocked by {blocker} to the {direction}",
        bumped_into=destination,
    )


def _read_at(state: WorldState, cell: Cell) -> str | None:
    """What a robot reads that arrives at a cell."""
    texts = [sign.text for sign in state.signs if sign.cell == cell]
    return f'a sign here reads: "{" / ".join(texts)}"' if texts else None


def _blocker(state: WorldState, cell: Cell) -> tuple[str | None, Failure | None]:
    if not inside(cell, state.grid):
        return "the edge of the grid", "deterministic"
    if cell in obstacle_cells(state):
        return "an obstacle", "deterministic"
    if cell in robot_cells(state):
        return "another robot", "transient"
    return None, None


def _cleaned(state: WorldState, robot: Robot) -> tuple[WorldState, Effect]:
    here = robot.position
    common: dict[str, Any] = {
        "position": here,
        "battery": robot.battery - CLEAN_COST,
        "violation": here in state.forbidden,
    }
    if here not in state.dirty:
        reason = "the cell is already clean"
        failed = Effect(
            kind="clean_failed", failure="deterministic", reason=reason, needless=True, **common
        )
        return state, failed
    number, stream = draw(state.streams.cleaning)
    streams = state.streams.model_copy(update={"cleaning": stream})
    state = state.model_copy(update={"streams": streams})
    if number < state.dynamics.clean_uncertainty / 2:
        reason = "the cleaning failed, the cell is still dirty"
        return state, Effect(kind="clean_failed", failure="transient", reason=reason, **common)
    if state.clean_delay and number >= state.dynamics.clean_uncertainty:
        return _begun(state, here, common)
    changes: dict[str, Any] = {"cleaned": with_cell(state.cleaned, here)}
    if number < state.dynamics.clean_uncertainty:
        return state.model_copy(update=changes), Effect(kind="cleaned", **common)
    changes["dirty"] = without_cell(state.dirty, here)
    return state.model_copy(update=changes), Effect(kind="cleaned", cleaned=True, **common)


def _begun(state: WorldState, here: Cell, common: dict[str, Any]) -> tuple[WorldState, Effect]:
    """A cleaning that shows later; begun again, it takes as long again."""
    before = tuple(begun for begun in state.under_way if begun.cell != here)
    begun = SlowCleaning(cell=here, due=state.tick + state.clean_delay)
    effect = Effect(
        kind="cleaning_begun",
        reason="the cleaner was applied",
        needless=len(before) < len(state.under_way),
        **common,
    )
    return state.model_copy(update={"under_way": (*before, begun)}), effect
