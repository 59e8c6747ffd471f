"""Stipulated rules: what the robot must never do, and never a route."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from coag.errors import UnknownNameError
from coag.schema import Candidate, Constraint, Verdict
from vacuum_world.world import DIRECTIONS, MOVE_COST, Cell, distance, inside, neighbour

from ._conduct import CONDUCT
from ._projection import CLEAN, MOVE, WAYS
from ._state import VacuumState
from ._telling import is_blocked

_UNKNOWN = "where the robot is and what charge it has is not known yet: sense first"


def keep_charge_to_reach_charger(
    candidate: Candidate, state: VacuumState, projection: VacuumState | None
) -> Verdict:
    """After an action the charge must still reach the charger, as the crow walks.

    Where it does not reach it any more already, nothing is left to keep and all is allowed.
    """
    if candidate.action not in (MOVE, CLEAN):
        return Verdict.allow()
    if projection is None or projection.position is None or state.position is None:
        return Verdict.forbid(_UNKNOWN)
    if state.battery < _way_home(state.position, state):
        return Verdict.allow("the charger is out of reach already")
    needed = _way_home(projection.position, state)
    if projection.battery >= needed and not projection.stranded:
        return Verdict.allow()
    return Verdict.forbid(
        f"afterwards the battery would hold {projection.battery}, and the way to the charger "
        f"takes {needed}"
    )


def no_move_into_known_obstacle(
    candidate: Candidate, state: VacuumState, projection: VacuumState | None
) -> Verdict:
    """No move may run into what the sensors feel or a recalled record remembers."""
    if candidate.action != MOVE:
        return Verdict.allow()
    if projection is None:
        return Verdict.forbid(_UNKNOWN)
    if projection.bumps_into is None:
        return Verdict.allow()
    if _shut_in(state) and _inside(candidate, state):
        return Verdict.allow("every way is said to be blocked: the sensors cannot be right")
    return Verdict.forbid(f"it would run into {projection.bumps_into}")


@dataclass(frozen=True, slots=True)
class ForbidCleaning:
    """One cell must not be cleaned, by whoever says so."""

    cell: Cell
    """The cell."""

    @property
    def name(self) -> str:
        """How logs call the rule, e.g. `forbid_cleaning_2_1`."""
        return f"forbid_cleaning_{self.cell[0]}_{self.cell[1]}"

    def __call__(
        self, candidate: Candidate, state: VacuumState, projection: VacuumState | None
    ) -> Verdict:
        """Forbids cleaning while the robot stands on the cell."""
        if candidate.action != CLEAN:
            return Verdict.allow()
        if state.position is None:
            return Verdict.forbid(_UNKNOWN)
        if state.position != self.cell:
            return Verdict.allow()
        return Verdict.forbid(f"cleaning cell ({self.cell[0]}, {self.cell[1]}) is forbidden")


def _shut_in(state: VacuumState) -> bool:
    """Whether the sensors say that the robot, which has moved, cannot move anywhere."""
    return len(state.trail) > 1 and all(is_blocked(state, way, {}) for way in DIRECTIONS)


def _inside(candidate: Candidate, state: VacuumState) -> bool:
    way = WAYS.get(str((candidate.arguments or {}).get("direction")))
    return (
        way is not None
        and state.position is not None
        and inside(neighbour(state.position, way), state.grid)
    )


_NAMED = re.compile(r"forbid_cleaning_(\d+)_(\d+)")


def forbidden_cells(rules: Iterable[str]) -> set[Cell]:
    """The cells that rules forbid to clean, by the rules' names."""
    found = (_NAMED.fullmatch(rule) for rule in rules)
    return {(int(match[1]), int(match[2])) for match in found if match}


def _way_home(position: Cell, state: VacuumState) -> int:
    """The least charge that the way from a cell to the charger takes."""
    return distance(position, state.charger) * MOVE_COST


CONSTRAINTS: Mapping[str, Constraint] = MappingProxyType(
    {
        "keep_charge_to_reach_charger": keep_charge_to_reach_charger,
        "no_move_into_known_obstacle": no_move_into_known_obstacle,
    }
)
"""The rules that hold in every scenario, by name."""


def constraint_named(name: str) -> Constraint:
    """The rule of this name.

    Raises:
        UnknownNameError: There is none; the message lists those that exist.
    """
    rules = {**CONSTRAINTS, **CONDUCT}
    if name not in rules:
        raise UnknownNameError("constraint", name, rules)
    return rules[name]
