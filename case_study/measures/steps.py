"""Whether actions bring the job nearer to its end, judged by the world's own log.

What is judged is the choice, not its luck: an action counts as on plan if its doing what it is
meant to do would leave fewer actions to the end of the job. A move counts as possible unless an
obstacle is there that was there from the beginning (a hidden one too) or was bumped into.
"""

from __future__ import annotations

from case_study.rounds import Ground, actions_left
from coag.evals import Counts
from vacuum_world.scenarios import ScenarioSetup
from vacuum_world.world import (
    CLEAN_COST,
    DIRECTIONS,
    MOVE_COST,
    STILL,
    Cell,
    LoggedAction,
    WorldState,
    inside,
    neighbour,
)

_OPTIONS = len(DIRECTIONS) + 1
"""Actions among which chance draws: four moves and a cleaning."""
_MOST_WORK = 6
"""Dirty cells up to which the shortest round is worked out."""
_CHARGED = 1_000
"""Charge after charging: whether the rest takes a second charge is not asked."""


class Steps(Counts):
    """How actions served the job, by the world's own log."""

    judged: int = 0
    """Actions taken while there was work that could be done."""
    on_plan: int = 0
    """Those of them that bring the work nearer to its end."""
    by_chance: float = 0.0
    """How many of them would, if each were drawn by chance."""


def steps_of(setup: ScenarioSetup, world: WorldState) -> Steps:
    """How the actions of an episode served its job.

    Nothing is judged where dirt comes back or obstacles move by themselves (the log does not say
    when), and where more than six cells are dirty. Actions after the job's end, and those of a
    robot that cannot reach the charger any more, are not judged either.
    """
    still = setup.world.dynamics == STILL == world.dynamics
    if not still or len(setup.facts.dirty) > _MOST_WORK:
        return Steps()
    blocked = {obstacle.cell for obstacle in setup.world.obstacles}
    work = set(setup.facts.dirty)
    later = set(world.forbidden) - set(setup.world.forbidden)
    work -= set(setup.world.forbidden)
    steps = Steps()
    for line in world.log:
        if line.refused:
            continue
        if line.number > (setup.facts.forbidden_after or 0):
            work -= later
        grid, charger = setup.world.grid, setup.world.charger
        ground = Ground(grid=grid, charger=charger, blocked=frozenset(blocked), full=_CHARGED)
        steps += _judged(ground, line, work)
        if line.bumped_into is not None and inside(line.bumped_into, setup.world.grid):
            blocked.add(line.bumped_into)
        if line.action == "clean" and line.result.ok and not line.needless:
            work.discard(line.position_before)
    return steps


def _judged(ground: Ground, line: LoggedAction, work: set[Cell]) -> Steps:
    home = ground.steps_to(ground.charger)
    here, battery = line.position_before, line.battery_before
    open_work = frozenset(work & home.keys())

    def left(cell: Cell, charge: int, cells: frozenset[Cell]) -> int | None:
        """How many actions the job takes from there; None where no charge is left for it."""
        if cell not in home or charge < home[cell] * MOVE_COST:
            return None
        return actions_left(ground, cell, charge if home[cell] else _CHARGED, cells)

    now = left(here, battery, open_work)
    if not open_work or now is None:
        return Steps()
    paying = here in open_work and left(here, battery - CLEAN_COST, open_work - {here}) is not None
    pays: dict[str | None, bool] = {None: paying}
    for way in DIRECTIONS:
        then = left(neighbour(here, way), battery - MOVE_COST, open_work)
        pays[way] = then is not None and then < now
    option = line.direction if line.action == "move" else None
    return Steps(
        judged=1,
        on_plan=int(line.action != "use" and pays[option]),
        by_chance=sum(pays.values()) / _OPTIONS,
    )
