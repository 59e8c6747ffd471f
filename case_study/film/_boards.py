"""What stands on the grid at one moment, read from what a trace holds of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ValidationError

from case_study.robot import VacuumState
from vacuum_world.world import DIRECTIONS, Cell, Reading, inside, neighbour

_LARGEST = 50
"""Cells along a side, as in the world's own format."""
_NOTHING: frozenset[Cell] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One grid, as it is or as it is believed."""

    grid: Cell
    """Width and height."""
    charger: Cell
    robot: Cell | None
    """Where the run's robot is; None where that is not known."""
    battery: int
    """0 to 100."""
    stranded: bool
    dirty: frozenset[Cell]
    known: frozenset[Cell] | None = None
    """Cells that were ever seen; None where all is known."""
    obstacles: frozenset[Cell]
    hidden: frozenset[Cell] = _NOTHING
    """Those of the obstacles that no robot feels from beside them."""
    forbidden: frozenset[Cell] = _NOTHING
    """Cells that must not be cleaned."""
    others: tuple[Cell, ...] = ()
    """Where other robots are."""

    def after(self, reading: Reading) -> Board:
        """The board with what a robot has sensed since put in."""
        near = {"here": reading.position}
        near |= {way: neighbour(reading.position, way) for way in DIRECTIONS}
        told = {cell: getattr(reading.dirty, way) for way, cell in near.items()}
        dirty = {cell for cell in self.dirty if told.get(cell) is None}
        dirty |= {cell for cell, is_dirty in told.items() if is_dirty}
        return replace(
            self,
            robot=reading.position,
            battery=reading.battery,
            stranded=reading.stranded,
            dirty=_within(dirty, self.grid),
        )


class _Robot(BaseModel):
    name: str = ""
    position: Cell
    battery: int = 0
    stranded: bool = False


class _Obstacle(BaseModel):
    cell: Cell
    visible: bool = True


class _World(BaseModel):
    """As much of the world's state as a film shows."""

    grid: Cell
    charger: Cell
    dirty: tuple[Cell, ...]
    obstacles: tuple[_Obstacle, ...]
    robots: tuple[_Robot, ...]
    forbidden: tuple[Cell, ...] = ()


def world_board(environment: Any, name: str) -> Board | None:
    """The world as a snapshot holds it; None if that is no state of the vacuum world.

    Args:
        environment: A snapshot's `environment`.
        name: The run's robot; where no robot is named so, the first is taken for it.
    """
    try:
        world = _World.model_validate(environment)
    except (ValidationError, RecursionError):
        return None
    if not _possible(world.grid):
        return None
    own = next((one for one in world.robots if one.name == name), next(iter(world.robots), None))
    return Board(
        grid=world.grid,
        charger=world.charger,
        robot=own.position if own and inside(own.position, world.grid) else None,
        battery=_charge(own.battery) if own else 0,
        stranded=own.stranded if own else False,
        dirty=_within(world.dirty, world.grid),
        obstacles=_within((one.cell for one in world.obstacles), world.grid),
        hidden=_within((one.cell for one in world.obstacles if not one.visible), world.grid),
        forbidden=_within(world.forbidden, world.grid),
        others=_others(world.robots, own, world.grid),
    )


def believed_board(state: Any) -> Board | None:
    """The grid as a perceptual state has it; None if that is not a vacuum robot's, or empty."""
    try:
        return _of_state(VacuumState.model_validate(state))
    except (ValidationError, RecursionError):
        return None


def told_board(state: VacuumState) -> Board | None:
    """The grid as a robot's readings told of it; None before the first."""
    return _of_state(state)


def _of_state(state: VacuumState) -> Board | None:
    if not _possible(state.grid):
        return None
    here = state.position
    seen = {*state.dirty, *state.clean, *state.obstacles} | ({here} if here else set[Cell]())
    return Board(
        grid=state.grid,
        charger=state.charger,
        robot=here if here and inside(here, state.grid) else None,
        battery=_charge(state.battery),
        stranded=state.stranded,
        dirty=_within(state.dirty, state.grid),
        known=_within(seen, state.grid),
        obstacles=_within(state.obstacles, state.grid),
    )


def _possible(grid: Cell) -> bool:
    return all(1 <= side <= _LARGEST for side in grid)


def _within(cells: Iterable[Cell], grid: Cell) -> frozenset[Cell]:
    return frozenset(cell for cell in cells if inside(cell, grid))


def _charge(battery: int) -> int:
    return max(0, min(100, battery))


def _others(robots: Sequence[_Robot], own: _Robot | None, grid: Cell) -> tuple[Cell, ...]:
    return tuple(one.position for one in robots if one is not own and inside(one.position, grid))
