"""The robot's state in plain words: what a small model can act upon without working it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vacuum_world.world import (
    CLEAN_COST,
    DIRECTIONS,
    MOVE_COST,
    Cell,
    Direction,
    Reading,
    distance,
    inside,
    neighbour,
    state_line,
)

from ._state import VacuumState

_NEAREST = 4
"""Cells with dirt that are told with their way; of further ones only how many there are."""


def told(state: VacuumState, remembered: Mapping[Cell, str], *, readings: bool) -> str:
    """The state in words, what matters most last.

    Directions and distances are as the crow walks, round nothing: they are no route.

    Args:
        state: What the robot perceives.
        remembered: Cells that recalled records hold for blocked, with the record's id.
        readings: Whether the reading as it came, and all that was seen before, stands above.
    """
    reading = state.reading()
    if reading is None:
        return "Nothing has been sensed yet."
    lines = _readings(state, reading) if readings else []
    lines += [
        f"Remembered: cell {cell} is blocked (record {record})."
        for cell, record in remembered.items()
    ]
    return "\n".join([*lines, *_plainly(state, remembered)])


def foretold(state: VacuumState) -> str:
    """What a predicted state comes to, in words: place, charge, and what is left to do."""
    here = state.position
    if here is None:
        return "nothing is known of it"
    blocked = " (blocked, the robot would stay)" if state.bumps_into else ""
    parts = [f"at {here}{blocked}", f"battery {state.battery}", _dirt(state, here)]
    if needed_charge(state) > state.battery:
        parts.append(_charger(state, here))
    return ", ".join(part.rstrip(".") for part in parts)


def _readings(state: VacuumState, reading: Reading) -> list[str]:
    seen = {"dirty": state.dirty, "clean": state.clean, "blocked": state.obstacles}
    lines = [state_line(reading)]
    if state.done:
        lines.append(f"Cells you have cleaned: {listed(state.done)}.")
    lines += [f"Cells seen {how}: {listed(cells)}." for how, cells in seen.items() if cells]
    return lines


def listed(cells: Sequence[Cell]) -> str:
    """Cells one after another, each once."""
    return ", ".join(str(cell) for cell in dict.fromkeys(cells))


def _plainly(state: VacuumState, remembered: Mapping[Cell, str]) -> list[str]:
    here = state.position
    if here is None:
        return []
    lines = [f"You are at {here}. {_underfoot(state, here)} Battery {state.battery}."]
    if state.stranded:
        lines.append("The battery is empty: the robot is stranded.")
    if state.bump is not None:
        lines.append(f"Your latest move failed: {_where(here, state.bump)} is blocked.")
    if state.forbidden:
        lines.append(f"Cleaning is forbidden there, leave it as it is: {listed(state.forbidden)}.")
    return [*lines, _charger(state, here), _dirt(state, here), _moves(state, here, remembered)]


def _underfoot(state: VacuumState, here: Cell) -> str:
    if here in state.forbidden:
        return "This cell must not be cleaned."
    if "dirt" in state.silent:
        return "The dirt sensor tells nothing."
    if here in state.dirty:
        again = ", although you have cleaned it" if here in state.done else ""
        return f"This cell is dirty{again}."
    return "This cell is said to be dirty." if state.wanted(here) else "This cell is clean."


def _dirt(state: VacuumState, here: Cell) -> str:
    left = sorted(state.left(), key=lambda cell: (distance(here, cell), cell))
    if not left:
        return "No dirt is left that you know of."
    told = [f"{cell} {_way(here, cell)}" for cell in left[:_NEAREST]]
    further = len(left) - _NEAREST
    more = f"; and {further} more" if further > 0 else ""
    return f"Dirt left to clean: {'; '.join(told)}{more}."


def _charger(state: VacuumState, here: Cell) -> str:
    """Whether the charge is enough for the nearest dirt; the way to the charger where it is not."""
    if needed_charge(state) <= state.battery:
        return "The battery is enough for now."
    cost = distance(here, state.charger) * MOVE_COST
    return (
        f"The battery is low: the charger is {_way(here, state.charger)}, and the way takes {cost}."
    )


def needed_charge(state: VacuumState) -> int:
    """What the nearest dirt and the way to the charger afterwards take, as the crow walks."""
    here = state.position
    if here is None:
        return 0
    nearest = state.nearest()
    if nearest is None:
        return distance(here, state.charger) * MOVE_COST
    steps = distance(here, nearest) + distance(nearest, state.charger)
    return steps * MOVE_COST + CLEAN_COST


def _moves(state: VacuumState, here: Cell, remembered: Mapping[Cell, str]) -> str:
    parts: list[str] = []
    nearest = state.nearest()
    for direction in DIRECTIONS:
        there = neighbour(here, direction)
        if is_blocked(state, direction, remembered):
            parts.append(f"{direction} is blocked")
        else:
            parts.append(f"{direction} leads to {there}{_nearing(state, here, there, nearest)}")
    return f"Moves: {'; '.join(parts)}."


def is_blocked(state: VacuumState, direction: Direction, remembered: Mapping[Cell, str]) -> bool:
    """Whether a move in this direction is known to be impossible."""
    if state.position is None:
        return False
    there = neighbour(state.position, direction)
    known = there in {*state.obstacles, *state.hidden, *remembered}
    return known or not inside(there, state.grid) or state.feels_blocked(direction)


def _nearing(state: VacuumState, here: Cell, there: Cell, nearest: Cell | None) -> str:
    """How a move changes the distance to the nearest dirt, as the crow walks."""
    if there == state.charger:
        return ", the charger"
    if nearest is None:
        return ""
    if there in state.trail:
        return ", where you come from"
    return ", nearer to dirt" if distance(there, nearest) < distance(here, nearest) else ""


def _way(here: Cell, there: Cell) -> str:
    return f"{_where_from(here, there)} of you" if here != there else "here"


def _where(here: Cell, there: Cell) -> str:
    return f"cell {there}, {_way(here, there)},"


def _where_from(here: Cell, there: Cell) -> str:
    east, south = there[0] - here[0], there[1] - here[1]
    parts = [
        f"{abs(east)} {'east' if east > 0 else 'west'}" if east else "",
        f"{abs(south)} {'south' if south > 0 else 'north'}" if south else "",
    ]
    return " and ".join(part for part in parts if part)
