"""A world in this process, which is the rules themselves: no server, no network."""

from __future__ import annotations

from contextlib import AsyncExitStack

from vacuum_world.client import RobotStrandedError, WorldClient
from vacuum_world.showing import Report
from vacuum_world.world import (
    ActionResult,
    Direction,
    LoggedAction,
    Manual,
    Reading,
    Step,
    WorldState,
    clean,
    join,
    manuals,
    move,
    sense,
    use,
)

ROBOT = "robot"
"""Name of the robot that the agent drives."""


class LocalWorld:
    """A world in this process, which is the rules themselves; else as one that is served."""

    showing = None
    """Nobody looks."""

    def __init__(self, start: WorldState, guests: AsyncExitStack) -> None:
        self.guests = guests
        self.now = start

    async def join(self) -> WorldClient:
        """A client that drives the robot; the robot joins, or is taken over if it is there."""
        robot = next((each for each in self.now.robots if each.name == ROBOT), None)
        if robot is None:
            step = join(self.now, ROBOT)
            self.now, robot = step.state, step.result
        return LocalClient(self, robot.id)

    def watch(self) -> None:
        """Nobody looks."""
        return None

    async def state(self) -> WorldState:
        """The whole world, hidden things included."""
        return self.now

    async def restore(self, state: WorldState) -> None:
        """Puts the world into a state."""
        self.now = state


class LocalClient(WorldClient):
    """Drives one robot by the rules themselves, as far as the robot's tools need it."""

    def __init__(self, world: LocalWorld, robot_id: str) -> None:
        self.robot_id = robot_id
        self._world = world

    @property
    def url(self) -> str:
        """It is served nowhere."""
        return "local"

    async def move(self, direction: Direction, action_id: str | None = None) -> ActionResult:
        """Move one cell."""
        return self._done("move", move(self._world.now, self.robot_id, direction, action_id))

    async def clean(self, action_id: str | None = None) -> ActionResult:
        """Clean the robot's cell."""
        return self._done("clean", clean(self._world.now, self.robot_id, action_id))

    async def use(self, gadget: str, action_id: str | None = None) -> ActionResult:
        """Use a gadget, whatever it does."""
        return self._done("use", use(self._world.now, self.robot_id, gadget, action_id))

    async def gadgets(self) -> tuple[Manual, ...]:
        """What the world says of its gadgets."""
        return manuals(self._world.now)

    async def report(self, report: Report) -> None:
        """Nobody watches."""

    async def sense(self) -> Reading:
        """All sensors at one moment."""
        return sense(self._world.now, self.robot_id)

    async def close(self) -> None:
        """There is no connection."""

    def _done(self, call: str, step: Step[LoggedAction]) -> ActionResult:
        self._world.now = step.state
        result = step.result.result
        if not step.result.refused:
            return result
        raise RobotStrandedError(
            call, 409, "stranded", result.reason or "", result.model_dump(mode="json")
        )
