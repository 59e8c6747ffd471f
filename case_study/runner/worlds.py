"""The world that a case is played in: in this process, served here, or served elsewhere."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from coag.errors import ConfigurationError
from vacuum_world.client import RobotStrandedError, WorldClient, WorldControl
from vacuum_world.server import WorldServer
from vacuum_world.showing import Report
from vacuum_world.world import (
    ActionResult,
    BatteryReading,
    Direction,
    DirtReading,
    Intervention,
    LoggedAction,
    Manual,
    PositionReading,
    ProximityReading,
    Reading,
    Step,
    WorldState,
    clean,
    intervene,
    join,
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

from .showing import Showing, Watcher


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


CONTROL_TOKEN = "VACUUM_WORLD_CONTROL_TOKEN"
"""Environment variable with the experimenter's token of a world served elsewhere."""

ROBOT = "robot"
"""Name of the robot that the agent drives."""


class World(Protocol):
    """A world and the experimenter's way to it."""

    @property
    def guests(self) -> AsyncExitStack:
        """What was opened for playing in it; closed with it."""
        ...

    @property
    def showing(self) -> Showing | None:
        """How it is shown to people; None where nobody looks."""
        ...

    async def join(self) -> WorldClient:
        """A client that drives the robot; the robot joins, or is taken over if it is there."""
        ...

    def watcher(self) -> Watcher | None:
        """Tells people what the robot's agent thinks, where they look."""
        ...

    async def state(self) -> WorldState:
        """The whole world, hidden things included."""
        ...

    async def restore(self, state: WorldState) -> None:
        """Puts the world into a state; the robot stays driven by its client."""
        ...

    async def intervene(self, intervention: Intervention) -> None:
        """Changes it as no robot can."""
        ...


class ServedWorld:
    """A world behind HTTP.

    Args:
        url: Where it is served.
        control_token: The experimenter's token; agents never get it.
        guests: What is closed with it.
        showing: How it is shown to people; None where nobody looks.
    """

    def __init__(
        self,
        url: str,
        control_token: str,
        guests: AsyncExitStack,
        showing: Showing | None = None,
    ) -> None:
        self.url = url
        self.guests = guests
        self.showing = showing
        self._token = control_token
        self._control = WorldControl(url, control_token)
        guests.push_async_callback(self._control.close)
        self._clients: list[WorldClient] = []

    async def join(self) -> WorldClient:
        """A client that drives the robot; the robot joins, or is taken over if it is there."""
        client = await WorldClient.join(self.url, ROBOT, control_token=self._token)
        self.guests.push_async_callback(client.close)
        self._clients.append(client)
        return client

    def watcher(self) -> Watcher | None:
        """Tells people what the robot's agent thinks, where they look."""
        if self.showing is None or not self._clients:
            return None
        watcher = Watcher(self._clients[-1], self.showing)
        self.guests.push_async_callback(watcher.close)
        return watcher

    async def state(self) -> WorldState:
        """The whole world, hidden things included."""
        return await self._control.world()

    async def restore(self, state: WorldState) -> None:
        """Puts the world into a state."""
        await self._control.restore(state)

    async def intervene(self, intervention: Intervention) -> None:
        """Changes it as no robot can."""
        await self._control.intervene(intervention)


class LocalWorld:
    """A world in this process: the rules themselves.

    Args:
        start: How it begins.
        guests: What is closed with it.
    """

    def __init__(self, start: WorldState, guests: AsyncExitStack) -> None:
        self.guests = guests
        self.showing: Showing | None = None
        self._stage = Stage(start)

    async def join(self) -> WorldClient:
        """A client that drives the robot; the robot joins, or is taken over if it is there."""
        stage = self._stage
        robot = next((each for each in stage.state.robots if each.name == ROBOT), None)
        if robot is None:
            step = join(stage.state, ROBOT)
            stage.state, robot = step.state, step.result
        return LocalClient(stage, robot.id)

    def watcher(self) -> Watcher | None:
        """Nobody looks."""
        return None

    async def state(self) -> WorldState:
        """The whole world, hidden things included."""
        return self._stage.state

    async def restore(self, state: WorldState) -> None:
        """Puts the world into a state."""
        self._stage.state = state

    async def intervene(self, intervention: Intervention) -> None:
        """Changes it as no robot can."""
        self._stage.state = intervene(self._stage.state, intervention).state


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Where and how a world is opened."""

    local: bool = False
    """In this process, behind no server."""
    url: str | None = None
    """Where it is served already; None to serve it here."""
    kept: Path | None = None
    """The file in which a world served here is kept; None keeps it in RAM."""
    fresh: bool = True
    """Whether to begin anew; otherwise it is found as it was left."""
    showing: Showing | None = None
    """How it is shown to people; None where nobody looks."""


@asynccontextmanager
async def open_world(start: WorldState, how: Opening) -> AsyncGenerator[World]:
    """A world to play in.

    Args:
        start: How it begins.
        how: Where and how.

    Raises:
        ConfigurationError: It is served elsewhere, and there is no control token.
        WorldError: The world cannot be served or reached.
    """
    if how.local:
        async with AsyncExitStack() as guests:
            yield LocalWorld(start, guests)
    elif how.url is not None:
        token = await _set_up(start, how.url, how.fresh)
        async with AsyncExitStack() as guests:
            yield ServedWorld(how.url, token, guests, how.showing)
    else:
        server = await asyncio.to_thread(_started, start, how.kept, how.fresh, how.showing)
        try:
            async with AsyncExitStack() as guests:
                yield ServedWorld(server.url, server.control_token, guests, how.showing)
        finally:
            await asyncio.to_thread(server.stop)


async def _set_up(start: WorldState, url: str, fresh: bool) -> str:
    """Puts a world that is served elsewhere into its beginning; its control token."""
    token = os.environ.get(CONTROL_TOKEN)
    if not token:
        raise ConfigurationError(
            f"A world in its own process is set up with its control token: set {CONTROL_TOKEN}."
        )
    if fresh:
        async with WorldControl(url, token) as control:
            await control.restore(start)
    return token


def _started(
    start: WorldState, kept: Path | None, fresh: bool, showing: Showing | None
) -> WorldServer:
    if fresh and kept is not None:
        kept.unlink(missing_ok=True)
    shown = showing or Showing()
    return WorldServer(
        start, state_file=kept, control_token=shown.control_token, port=shown.port
    ).start()
