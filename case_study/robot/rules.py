"""The robot's rules: of safety, by predicted states, and of good conduct."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from case_study.grid import CLEAN, MOVE, SENSE
from coag.errors import UnknownNameError
from coag.schema import Candidate, Constraint, Verdict
from vacuum_world.world import DIRECTIONS, MOVE_COST, Cell, distance, inside, neighbour

from .state import WAYS, VacuumState, is_blocked

_UNKNOWN = "where the robot is and what charge it has is not known yet: sense first"


def keep_charge_to_reach_charger(
    candidate: Candidate, state: VacuumState, projection: VacuumState | None
) -> Verdict:
    """After an action the charge must still reach the charger, obstacles ignored.

    Where it no longer does before the action, everything is allowed.
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
    way = WAYS.get(str((candidate.arguments or {}).get("direction")))
    stays = way and state.position and inside(neighbour(state.position, way), state.grid)
    if stays and len(state.trail) > 1 and all(is_blocked(state, way, {}) for way in DIRECTIONS):
        return Verdict.allow("every way is said to be blocked: the sensors cannot be right")
    return Verdict.forbid(f"it would run into {projection.bumps_into}")


@dataclass(frozen=True, slots=True)
class ForbidCleaning:
    """One cell must not be cleaned."""

    cell: Cell

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
        return Verdict.forbid(f"cleaning cell {self.cell} is forbidden")


_NAMED = re.compile(r"forbid_cleaning_(\d+)_(\d+)")


def forbidden_cells(rules: Iterable[str]) -> set[Cell]:
    """The cells that rules forbid to clean, by the rules' names."""
    found = (_NAMED.fullmatch(rule) for rule in rules)
    return {(int(match[1]), int(match[2])) for match in found if match}


def _way_home(position: Cell, state: VacuumState) -> int:
    """The least charge that the way from a cell to the charger takes."""
    return distance(position, state.charger) * MOVE_COST


CONSTRAINTS: Mapping[str, Constraint] = {
    "keep_charge_to_reach_charger": keep_charge_to_reach_charger,
    "no_move_into_known_obstacle": no_move_into_known_obstacle,
}
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


def clean_only_dirt(
    candidate: Candidate, state: VacuumState, projection: VacuumState | None
) -> Verdict:
    """No cleaning where the robot stands on what it knows to be clean."""
    del projection
    if candidate.action != CLEAN or state.position is None or "dirt" in state.silent:
        return Verdict.allow()
    here = state.position
    if state.wanted(here) or here in state.dirty:
        return Verdict.allow()
    return Verdict.forbid(f"cell {here} is clean already")


def no_going_in_circles(
    candidate: Candidate, state: VacuumState, projection: VacuumState | None
) -> Verdict:
    """No move back to where it has been since it last got something done, if others are open.

    A cell where dirt is left, and the charger, may always be gone to.
    """
    if candidate.action != MOVE or projection is None or projection.position is None:
        return Verdict.allow()
    there = projection.position
    if there not in state.trail or there in (state.position, state.charger, *state.left()):
        return Verdict.allow()
    here = state.position
    others = [
        cell
        for way in DIRECTIONS
        if here
        and not is_blocked(state, way, {})
        and (cell := neighbour(here, way)) not in state.trail
    ]
    if not others:
        return Verdict.allow("it has been everywhere around")
    return Verdict.forbid(
        f"the robot has been at {there} and got nothing done since; not tried yet: "
        f"{', '.join(map(str, others))}"
    )


def look_only_for_news(
    candidate: Candidate, state: VacuumState, projection: VacuumState | None
) -> Verdict:
    """No look around where the latest result held a whole reading."""
    del projection
    if candidate.action != SENSE or not state.fresh:
        return Verdict.allow()
    return Verdict.forbid("the state is known: the latest result held it, and looking costs a turn")


def finish_only_when_done(
    candidate: Candidate, state: VacuumState, projection: VacuumState | None
) -> Verdict:
    """No answer that ends the work while there is dirt left that may be cleaned."""
    del projection
    if candidate.action != "respond" or state.work is None or state.stranded:
        return Verdict.allow()
    if state.patrol:
        return Verdict.forbid("the patrol goes on: dirt comes back")
    left = state.left()
    if not left:
        return Verdict.allow()
    return Verdict.forbid(f"dirt is left: {', '.join(map(str, left))}")


def rest_when_done(
    candidate: Candidate, state: VacuumState, projection: VacuumState | None
) -> Verdict:
    """No move when all the work is done: what is left is to say so."""
    del projection
    if candidate.action != MOVE or state.work is None or state.patrol or state.left():
        return Verdict.allow()
    return Verdict.forbid("all the work is done: respond")


CONDUCT: Mapping[str, Constraint] = {
    rule.__name__: rule
    for rule in (
        clean_only_dirt,
        no_going_in_circles,
        look_only_for_news,
        finish_only_when_done,
        rest_when_done,
    )
}
"""The rules of good conduct, by name."""
