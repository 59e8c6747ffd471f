"""What robots perceive: their cell, its four neighbours, their battery. Free of charge.

A sensor that fails reads wrongly or not at all (`SensorFault`); the world stays the same.
"""

from __future__ import annotations

import json

from pydantic import ValidationError

from .state import SensorFault, SensorName, WorldState, robot_cells, robot_of
from .values import Cell, Value, inside, neighbour


class DirtReading(Value):
    """Dirt here and next door; None outside the grid, and everywhere if the sensor is silent."""

    here: bool | None
    """This cell is dirty."""
    north: bool | None
    """The cell to the north is dirty."""
    east: bool | None
    """The cell to the east is dirty."""
    south: bool | None
    """The cell to the south is dirty."""
    west: bool | None
    """The cell to the west is dirty."""


class ProximityReading(Value):
    """What blocks the four ways; hidden obstacles are not felt. None if the sensor is silent."""

    north: bool | None
    """An obstacle, a robot or the edge of the grid is to the north."""
    east: bool | None
    """The same to the east."""
    south: bool | None
    """The same to the south."""
    west: bool | None
    """The same to the west."""


class PositionReading(Value):
    """Where the robot is, and the two things every robot knows of its world."""

    position: Cell
    """This robot's cell."""
    charger: Cell
    """The charger's cell."""
    grid: Cell
    """Width and height of the grid."""


class BatteryReading(Value):
    """The charge left."""

    battery: int
    """0 to 100."""
    stranded: bool
    """Whether the battery ran empty away from the charger."""


class Reading(Value):
    """All sensors at one moment."""

    position: Cell
    """This robot's cell."""
    battery: int
    """0 to 100."""
    dirty: DirtReading
    """Dirt here and next door."""
    blocked: ProximityReading
    """What blocks the four ways."""
    charger: Cell
    """The charger's cell."""
    grid: Cell
    """Width and height of the grid."""
    stranded: bool
    """Whether the battery ran empty away from the charger."""


def sense_position(state: WorldState, robot_id: str) -> PositionReading:
    """Where the robot, the charger and the grid's bounds are."""
    position = robot_of(state, robot_id).position
    return PositionReading(position=position, charger=state.charger, grid=state.grid)


def fault_of(state: WorldState, sensor: SensorName) -> SensorFault | None:
    """What is wrong with a sensor now; None where it is well."""
    for fault in state.faults:
        if fault.sensor == sensor and fault.since <= state.tick < fault.until:
            return fault
    return None


def _as_sensed(truth: bool, fault: SensorFault | None) -> bool | None:
    match fault.kind if fault else "well":
        case "silent":
            return None
        case "inverted":
            return not truth
        case "stuck":
            return False
        case _:
            return truth


def sense_dirty(state: WorldState, robot_id: str) -> DirtReading:
    """Dirt on the robot's cell and its four neighbours, as the sensor reports it."""
    here = robot_of(state, robot_id).position
    fault = fault_of(state, "dirt")

    def dirty(cell: Cell) -> bool | None:
        return _as_sensed(cell in state.dirty, fault) if inside(cell, state.grid) else None

    return DirtReading(
        here=dirty(here),
        north=dirty(neighbour(here, "north")),
        east=dirty(neighbour(here, "east")),
        south=dirty(neighbour(here, "south")),
        west=dirty(neighbour(here, "west")),
    )


def sense_proximity(state: WorldState, robot_id: str) -> ProximityReading:
    """Which of the four ways are blocked, as far as the robot can feel it."""
    here = robot_of(state, robot_id).position
    felt = {o.cell for o in state.obstacles if o.visible} | robot_cells(state)
    fault = fault_of(state, "proximity")

    def blocked(cell: Cell) -> bool | None:
        return _as_sensed(cell in felt or not inside(cell, state.grid), fault)

    return ProximityReading(
        north=blocked(neighbour(here, "north")),
        east=blocked(neighbour(here, "east")),
        south=blocked(neighbour(here, "south")),
        west=blocked(neighbour(here, "west")),
    )


def sense_battery(state: WorldState, robot_id: str) -> BatteryReading:
    """The robot's charge."""
    robot = robot_of(state, robot_id)
    return BatteryReading(battery=robot.battery, stranded=robot.stranded)


def sense(state: WorldState, robot_id: str) -> Reading:
    """All sensors at once."""
    where = sense_position(state, robot_id)
    charge = sense_battery(state, robot_id)
    return Reading(
        position=where.position,
        battery=charge.battery,
        dirty=sense_dirty(state, robot_id),
        blocked=sense_proximity(state, robot_id),
        charger=where.charger,
        grid=where.grid,
        stranded=charge.stranded,
    )


_STATE = "STATE "


def state_line(reading: Reading) -> str:
    """The one line in which agents are shown a reading: `STATE {json}`."""
    return _STATE + json.dumps(reading.model_dump(mode="json"), separators=(",", ":"))


def last_state_line(text: str) -> Reading | None:
    """The reading of the last well-formed `STATE` line in a text, or None."""
    for line in reversed(text.splitlines()):
        if line.startswith(_STATE):
            try:
                return Reading.model_validate_json(line.removeprefix(_STATE))
            except ValidationError:
                continue
    return None
