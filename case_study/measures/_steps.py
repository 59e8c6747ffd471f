"""Whether actions bring the job nearer to its end, judged by the world's own log.

What is judged is the choice, not its luck: an action counts as on plan if its doing what it is
meant to do would leave fewer actions to the end of the job. A move counts as possible unless an
obstacle stands there that was there from the beginning (a hidden one too) or was bumped into.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from vacuum_world.scenarios import ScenarioSetup
from vacuum_world.world import (
    CLEAN_COST,
    DIRECTIONS,
    MOVE_COST,
    STILL,
    Cell,
    LoggedAction,
    WorldState,
    distances_from,
    inside,
    neighbour,
)

from ._tally import Steps

_OPTIONS = len(DIRECTIONS) + 1
"""Actions among which chance draws: four moves and a cleaning."""
_MOST_WORK = 8
"""Dirty cells up to which the shortest round is worked out."""


class _Job:
    """What is left to do, and the ways there are.

    Args:
        grid: Width and height.
        charger: The charger's cell.
        blocked: Cells known to be blocked.
        work: Cells to clean.
    """

    def __init__(
        self, grid: Cell, charger: Cell, blocked: frozenset[Cell], work: frozenset[Cell]
    ) -> None:
        self._grid = grid
        self._charger = charger
        self._blocked = blocked
        reach = {cell: _ways(cell, grid, blocked) for cell in (charger, *work)}
        self._home = reach[charger]
        self._to = {cell: ways for cell, ways in reach.items() if cell in self._home}
        self.work = frozenset(work & self._to.keys())

    def left(self, here: Cell, battery: int, work: frozenset[Cell]) -> int | None:
        """About how many actions the job takes from here; None where no charge is left for it.

        Where the charge does not last for the whole round and the way home, the way to the
        charger comes first.
        """
        home = self._home.get(here)
        if home is None or battery < home * MOVE_COST:
            return None
        moves, last = self._round(here, work)
        back = self._home[last]
        if battery >= (moves + back) * MOVE_COST + len(work) * CLEAN_COST:
            return moves + len(work)
        return home + self._round(self._charger, work)[0] + len(work)

    def pays(self, line: LoggedAction, option: str | None) -> bool:
        """Whether an option would bring the job nearer to its end, if it did what it is to do.

        Args:
            line: The situation: where the robot is, with what charge.
            option: A direction; None for cleaning.
        """
        here, battery = line.position_before, line.battery_before
        now = self.left(here, battery, self.work)
        if option is None:
            then = self.left(here, battery - CLEAN_COST, self.work - {here})
            return here in self.work and then is not None
        there = neighbour(here, next(way for way in DIRECTIONS if way == option))
        if now is None or there in self._blocked or not inside(there, self._grid):
            return False
        then = self.left(there, battery - MOVE_COST, self.work)
        return then is not None and then < now

    def _round(self, here: Cell, work: frozenset[Cell]) -> tuple[int, Cell]:
        """Moves of the shortest round through the work, and where it ends."""
        steps = tuple((cell, self._to[cell][here]) for cell in sorted(work))
        between = tuple(
            tuple(self._to[cell][other] for other in sorted(work)) for cell in sorted(work)
        )
        moves, last = _shortest(tuple(way for _, way in steps), between)
        return moves, here if last is None else steps[last][0]


@lru_cache(maxsize=20_000)
def _ways(cell: Cell, grid: Cell, blocked: frozenset[Cell]) -> Mapping[Cell, int]:
    return distances_from(cell, grid, blocked)


@lru_cache(maxsize=50_000)
def _shortest(
    first: tuple[int, ...], between: tuple[tuple[int, ...], ...]
) -> tuple[int, int | None]:
    """Length of the shortest round through all places, and the last of them (Held and Karp).

    Args:
        first: Steps to each place from the start.
        between: Steps from each place to each other.
    """
    if not first:
        return 0, None
    best = {(1 << place, place): steps for place, steps in enumerate(first)}
    for visited in range(1, 1 << len(first)):
        for last in range(len(first)):
            so_far = best.get((visited, last))
            if so_far is None:
                continue
            for place, steps in enumerate(between[last]):
                after = (visited | 1 << place, place)
                if not visited >> place & 1 and so_far + steps < best.get(after, 10**9):
                    best[after] = so_far + steps
    full = (1 << len(first)) - 1
    return min((best[full, last], last) for last in range(len(first)))


def steps_of(setup: ScenarioSetup, world: WorldState) -> Steps:
    """How the actions of an episode stood to its job.

    Nothing is judged where dirt comes back or obstacles move by themselves (the log does not say
    when), and where more than eight cells are dirty. Actions after the job's end, and those of a
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
        job = _Job(setup.world.grid, setup.world.charger, frozenset(blocked), frozenset(work))
        steps += _judged(job, line)
        if line.bumped_into is not None and inside(line.bumped_into, setup.world.grid):
            blocked.add(line.bumped_into)
        if line.action == "clean" and line.result.ok and not line.needless:
            work.discard(line.position_before)
    return steps


def _judged(job: _Job, line: LoggedAction) -> Steps:
    if not job.work or job.left(line.position_before, line.battery_before, job.work) is None:
        return Steps()
    paying = {option for option in (*DIRECTIONS, None) if job.pays(line, option)}
    option = line.direction if line.action == "move" else None
    return Steps(
        judged=1,
        on_plan=int(line.action != "use" and option in paying),
        by_chance=len(paying) / _OPTIONS,
    )
