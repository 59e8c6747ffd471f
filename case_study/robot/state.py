"""What the robot knows: its state, from readings, what actions predict of it, and in words."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from case_study.grid import CLEAN, MOVE, dirt_sensed, is_possible, ways_sensed
from vacuum_world.world import (
    CLEAN_COST,
    DIRECTIONS,
    FULL_BATTERY,
    MOVE_COST,
    Cell,
    Direction,
    DirtReading,
    ProximityReading,
    Reading,
    distance,
    inside,
    neighbour,
    state_line,
)

Sensor = Literal["dirt", "proximity"]
"""A sensor that can fall silent."""


class Ways(BaseModel):
    """Which of the four ways are felt to be blocked."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    north: bool = False
    """The way to the north."""
    east: bool = False
    """The way to the east."""
    south: bool = False
    """The way to the south."""
    west: bool = False
    """The way to the west."""

    def blocks(self, direction: Direction) -> bool:
        """Whether the way in this direction is felt to be blocked."""
        return bool(getattr(self, direction))


class VacuumState(BaseModel):
    """The robot's perceptual state: what was sensed now, and what was seen before."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    position: Cell | None = None
    """Its cell; None until something was sensed."""
    battery: int = 0
    """Charge left, 0 to 100."""
    charger: Cell = (0, 0)
    """The charger's cell."""
    grid: Cell = (0, 0)
    """Width and height of the grid."""
    stranded: bool = False
    """Whether the battery ran empty away from the charger."""
    blocked: Ways = Ways()
    """What the sensors feel around the robot."""
    dirty: tuple[Cell, ...] = ()
    """Cells that were dirty when they were last seen, sorted."""
    clean: tuple[Cell, ...] = ()
    """Cells that were clean when they were last seen, sorted."""
    obstacles: tuple[Cell, ...] = ()
    """Cells inside the grid that were felt to be blocked when they were last seen, sorted."""
    work: tuple[Cell, ...] | None = None
    """Cells that the task asks to clean, sorted; None where that is known from its text alone."""
    patrol: bool = False
    """Whether the work continues when all is clean, since dirt comes back."""
    done: tuple[Cell, ...] = ()
    """Those cells that this robot has cleaned or found clean underfoot, sorted."""
    forbidden: tuple[Cell, ...] = ()
    """Cells that a rule in force forbids to clean, sorted."""
    trail: tuple[Cell, ...] = ()
    """Cells that it has stood on since it last got something done, in order."""
    silent: tuple[Sensor, ...] = ()
    """Sensors without a value in the latest reading."""
    impossible: bool = False
    """Whether the proximity reading cannot be true: an open edge, or no way out at all."""
    fresh: bool = False
    """Whether the latest result held a whole reading, so that another would add nothing."""
    hidden: tuple[Cell, ...] = ()
    """Cells that a move could not enter although nothing was felt there, sorted."""
    bump: Cell | None = None
    """The cell that the latest move could not enter; None after any other action."""
    bumps_into: str | None = None
    """Only in predictions: what a move is expected to run into, and who says so."""

    def reading(self) -> Reading | None:
        """The latest reading of the sensors; None until something was sensed."""
        if self.position is None:
            return None
        here = self.position
        felt = None if "proximity" in self.silent else self.blocked

        def dirty(cell: Cell) -> bool | None:
            known = "dirt" not in self.silent and inside(cell, self.grid)
            return cell in self.dirty if known else None

        def blocked(direction: Direction) -> bool | None:
            return felt.blocks(direction) if felt else None

        return Reading(
            position=here,
            battery=self.battery,
            dirty=DirtReading(
                here=dirty(here),
                **{direction: dirty(neighbour(here, direction)) for direction in DIRECTIONS},
            ),
            blocked=ProximityReading(**{direction: blocked(direction) for direction in DIRECTIONS}),
            charger=self.charger,
            grid=self.grid,
            stranded=self.stranded,
        )

    def feels_blocked(self, direction: Direction) -> bool:
        """Whether the way in this direction is felt to be blocked, by a sensor to be believed."""
        return self.blocked.blocks(direction) and not self.impossible

    def left(self) -> tuple[Cell, ...]:
        """Dirt that is known and may be cleaned: the task's, and what was seen, sorted."""
        wanted = {*self.dirty, *(cell for cell in self.work or () if cell not in self.done)}
        return tuple(sorted(wanted - set(self.forbidden)))

    def nearest(self) -> Cell | None:
        """The nearest dirt that is left, obstacles ignored; None where none is known."""
        here = self.position
        if here is None:
            return None
        return min(self.left(), key=lambda cell: (distance(here, cell), cell), default=None)

    def wanted(self, cell: Cell) -> bool:
        """Whether the task asks to clean a cell that this robot has not cleaned yet."""
        return cell in (self.work or ()) and cell not in self.done

    def sensed(self, reading: Reading) -> VacuumState:
        """The state after a reading; what was seen of other cells stays."""
        here, silent, believed = reading.position, _silent(reading), is_possible(reading)
        seen = dict.fromkeys(self.clean, False) | dict.fromkeys(self.dirty, True)
        seen |= dirt_sensed(reading)
        blocked = dict.fromkeys(self.obstacles, True) | {here: False}
        blocked |= ways_sensed(reading) if believed else {}
        ways = {way: felt or False for way, felt in reading.blocked.model_dump().items()}
        return self.model_copy(
            update={
                "position": here,
                "battery": reading.battery,
                "charger": reading.charger,
                "grid": reading.grid,
                "stranded": reading.stranded,
                "blocked": Ways(**ways),
                "dirty": tuple(sorted(cell for cell, is_dirty in seen.items() if is_dirty)),
                "clean": tuple(sorted(cell for cell, is_dirty in seen.items() if not is_dirty)),
                "obstacles": tuple(sorted(cell for cell, felt in blocked.items() if felt)),
                "trail": self.trail if here in self.trail[-1:] else (*self.trail, here),
                "silent": silent,
                "impossible": not believed,
                "fresh": not silent,
                "hidden": tuple(cell for cell in self.hidden if cell != here),
                "bumps_into": None,
            }
        )


def state_of(
    reading: Reading | None, work: Collection[Cell] | None = None, *, patrol: bool = False
) -> VacuumState:
    """The state of a robot that has sensed so much, or nothing yet."""
    cells = None if work is None else tuple(sorted(work))
    state = VacuumState(work=cells, patrol=patrol)
    return state if reading is None else state.sensed(reading)


def _silent(reading: Reading) -> tuple[Sensor, ...]:
    dirt: tuple[Sensor, ...] = ("dirt",) if reading.dirty.here is None else ()
    felt = (getattr(reading.blocked, way) for way in DIRECTIONS)
    return dirt if any(value is not None for value in felt) else (*dirt, "proximity")


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
    here = state.position
    if action == CLEAN:
        return _cleaned(state, here)
    if action != MOVE:
        return state
    direction = WAYS[arguments["direction"]]
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


_NEAREST = 4
"""Dirty cells that are listed with their way; the others are only counted."""


def described(
    state: VacuumState, remembered: Mapping[Cell, str], *, readings: bool, words: bool = True
) -> str:
    """The state in words, what matters most last; or as a reading with what it lacks.

    Directions and distances ignore obstacles: they are no route.
    """
    reading = state.reading()
    if reading is None:
        return "Nothing has been sensed yet."
    lines: list[str] = []
    if readings:
        seen = {"seen dirty": state.dirty, "seen clean": state.clean}
        seen = {"you have cleaned": state.done, **seen, "seen blocked": state.obstacles}
        lines = [state_line(reading)]
        lines += [f"Cells {how}: {listed(cells)}." for how, cells in seen.items() if cells]
    lines += [
        f"Remembered: cell {cell} is blocked (record {record})."
        for cell, record in remembered.items()
    ]
    plainly = _plainly if words else _news
    return "\n".join([*lines, *plainly(state, reading.position, remembered)])


def described_prediction(state: VacuumState) -> str:
    """A predicted state in words: place, charge, and what is left to do."""
    here = state.position
    if here is None:
        return "nothing is known of it"
    blocked = " (blocked, the robot would stay)" if state.bumps_into else ""
    parts = [f"at {here}{blocked}", f"battery {state.battery}", _dirt(state, here)]
    if needed_charge(state) > state.battery:
        parts.append(_charger(state, here))
    return ", ".join(part.rstrip(".") for part in parts)


def listed(cells: Sequence[Cell]) -> str:
    """Cells one after another, each once."""
    return ", ".join(str(cell) for cell in dict.fromkeys(cells))


def _news(state: VacuumState, here: Cell, remembered: Mapping[Cell, str]) -> list[str]:
    """What neither a reading nor the lists of cells tell."""
    del remembered
    lines: list[str] = []
    if state.bump is not None:
        where = f"cell {state.bump}, {_way(here, state.bump)},"
        lines.append(f"Your latest move failed: {where} is blocked.")
    if state.forbidden:
        lines.append(f"Cleaning is forbidden there, leave it as it is: {listed(state.forbidden)}.")
    return [*lines, _dirt(state, here)]


def _plainly(state: VacuumState, here: Cell, remembered: Mapping[Cell, str]) -> list[str]:
    lines = [f"You are at {here}. {_underfoot(state, here)} Battery {state.battery}."]
    if state.stranded:
        lines.append("The battery is empty: the robot is stranded.")
    *news, dirt = _news(state, here, remembered)
    return [*lines, *news, _charger(state, here), dirt, _moves(state, here, remembered)]


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
    nearest = [f"{cell} {_way(here, cell)}" for cell in left[:_NEAREST]]
    further = len(left) - _NEAREST
    more = f"; and {further} more" if further > 0 else ""
    return f"Dirt left to clean: {'; '.join(nearest)}{more}."


def _charger(state: VacuumState, here: Cell) -> str:
    """Whether the charge is enough for the nearest dirt; the way to the charger where it is not."""
    if needed_charge(state) <= state.battery:
        return "The battery is enough for now."
    cost = distance(here, state.charger) * MOVE_COST
    return (
        f"The battery is low: the charger is {_way(here, state.charger)}, and the way takes {cost}."
    )


def needed_charge(state: VacuumState) -> int:
    """The charge for the nearest dirt and the way from there to the charger, obstacles ignored."""
    here = state.position
    if here is None:
        return 0
    nearest = state.nearest()
    if nearest is None:
        return distance(here, state.charger) * MOVE_COST
    steps = distance(here, nearest) + distance(nearest, state.charger)
    return steps * MOVE_COST + CLEAN_COST


def _moves(state: VacuumState, here: Cell, remembered: Mapping[Cell, str]) -> str:
    parts = [
        f"{way} is blocked"
        if is_blocked(state, way, remembered)
        else f"{way} leads to {neighbour(here, way)}{_nearing(state, here, neighbour(here, way))}"
        for way in DIRECTIONS
    ]
    return f"Moves: {'; '.join(parts)}."


def is_blocked(state: VacuumState, direction: Direction, remembered: Mapping[Cell, str]) -> bool:
    """Whether a move in this direction is known to be impossible."""
    if state.position is None:
        return False
    there = neighbour(state.position, direction)
    known = there in {*state.obstacles, *state.hidden, *remembered}
    return known or not inside(there, state.grid) or state.feels_blocked(direction)


def _nearing(state: VacuumState, here: Cell, there: Cell) -> str:
    """How a move changes the distance to the nearest dirt, obstacles ignored."""
    nearest = state.nearest()
    if there == state.charger:
        return ", the charger"
    if nearest is None:
        return ""
    if there in state.trail:
        return ", where you come from"
    return ", nearer to dirt" if distance(there, nearest) < distance(here, nearest) else ""


def _way(here: Cell, there: Cell) -> str:
    east, south = there[0] - here[0], there[1] - here[1]
    parts = [f"{abs(east)} {'east' if east > 0 else 'west'}"] if east else []
    parts += [f"{abs(south)} {'south' if south > 0 else 'north'}"] if south else []
    return f"{' and '.join(parts)} of you" if parts else "here"
