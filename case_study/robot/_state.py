"""What a robot knows of its world, as a frozen value that only sensors and tools change."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from pydantic import BaseModel, ConfigDict

from vacuum_world.world import (
    DIRECTIONS,
    Cell,
    Direction,
    DirtReading,
    ProximityReading,
    Reading,
    distance,
    inside,
    neighbour,
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
    """Whether the work goes on when all is clean, since dirt comes back."""
    done: tuple[Cell, ...] = ()
    """Those cells that this robot has cleaned or found clean underfoot, sorted."""
    forbidden: tuple[Cell, ...] = ()
    """Cells that a rule in force forbids to clean, sorted."""
    trail: tuple[Cell, ...] = ()
    """Cells that it has stood on since it last got something done, in order."""
    silent: tuple[Sensor, ...] = ()
    """Sensors that told nothing in the latest reading."""
    impossible: bool = False
    """Whether what the proximity sensor tells cannot be: an open edge, or no way out at all."""
    fresh: bool = False
    """Whether the latest result held a whole reading, so that another look would tell no more."""
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
            told = "dirt" not in self.silent and inside(cell, self.grid)
            return cell in self.dirty if told else None

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
        """The dirt that is left and nearest, as the crow walks; None where none is known."""
        here = self.position
        if here is None:
            return None
        return min(self.left(), key=lambda cell: (distance(here, cell), cell), default=None)

    def wanted(self, cell: Cell) -> bool:
        """Whether the task asks to clean a cell that this robot has not cleaned yet."""
        return cell in (self.work or ()) and cell not in self.done

    def sensed(self, reading: Reading) -> VacuumState:
        """The state after a reading; what was seen of other cells stays."""
        silent, believed = _silent(reading), _is_possible(reading)
        dirty, clean, felt = set(self.dirty), set(self.clean), set(self.obstacles)
        here = reading.position
        felt.discard(here)
        _sort_in(here, reading.dirty.here, dirty, clean)
        for direction in DIRECTIONS:
            cell = neighbour(here, direction)
            if inside(cell, reading.grid):
                _sort_in(cell, getattr(reading.dirty, direction), dirty, clean)
                blocked = getattr(reading.blocked, direction)
                if believed and blocked is not None:
                    felt.discard(cell)
                if believed and blocked:
                    felt.add(cell)
        ways = {way: told or False for way, told in reading.blocked.model_dump().items()}
        return self.model_copy(
            update={
                "position": here,
                "battery": reading.battery,
                "charger": reading.charger,
                "grid": reading.grid,
                "stranded": reading.stranded,
                "blocked": Ways(**ways),
                "dirty": tuple(sorted(dirty)),
                "clean": tuple(sorted(clean)),
                "obstacles": tuple(sorted(felt)),
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
    """The state of a robot that has sensed so much, or nothing yet.

    Args:
        reading: What its sensors say.
        work: Cells that its task asks to clean; None where that is not known as cells.
        patrol: Whether its work goes on when all is clean.
    """
    cells = None if work is None else tuple(sorted(work))
    told = VacuumState(work=cells, patrol=patrol)
    return told if reading is None else told.sensed(reading)


def _silent(reading: Reading) -> tuple[Sensor, ...]:
    felt = [getattr(reading.blocked, way) for way in DIRECTIONS]
    told: dict[Sensor, bool] = {
        "dirt": reading.dirty.here is not None,
        "proximity": any(value is not None for value in felt),
    }
    return tuple(sensor for sensor, tells in told.items() if not tells)


def _is_possible(reading: Reading) -> bool:
    """Whether a robot can stand where the ways are felt so."""
    felt = {way: getattr(reading.blocked, way) for way in DIRECTIONS}
    edges = [
        way for way in DIRECTIONS if not inside(neighbour(reading.position, way), reading.grid)
    ]
    return not all(felt.values()) and not any(felt[way] is False for way in edges)


def _sort_in(cell: Cell, is_dirty: bool | None, dirty: set[Cell], clean: set[Cell]) -> None:
    """Notes what was seen of a cell; nothing where the sensor told nothing."""
    if is_dirty is None:
        return
    dirty.discard(cell)
    clean.discard(cell)
    (dirty if is_dirty else clean).add(cell)
