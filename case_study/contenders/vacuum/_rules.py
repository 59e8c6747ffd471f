"""A hand-written program that drives the robot by what it is told and what its sensors say."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from case_study.contenders import Act, Observation
from vacuum_world.world import (
    DIRECTIONS,
    MOVE_COST,
    Cell,
    Reading,
    cells_of,
    distance,
    inside,
    last_state_line,
    neighbour,
)

from ._chance import CLEAN, MOVE, SENSE
from ._routes import Ground, best_round
from ._told import Told

MOST_PLANNED = 5
"""Cells that one round plans for: the nearest."""
RESERVE = 15
"""Charge to keep beside the way home where obstacles move."""

_FORBIDDEN = re.compile(r"cleaning cell \((\d+), ?(\d+)\) is forbidden")
_UNKNOWN = "may or may not have happened"
_BUMP = "blocked by an obstacle"
_CLEAN_ALREADY = "already clean"


class RuleRobot:
    """Cleans what the task names, by the shortest round that the charge allows.

    It believes what its own actions showed more than what it is told: a cell is clean when a
    cleaning of it succeeded, and blocked when a move into it failed. Sensors come second, for
    they may fail; words of other agents and signs on the way do not count at all.

    Args:
        told: What the task tells.
        reading: What the sensors say at the beginning.
    """

    def __init__(self, told: Told, reading: Reading) -> None:
        self._told = told
        self._reading = reading
        self._work = set(told.dirty)
        self._felt: set[Cell] = set()
        self._bumped: set[Cell] = set()
        self._forbidden: set[Cell] = set()
        self._seen_at: dict[Cell, int] = {}
        self._taken = 0
        self._last: Act | None = None
        self._unsure = False
        self._take_reading(reading)

    def act(self, seen: Observation) -> Act | None:
        """What to do next; None when all that can be done is done."""
        for change in seen.changes:
            self._forbidden |= {_cell(found) for found in _FORBIDDEN.findall(change)}
        for result in seen.results[self._taken :]:
            self._take(result)
        self._taken = len(seen.results)
        self._last = self._next()
        return self._last

    def _next(self) -> Act | None:
        reading = self._reading
        if reading.stranded:
            return None
        if self._unsure:
            self._unsure = False
            return Act(action=SENSE)
        work = self._open_work()
        goal = self._goal(work, frozenset(self._felt | self._bumped))
        if goal is None and self._felt - self._bumped:
            goal = self._goal(work, frozenset(self._bumped))
        if goal is None and self._told.open_ended:
            goal = self._patrol()
        if goal is None:
            return None
        if goal == reading.position:
            return Act(action=CLEAN) if goal in work else Act(action=SENSE)
        return self._towards(goal)

    def _open_work(self) -> list[Cell]:
        here = self._reading.position
        allowed = (
            cell for cell in self._work if cell not in self._forbidden and self._told.allows(cell)
        )
        return sorted(allowed, key=lambda cell: (distance(here, cell), cell))

    def _goal(self, work: list[Cell], blocked: frozenset[Cell]) -> Cell | None:
        reading = self._reading
        ground = self._ground(blocked)
        return best_round(ground, reading.position, reading.battery, work[:MOST_PLANNED])

    def _ground(self, blocked: frozenset[Cell]) -> Ground:
        return Ground(
            grid=self._reading.grid,
            charger=self._reading.charger,
            blocked=blocked,
            reserve=RESERVE if self._told.open_ended else 0,
        )

    def _patrol(self) -> Cell:
        """The cell not seen for longest, of those that leave the charge for the way home."""
        reading = self._reading
        spare = reading.battery - RESERVE
        near = [
            cell
            for cell in cells_of(reading.grid)
            if cell != reading.position
            and cell not in self._felt | self._bumped
            and self._round_trip(cell) * MOVE_COST <= spare
        ]
        return min(near, key=lambda c: (self._seen_at.get(c, -1), c), default=reading.charger)

    def _round_trip(self, cell: Cell) -> int:
        """Moves to a cell and from there to the charger, as the crow walks."""
        return distance(self._reading.position, cell) + distance(cell, self._reading.charger)

    def _towards(self, goal: Cell) -> Act | None:
        reading = self._reading
        for blocked in (self._felt | self._bumped, self._bumped):
            way = self._ground(frozenset(blocked)).first_step(reading.position, goal)
            if way is not None:
                return Act(action=MOVE, arguments={"direction": way})
        return None

    def _take(self, result: str) -> None:
        """Takes what an action gave."""
        before = self._reading.position
        outcome = _outcome(result)
        reason = str(outcome.get("reason") or "")
        last = self._last
        if last is not None and last.action == MOVE and _BUMP in reason:
            self._bumped.add(neighbour(before, last.arguments["direction"]))
        reading = last_state_line(result)
        self._unsure = reading is None or _UNKNOWN in result
        if reading is not None:
            self._reading = reading
            self._bumped.discard(reading.position)
            self._take_reading(reading)
        if last is not None and last.action == CLEAN and outcome:
            self._take_cleaning(before, ok=outcome.get("ok") is True, reason=reason)

    def _take_cleaning(self, cell: Cell, *, ok: bool, reason: str) -> None:
        """A cleaning that succeeded is done, unless the sensors see that the dirt is back."""
        back = self._told.open_ended and self._reading.dirty.here is True
        if (ok and not back) or _CLEAN_ALREADY in reason:
            self._work.discard(cell)

    def _take_reading(self, reading: Reading) -> None:
        """Takes what the sensors say of this cell and the four around it."""
        here = reading.position
        self._note(here, reading.dirty.here)
        self._felt.discard(here)
        for direction in DIRECTIONS:
            cell = neighbour(here, direction)
            if not inside(cell, reading.grid):
                continue
            self._note(cell, getattr(reading.dirty, direction))
            felt = getattr(reading.blocked, direction)
            if felt is True:
                self._felt.add(cell)
            elif felt is False:
                self._felt.discard(cell)
                if self._told.open_ended:
                    self._bumped.discard(cell)

    def _note(self, cell: Cell, dirty: bool | None) -> None:
        """Where all dirt is work, what is seen decides; else only what the task names is."""
        self._seen_at[cell] = self._taken
        if not self._told.open_ended or dirty is None:
            return
        if dirty:
            self._work.add(cell)
        else:
            self._work.discard(cell)


def _outcome(result: str) -> Mapping[str, Any]:
    """What an action's result says in its first line; empty where that is no JSON object."""
    try:
        found: Any = json.loads(result.partition("\n")[0])
    except json.JSONDecodeError:
        return {}
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}


def _cell(found: tuple[str, str]) -> Cell:
    return int(found[0]), int(found[1])
