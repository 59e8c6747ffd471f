"""Whether actions bring the job nearer to its end, judged by the world's own log.

What is judged is the choice, not its luck: an action counts as on plan if its doing what it is
meant to do would leave fewer actions to the end of the job. A move counts as possible unless an
obstacle stands there that was there from the beginning (a hidden one too) or was bumped into.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

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
    distances_from,
    inside,
    neighbour,
)

_OPTIONS = len(DIRECTIONS) + 1
"""Actions among which chance draws: four moves and a cleaning."""
_FAR = 10**9
_MOST_WORK = 6
"""Dirty cells up to which the shortest round is worked out."""

_Rounds = Mapping[tuple[int, int], int]
"""Moves of the shortest way through a set of places that ends at one of them."""


class Steps(Counts):
    """How actions stood to the job, by the world's own log."""

    judged: int = 0
    """Actions taken while there was work that could be done."""
    on_plan: int = 0
    """Those of them that bring the work nearer to its end."""
    by_chance: float = 0.0
    """How many of them would, if each were drawn by chance."""


class _Job:
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
        """How many actions the job takes from here; None where no charge is left for it.

        After the last cleaning the charge must reach the charger. Where it does not last for all
        of it, some of the work (or none) comes first and the rest after charging.
        """
        home = self._home.get(here)
        if home is None or battery < home * MOVE_COST:
            return None
        cells = sorted(work)
        rest = self._best(self._charger, cells)
        best = home + rest[_all(cells)] + len(cells)
        for (done, last), moves in self._rounds(here, cells).items():
            back = self._home[cells[last]]
            if (moves + back) * MOVE_COST + done.bit_count() * CLEAN_COST > battery:
                continue
            left = _all(cells) & ~done
            best = min(best, moves + (back + rest[left] if left else 0) + len(cells))
        return best if cells else 0

    def pays(self, line: LoggedAction, option: str | None) -> bool:
        """Whether an option would bring the job nearer to its end, if it did what it is to do."""
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

    def _rounds(self, here: Cell, cells: Sequence[Cell]) -> _Rounds:
        first = tuple(self._to[cell][here] for cell in cells)
        between = tuple(tuple(self._to[cell][other] for other in cells) for cell in cells)
        return _shortest(first, between)

    def _best(self, here: Cell, cells: Sequence[Cell]) -> Mapping[int, int]:
        """Moves of the shortest way through each set of cells, wherever it ends."""
        best: dict[int, int] = {0: 0}
        for (done, _), moves in self._rounds(here, cells).items():
            best[done] = min(moves, best.get(done, moves))
        return best


def _all(cells: Sequence[Cell]) -> int:
    """The set of all places, as bits."""
    return (1 << len(cells)) - 1


@lru_cache(maxsize=20_000)
def _ways(cell: Cell, grid: Cell, blocked: frozenset[Cell]) -> Mapping[Cell, int]:
    return distances_from(cell, grid, blocked)


@lru_cache(maxsize=20_000)
def _shortest(first: tuple[int, ...], between: tuple[tuple[int, ...], ...]) -> _Rounds:
    """The shortest way through each set of places, by where it ends (Held and Karp)."""
    best = {(1 << place, place): steps for place, steps in enumerate(first)}
    for visited in range(1, 1 << len(first)):
        for last in range(len(first)):
            so_far = best.get((visited, last))
            if so_far is None:
                continue
            for place, steps in enumerate(between[last]):
                after = (visited | 1 << place, place)
                if not visited >> place & 1 and so_far + steps < best.get(after, _FAR):
                    best[after] = so_far + steps
    return best


def steps_of(setup: ScenarioSetup, world: WorldState) -> Steps:
    """How the actions of an episode stood to its job.

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
