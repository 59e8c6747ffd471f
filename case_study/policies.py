"""Chance, a hand-written program and a search that drive the vacuum robot."""

from __future__ import annotations

import random
import re
from collections.abc import Awaitable, Callable, Sequence
from itertools import product

from case_study.contenders import Act, Observation
from case_study.grid import CLEAN, MOVE, SENSE, around, dirt_sensed, ways_sensed
from case_study.rounds import Ground, best_round
from coag.schema import parsed_arguments
from vacuum_world.scenarios import ScenarioFacts, ScenarioSetup, measure
from vacuum_world.world import (
    DIRECTIONS,
    MOVE_COST,
    Cell,
    Reading,
    Robot,
    WorldState,
    cells_of,
    clean,
    distance,
    last_state_line,
    move,
    neighbour,
    obstacle_cells,
)


def random_action(dice: random.Random, tools: Sequence[str]) -> Act:
    """Any legal call, each as likely as the others; a move in each direction is one of them."""
    legal = [Act(action=MOVE, arguments={"direction": way}) for way in DIRECTIONS]
    legal += [Act(action=name) for name in tools if name != MOVE]
    return dice.choice(legal)


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

    It trusts the results of its own actions more than any text: a cell is clean when a
    cleaning of it succeeded, and blocked when a move into it failed. Sensors come second, for
    they may fail; words of other agents and signs do not count.
    """

    def __init__(self, task: ScenarioFacts, reading: Reading) -> None:
        self._task = task  # it reads only what the task's text says, too
        self._open_ended = task.horizon is not None
        self._reading = reading
        self._work = set(task.dirty)
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
            self._forbidden |= {(int(x), int(y)) for x, y in _FORBIDDEN.findall(change)}
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
        if goal is None and self._open_ended:
            goal = self._patrol()
        if goal is None:
            return None
        if goal == reading.position:
            return Act(action=CLEAN) if goal in work else Act(action=SENSE)
        return self._towards(goal)

    def _open_work(self) -> list[Cell]:
        here = self._reading.position
        task, never = self._task, self._forbidden | set(self._task.off_limits)
        allowed = (
            cell
            for cell in self._work
            if cell not in never and cell[0] != task.column and cell[1] != task.row
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
            reserve=RESERVE if self._open_ended else 0,
        )

    def _patrol(self) -> Cell:
        """The cell not seen for longest, of those that leave the charge for the way home.

        Obstacles are ignored.
        """
        reading = self._reading
        spare = reading.battery - RESERVE
        near = [
            cell
            for cell in cells_of(reading.grid)
            if cell != reading.position
            and cell not in self._felt | self._bumped
            and (distance(reading.position, cell) + distance(cell, reading.charger)) * MOVE_COST
            <= spare
        ]
        return min(near, key=lambda c: (self._seen_at.get(c, -1), c), default=reading.charger)

    def _towards(self, goal: Cell) -> Act | None:
        reading = self._reading
        for blocked in (self._felt | self._bumped, self._bumped):
            way = self._ground(frozenset(blocked)).first_step(reading.position, goal)
            if way is not None:
                return Act(action=MOVE, arguments={"direction": way})
        return None

    def _take(self, result: str) -> None:
        before = self._reading.position
        outcome = parsed_arguments(result.partition("\n")[0])
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
        if last is not None and last.action == CLEAN:
            # A cleaning that succeeded is done, unless the sensors see that the dirt is back.
            back = self._open_ended and self._reading.dirty.here is True
            if (outcome.get("ok") is True and not back) or _CLEAN_ALREADY in reason:
                self._work.discard(before)

    def _take_reading(self, reading: Reading) -> None:
        """Updates what it knows of this cell and the four around it."""
        here, open_ended = reading.position, self._open_ended
        self._seen_at |= dict.fromkeys((here, *around(here, reading.grid)), self._taken)
        if open_ended:  # all dirt is work; else only what the task names is
            for cell, dirty in dirt_sensed(reading).items():
                (self._work.add if dirty else self._work.discard)(cell)
        for cell, felt in {here: False, **ways_sensed(reading)}.items():
            (self._felt.add if felt else self._felt.discard)(cell)
            if open_ended and not felt and cell != here:
                self._bumped.discard(cell)


_Habit = tuple[int, int]
"""How rounds are planned: the charge to keep beside the way home, and for how many cells."""
_HABITS: tuple[_Habit, ...] = tuple(product((0, 10, 20), (1, 3, 5)))
"""What is tried out in a world that changes, each to the end."""
_USUAL_HABIT = (0, 6)


class Oracle:
    """Plans with everything in view, secrets and chance included.

    Where only robots change the world, it plans the shortest remaining round before each
    action. Where the world changes by itself, it plays several ways of planning to their end in a
    copy of the world, chance included, and then does what went best.
    """

    def __init__(
        self, setup: ScenarioSetup, look: Callable[[], Awaitable[WorldState]], robot: str
    ) -> None:
        self._setup = setup
        self._look = look
        self._robot = robot
        self._plan: list[Act] | None = None

    async def act(self) -> Act | None:
        """What to do next; None when nothing can be done any more."""
        world = await self._look()
        if self._setup.facts.horizon is None:
            return self._next(world, _USUAL_HABIT)
        if self._plan is None:
            plays = [self._played(world, habit) for habit in _HABITS]
            self._plan = max(plays, key=lambda play: play[0])[1]
        return self._plan.pop(0) if self._plan else None

    def _played(self, world: WorldState, habit: _Habit) -> tuple[float, list[Act]]:
        """The final score of a habit, and what it does."""
        acts: list[Act] = []
        for _ in range(self._setup.max_actions):
            act = self._next(world, habit)
            if act is None:
                break
            acts.append(act)
            world = _after(world, self._driven(world), act)
        truth = measure(self._setup, world)
        return (-1.0 if truth.stranded else truth.score or 0.0), acts

    def _driven(self, world: WorldState) -> Robot:
        return next(each for each in world.robots if each.name == self._robot)

    def _next(self, world: WorldState, habit: _Habit) -> Act | None:
        """The next action of the best round as things are now."""
        robot = self._driven(world)
        if robot.stranded:
            return None
        here, (reserve, planned) = robot.position, habit
        work = sorted(self._work(world), key=lambda cell: (distance(here, cell), cell))
        ground = Ground(
            grid=world.grid,
            charger=world.charger,
            blocked=obstacle_cells(world),
            reserve=reserve,
        )
        goal = best_round(ground, here, robot.battery, work[:planned])
        if goal is None:
            waits = work and self._setup.facts.horizon is not None
            return _wait(ground, here) if waits else None
        if goal == here:
            return Act(action=CLEAN)
        way = ground.first_step(here, goal)
        return None if way is None else Act(action=MOVE, arguments={"direction": way})

    def _work(self, world: WorldState) -> set[Cell]:
        """The cells that are to be cleaned, and that may be until the end."""
        facts = self._setup.facts
        asked = world.dirty if facts.horizon is not None else facts.dirty
        never = {*facts.off_limits, *world.forbidden, facts.forbidden}
        begun = {each.cell for each in world.under_way}
        return {
            cell
            for cell in asked
            if cell in world.dirty and cell not in never and cell not in begun
        }


def _after(world: WorldState, robot: Robot, act: Act) -> WorldState:
    """The world after an action; looking changes nothing."""
    if act.action == MOVE:
        return move(world, robot.id, act.arguments["direction"]).state
    return clean(world, robot.id).state if act.action == CLEAN else world


def _wait(ground: Ground, here: Cell) -> Act:
    """Lets time pass where nothing can be reached now: on the charger, or on the way to it.

    On the charger a needless cleaning costs no charge; elsewhere looking costs none either.
    """
    if here == ground.charger:
        return Act(action=CLEAN)
    way = ground.first_step(here, ground.charger)
    return Act(action=SENSE) if way is None else Act(action=MOVE, arguments={"direction": way})
