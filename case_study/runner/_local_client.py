"""The robot's way to a world in this process."""

from __future__ import annotations

from dataclasses import dataclass

from vacuum_world.client import RobotStrandedError, WorldClient
from vacuum_world.showing import Report
from vacuum_world.world import (
    ActionResult,
    BatteryReading,
    Direction,
    DirtReading,
    LoggedAction,
    Manual,
    PositionReading,
    ProximityReading,
    Reading,
    Step,
    WorldState,
    clean,
    leave,
    manuals,
    move,
    sense,
    sense_battery,
    sense_dirty,
    sense_position,
    sense_proximity,
    use,
)


@dataclass(slots=True)
class Stage:
    """Where a world in this process is kept."""

    state: WorldState
    """The world now."""


class LocalClient(WorldClient):
    """Drives one robot by the rules themselves, as a `WorldClient` does over HTTP.

    Args:
        stage: Where the world is.
        robot_id: The robot's id.
    """

    def __init__(self, stage: Stage, robot_id: str) -> None:
        self.robot_id = robot_id
        self._stage = stage

    @property
    def url(self) -> str:
        """It is served nowhere."""
        return "local"

    async def move(self, direction: Direction, action_id: str | None = None) -> ActionResult:
        """Move one cell."""
        return self._done("move", move(self._stage.state, self.robot_id, direction, action_id))

    async def clean(self, action_id: str | None = None) -> ActionResult:
        """Clean the robot's cell."""
        return self._done("clean", clean(self._stage.state, self.robot_id, action_id))

    async def use(self, gadget: str, action_id: str | None = None) -> ActionResult:
        """Use a gadget, whatever it does."""
        return self._done("use", use(self._stage.state, self.robot_id, gadget, action_id))

    async def gadgets(self) -> tuple[Manual, ...]:
        """What the world says of its gadgets."""
        return manuals(self._stage.state)

    async def report(self, report: Report) -> None:
        """Nobody watches."""

    async def sense(self) -> Reading:
        """All sensors at one moment."""
        return sense(self._stage.state, self.robot_id)

    async def position(self) -> PositionReading:
        """Where the robot, the charger and the grid's bounds are."""
        return sense_position(self._stage.state, self.robot_id)

    async def dirty(self) -> DirtReading:
        """Dirt on the robot's cell and its four neighbours."""
        return sense_dirty(self._stage.state, self.robot_id)

    async def proximity(self) -> ProximityReading:
        """Which of the four ways are blocked."""
        return sense_proximity(self._stage.state, self.robot_id)

    async def battery(self) -> BatteryReading:
        """The robot's charge."""
        return sense_battery(self._stage.state, self.robot_id)

    async def leave(self) -> None:
        """Take the robot out of the world."""
        self._stage.state = leave(self._stage.state, self.robot_id).state

    async def close(self) -> None:
        """There is no connection."""

    def _done(self, call: str, step: Step[LoggedAction]) -> ActionResult:
        self._stage.state = step.state
        result = step.result.result
        if not step.result.refused:
            return result
        raise RobotStrandedError(
            call, 409, "stranded", result.reason or "", result.model_dump(mode="json")
        )
