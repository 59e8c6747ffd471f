"""What follows from all that was told: what is dirty, and what is in the way.

Two views of the same happenings. Who believes readings takes the latest one of each cell. Who
weighs them asks as well what the robot's own actions reported, and what cannot be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from vacuum_world.world import DIRECTIONS, Cell, Reading, inside, neighbour

from ._happenings import Done, Happening, Remembered
from ._intentions import CLEAN

_ALREADY = "already clean"


def _cells() -> dict[Cell, bool]:
    return {}


def _none() -> set[Cell]:
    return set()


@dataclass(slots=True)
class Beliefs:
    """What the happenings so far amount to."""

    told: frozenset[Cell]
    """Cells that the task calls dirty."""
    warned: bool
    """Whether the task says that sensors may fail."""
    dirty: dict[Cell, bool] = field(default_factory=_cells)
    """By cell what the latest reading of dirt said."""
    blocked: dict[Cell, bool] = field(default_factory=_cells)
    """By cell what the latest reading of proximity said."""
    impossible: set[Cell] = field(default_factory=_none)
    """Cells of which the latest reading of proximity said something that cannot be."""
    bumps: dict[Cell, Cell] = field(default_factory=dict[Cell, Cell])
    """Cells that were bumped into, and from where."""
    cleaned: set[Cell] = field(default_factory=_none)
    """Cells of which a cleaning was reported, and no later dirt."""
    waiting: set[Cell] = field(default_factory=_none)
    """Those of them whose cleaning does not show yet."""
    last: Done | None = None
    """The latest action."""
    lied: bool = False
    """Whether a cleaning has shown that the dirt sensor tells what is not so."""

    def take(self, happening: Happening) -> None:
        """Takes in what happened next."""
        match happening:
            case Done():
                self._act(happening)
            case Remembered():
                self._remember(happening)
            case Reading():
                self._dirt(happening)
                self._proximity(happening)

    def left(self, *, forgetful: bool) -> frozenset[Cell]:
        """Cells that are still to be cleaned, readings weighed against reports.

        Args:
            forgetful: Whether earlier actions may be missing among the happenings.
        """
        seen = {cell for cell, is_dirty in self.dirty.items() if is_dirty}
        if self.lied or self.warned:
            return self.told - self.cleaned
        unseen = self.told - self.dirty.keys() if forgetful else self.told - self.cleaned
        return frozenset(unseen | (seen - self.waiting))

    def _remember(self, what: Remembered) -> None:
        match what.how:
            case "left":
                self.cleaned |= self._done_by(what.cells)
            case "cleaned":
                self.cleaned |= what.cells
            case "blocked":
                self.blocked |= dict.fromkeys(what.cells, True)
            case how:
                self.dirty |= dict.fromkeys(what.cells, how == "dirty")

    def _done_by(self, left: frozenset[Cell]) -> set[Cell]:
        """Cells of the task that an account of what is left says are done.

        An account that names a cell which nobody has seen dirty knows the task. Any other may only
        repeat what was seen.
        """
        missing = self.told - left
        if any(not self.dirty.get(cell) for cell in left & self.told):
            return set(missing)
        return {cell for cell in missing if self.dirty.get(cell) is False}

    def _act(self, done: Done) -> None:
        self.last = done
        bump, here = done.bump, done.position
        if bump is not None:
            self.bumps[bump[1]] = bump[0]
        if done.action != CLEAN or here is None:
            return
        if _ALREADY in done.reason:
            self.lied = self.lied or self.dirty.get(here) is True
            self.cleaned.add(here)
        elif done.ok:
            self.cleaned.add(here)
            if done.reason:
                self.waiting.add(here)

    def _dirt(self, reading: Reading) -> None:
        here = reading.position
        told = {here: reading.dirty.here}
        told |= {neighbour(here, way): getattr(reading.dirty, way) for way in DIRECTIONS}
        for cell, is_dirty in told.items():
            if is_dirty is None or not inside(cell, reading.grid):
                continue
            self.dirty[cell] = is_dirty
            if not is_dirty:
                self.waiting.discard(cell)
            elif cell not in self.waiting and not (self.lied or self.warned):
                self.cleaned.discard(cell)

    def _proximity(self, reading: Reading) -> None:
        here = reading.position
        self.blocked[here] = False
        possible = _possible(reading)
        for way in DIRECTIONS:
            cell, is_blocked = neighbour(here, way), getattr(reading.blocked, way)
            if is_blocked is None or not inside(cell, reading.grid):
                continue
            self.blocked[cell] = is_blocked
            (self.impossible.discard if possible else self.impossible.add)(cell)


def _possible(reading: Reading) -> bool:
    """Whether a reading of proximity can be true: edges are felt, and some way is open."""
    ways = {way: getattr(reading.blocked, way) for way in DIRECTIONS}
    edges = [w for w in DIRECTIONS if not inside(neighbour(reading.position, w), reading.grid)]
    if any(ways[way] is False for way in edges):
        return False
    return not all(ways.values())


def believed(happenings: Iterable[Happening], told: frozenset[Cell], *, warned: bool) -> Beliefs:
    """What a row of happenings amounts to."""
    beliefs = Beliefs(told, warned)
    for happening in happenings:
        beliefs.take(happening)
    return beliefs
