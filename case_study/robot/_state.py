"""What a robot knows of its world, as a frozen value that only sensors and tools change."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from vacuum_world.world import (
    DIRECTIONS,
    Cell,
    Direction,
    DirtReading,
    ProximityReading,
    Reading,
    inside,
    neighbour,
)


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
    bump: Cell | None = None
    """The cell that the latest move could not enter; None after any other action."""
    bumps_into: str | None = None
    """Only in predictions: what a move is expected to run into, and who says so."""

    def reading(self) -> Reading | None:
        """The latest reading of the sensors; None until something was sensed."""
        if self.position is None:
            return None
        here = self.position

        def dirty(direction: Direction) -> bool | None:
            cell = neighbour(here, direction)
            return cell in self.dirty if inside(cell, self.grid) else None

        return Reading(
            position=here,
            battery=self.battery,
            dirty=DirtReading(
                here=here in self.dirty,
                north=dirty("north"),
                east=dirty("east"),
                south=dirty("south"),
                west=dirty("west"),
            ),
            blocked=ProximityReading(**self.blocked.model_dump()),
            charger=self.charger,
            grid=self.grid,
            stranded=self.stranded,
        )

    def sensed(self, reading: Reading) -> VacuumState:
        """The state after a reading; what was seen of other cells stays."""
        dirty, clean, felt = set(self.dirty), set(self.clean), set(self.obstacles)
        here = reading.position
        felt.discard(here)
        _sort_in(here, reading.dirty.here, dirty, clean)
        for direction in DIRECTIONS:
            cell = neighbour(here, direction)
            if inside(cell, reading.grid):
                _sort_in(cell, bool(getattr(reading.dirty, direction)), dirty, clean)
                felt.discard(cell)
                if getattr(reading.blocked, direction):
                    felt.add(cell)
        return VacuumState(
            position=here,
            battery=reading.battery,
            charger=reading.charger,
            grid=reading.grid,
            stranded=reading.stranded,
            blocked=Ways(**reading.blocked.model_dump()),
            dirty=tuple(sorted(dirty)),
            clean=tuple(sorted(clean)),
            obstacles=tuple(sorted(felt)),
            bump=self.bump,
        )


def state_of(reading: Reading | None) -> VacuumState:
    """The state of a robot that has sensed so much, or nothing yet."""
    return VacuumState() if reading is None else VacuumState().sensed(reading)


def _sort_in(cell: Cell, is_dirty: bool, dirty: set[Cell], clean: set[Cell]) -> None:
    dirty.discard(cell)
    clean.discard(cell)
    (dirty if is_dirty else clean).add(cell)
