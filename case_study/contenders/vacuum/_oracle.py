"""An upper bound: who sees the whole world, knows what will come, and plans by search."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from case_study.contenders import Act
from vacuum_world.scenarios import ScenarioSetup, measure
from vacuum_world.world import (
    Cell,
    Robot,
    WorldState,
    clean,
    distance,
    move,
    obstacle_cells,
)

from ._chance import CLEAN, MOVE, SENSE
from ._routes import Ground, best_round


@dataclass(frozen=True, slots=True, kw_only=True)
class _Habit:
    """How rounds are planned."""

    reserve: int = 0
    """Charge to keep beside the way home."""
    planned: int = 6
    """Cells that one round plans for: the nearest."""


_HABITS = tuple(
    _Habit(reserve=reserve, planned=planned) for reserve in (0, 10, 20) for planned in (1, 3, 5)
)
"""What is tried out in a world that changes, each to the end."""


class Oracle:
    """Plans with everything in view, secrets and chance included.

    Where only robots change the world, it plans the shortest round that is left anew before each
    action. Where the world changes by itself, it plays several ways of planning to their end in a
    copy of the world, chance included, and then does what went best.

    Args:
        setup: The scenario's instance, its secrets included.
        look: Gives the whole world now.
        robot: The name of the robot that it drives.
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
            return self._next(world, _Habit())
        if self._plan is None:
            plays = [self._played(world, habit) for habit in _HABITS]
            self._plan = max(plays, key=lambda play: play[0])[1]
        return self._plan.pop(0) if self._plan else None

    def _played(self, world: WorldState, habit: _Habit) -> tuple[float, list[Act]]:
        """What a habit comes to in the end, and what it does."""
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
        here = robot.position
        work = sorted(self._work(world), key=lambda cell: (distance(here, cell), cell))
        ground = Ground(
            grid=world.grid,
            charger=world.charger,
            blocked=obstacle_cells(world),
            reserve=habit.reserve,
        )
        goal = best_round(ground, here, robot.battery, work[: habit.planned])
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
