"""The world of an episode as the environment of its agent's run: for snapshots, and for forks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from pydantic import ValidationError

from case_study.contenders import Change, CoagPlayer, Delivery
from case_study.robot import ForbidCleaning, change_sentence
from coag.agent import CoagAgent
from coag.errors import ConfigurationError
from vacuum_world.errors import WorldError
from vacuum_world.scenarios import ScenarioSetup
from vacuum_world.world import Cell, WorldState

from ._worlds import ROBOT, World

_LEFT_OUT = {"log"}
"""Parts of the world that a snapshot does without: the log would make traces grow quadratically."""


class WorldEnvironment:
    """Tells the whole world without its log, and puts it back.

    Args:
        world: The world.
        setup: The scenario that is played in it.
        delivery: How the agent is told of a change of requirements.
        opened: What was opened for it and is closed with it, so that the world is a copy for a
            fork; None if others close it.
    """

    def __init__(
        self,
        world: World,
        setup: ScenarioSetup,
        delivery: Delivery,
        opened: AsyncExitStack | None = None,
    ) -> None:
        self._world = world
        self._setup = setup
        self._delivery: Delivery = delivery
        self._opened = opened or AsyncExitStack()
        self.is_copy = opened is not None

    async def snapshot(self) -> Any:
        """The whole world now, hidden things included, but not its log."""
        state = await self._world.state()
        return state.model_dump(mode="json", exclude=_LEFT_OUT)

    async def restore(self, state: Any) -> None:
        """Puts the world into a state; the robot's token stays in force.

        Raises:
            ConfigurationError: It is no state of a world, or the world cannot be reached.
        """
        try:
            await self._world.restore(WorldState.model_validate(state))
        except (ValidationError, WorldError) as error:
            raise ConfigurationError(f"The world cannot be put back: {error}") from error

    async def close(self) -> None:
        """Lets go of the world if it was opened for this."""
        await self._opened.aclose()

    def describe(self, state: Any) -> str:
        """Where the robot is, what charge it has, and what is dirty."""
        world = WorldState.model_validate(state)
        robot = next((robot for robot in world.robots if robot.name == ROBOT), None)
        if robot is None:
            return f"The robot has not joined; {_dirt(world.dirty)}."
        how = "stranded at" if robot.stranded else "at"
        return (
            f"The robot is {how} {robot.position}, battery {robot.battery}; {_dirt(world.dirty)}."
        )

    async def before_turn(self, agent: CoagAgent) -> None:
        """Tells the agent of the change of requirements, where it is due, as the runner does."""
        cell = self._setup.facts.forbidden
        if cell is not None and await change_is_due(self._setup, self._world):
            await CoagPlayer(agent, self._delivery).change(forbidding(cell))


async def change_is_due(setup: ScenarioSetup, world: World) -> bool:
    """Whether the requirements of `evolution` have changed by now."""
    after = setup.facts.forbidden_after
    return after is not None and (await world.state()).counters.actions >= after


def forbidding(cell: Cell) -> Change:
    """The change of requirements of `evolution`."""
    return Change(sentence=change_sentence(cell), constraint=ForbidCleaning(cell))


def _dirt(cells: Sequence[Cell]) -> str:
    if not cells:
        return "no cell is dirty"
    return f"dirty: {', '.join(str(cell) for cell in cells)}"
