"""An upper bound: who sees the whole world, knows what will come, and plans by search."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from case_study.contenders import Act
from vacuum_world.scenarios import ScenarioSetup
from vacuum_world.world import Cell, WorldState, distance, obstacle_cells

from ._chance import CLEAN, MOVE
from ._routes import Ground, best_round

MOST_PLANNED = 6
"""Cells that one round plans for: the nearest."""


class Oracle:
    """Looks at the whole world before each action and plans the rest anew.

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

    async def act(self) -> Act | None:
        """What to do next; None when nothing can be done any more."""
        world = await self._look()
        robot = next(each for each in world.robots if each.name == self._robot)
        if robot.stranded:
            return None
        here = robot.position
        work = sorted(self._work(world), key=lambda cell: (distance(here, cell), cell))
        ground = Ground(grid=world.grid, charger=world.charger, blocked=obstacle_cells(world))
        goal = best_round(ground, here, robot.battery, work[:MOST_PLANNED])
        if goal is None:
            return None
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
            if cell in world.dirty
            and cell not in never
            and cell not in begun
            and facts.column != cell[0]
            and facts.row != cell[1]
        }
