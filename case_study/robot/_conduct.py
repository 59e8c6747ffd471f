"""Rules of good conduct: what it makes no sense to do, and never a route.

They keep a robot from wasting its actions. What is safe is another matter, see `CONSTRAINTS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from coag.schema import Candidate, Constraint, Verdict
from vacuum_world.world import DIRECTIONS, Cell, Direction, neighbour

from ._projection import CLEAN, MOVE, SENSE
from ._state import VacuumState
from ._telling import is_blocked

_RESPOND = "respond"


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
    others = [cell for cell in _open_ways(state) if cell not in state.trail]
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
    if candidate.action != _RESPOND or state.work is None or state.stranded:
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


def _open_ways(state: VacuumState) -> list[Cell]:
    """Cells next to the robot that nothing is known to block."""
    if state.position is None:
        return []
    ways: tuple[Direction, ...] = DIRECTIONS
    return [neighbour(state.position, way) for way in ways if not is_blocked(state, way, {})]


CONDUCT: Mapping[str, Constraint] = MappingProxyType(
    {
        "clean_only_dirt": clean_only_dirt,
        "no_going_in_circles": no_going_in_circles,
        "look_only_for_news": look_only_for_news,
        "finish_only_when_done": finish_only_when_done,
        "rest_when_done": rest_when_done,
    }
)
"""The rules of good conduct, by name."""
