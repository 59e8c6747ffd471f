"""The robot's forward model: what an action is predicted to do to its state. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vacuum_world.world import (
    CLEAN_COST,
    DIRECTIONS,
    FULL_BATTERY,
    MOVE_COST,
    Cell,
    Direction,
    distance,
    inside,
    neighbour,
)

from ._state import VacuumState
from ._telling import needed_charge

MOVE = "move_agent"
CLEAN = "clean_current_cell"
SENSE = "sense"

WAYS: Mapping[str, Direction] = {direction: direction for direction in DIRECTIONS}
"""Directions by name."""


def project(
    action: str,
    arguments: Mapping[str, Any],
    state: VacuumState,
    remembered: Mapping[Cell, str],
) -> VacuumState | None:
    """The predicted state, the unchanged one for actions that change nothing, or None.

    Args:
        action: The tool's name.
        arguments: Its arguments, which fit its schema.
        state: The state now; where nothing was sensed yet, nothing can be predicted.
        remembered: Cells that long-term memory holds for blocked, with the record's id.
    """
    if state.position is None:
        return None
    if action == MOVE:
        return _moved(state, state.position, WAYS[arguments["direction"]], remembered)
    if action == CLEAN:
        return _cleaned(state, state.position)
    return state


def _moved(
    state: VacuumState, here: Cell, direction: Direction, remembered: Mapping[Cell, str]
) -> VacuumState:
    if state.battery < MOVE_COST:
        return _spent(state, here, 0)
    there = neighbour(here, direction)
    into = _in_the_way(state, there, direction, remembered)
    if into is not None:
        stuck = state.model_copy(update={"bump": there, "bumps_into": into})
        return _spent(stuck, here, state.battery - MOVE_COST)
    arrived = state.model_copy(update={"bump": None, "blocked": type(state.blocked)()})
    return _spent(arrived, there, state.battery - MOVE_COST)


def _in_the_way(
    state: VacuumState, there: Cell, direction: Direction, remembered: Mapping[Cell, str]
) -> str | None:
    if not inside(there, state.grid):
        return "the edge of the grid"
    if there in state.obstacles and not state.feels_blocked(direction):
        return f"an obstacle at {there} that was felt before"
    if there in state.hidden:
        return f"an obstacle at {there} that it ran into before"
    if there in remembered:
        return f"an obstacle at {there} that record {remembered[there]} remembers"
    if state.feels_blocked(direction):
        return f"an obstacle at {there} that the sensors feel"
    return None


def _cleaned(state: VacuumState, here: Cell) -> VacuumState:
    if state.battery < CLEAN_COST:
        return _spent(state, here, 0)
    after = {
        "dirty": tuple(cell for cell in state.dirty if cell != here),
        "clean": tuple(sorted({*state.clean, here})),
        "done": tuple(sorted({*state.done, here})),
        "bump": None,
    }
    return _spent(state.model_copy(update=after), here, state.battery - CLEAN_COST)


def _spent(state: VacuumState, end: Cell, battery: int) -> VacuumState:
    """The state at `end` with this charge, after the charger's turn and the stranded check."""
    if end == state.charger:
        battery = FULL_BATTERY
    changes = {"position": end, "battery": battery, "stranded": battery == 0}
    return state.model_copy(update=changes)


def value(state: VacuumState) -> float | None:
    """How near its work is to being done: less dirt is better, and then a shorter way to it.

    None where the task is not known as cells. With too little charge for the nearest dirt and the
    way to the charger afterwards, the way to the charger counts instead. Distances are as the crow
    walks, round nothing. A step nearer is worth 0.5, a cleaned cell 1 or more.
    """
    here = state.position
    if here is None or state.work is None:
        return None
    value, nearest = -5.0 * len(state.left()), state.nearest()
    if nearest is None:
        return value
    if state.battery >= needed_charge(state):
        return value - 0.5 * distance(here, nearest)
    return value - 10 - 0.5 * distance(here, state.charger)
