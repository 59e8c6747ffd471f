"""The world that a case is played in: in this process, served here, or served elsewhere."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from coag.errors import ConfigurationError
from vacuum_world.client import RobotStrandedError, WorldClient, WorldControl
from vacuum_world.server import WorldServer
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

from .showing import Showing, Watcher

CONTROL_TOKEN = "VACUUM_WORLD_CONTROL_TOKEN"
"""Environment variable with the experimenter's token of a world served elsewhere."""
ROBOT = "robot"
"""Name of the robot that the agent drives."""


class ServedWorld:
    """A world behind HTTP, and the experimenter's way to it; agents never get the token."""

    def __init__(
        self, url: str, control_token: str, guests: AsyncExitStack, showing: Showing | None
    ) -> None:
        self.url = url
        self.guests = guests
        """What was opened for playing in it; closed with it."""
        self.showing = showing
        """How it is shown to people; None where nobody looks."""
        self._token = control_token
        self._control = WorldControl(url, control_token)
        guests.push_async_callback(self._control.close)
        self._client: WorldClient | None = None

    async def join(self) -> WorldClient:
        """A client that drives the robot; the robot joins, or is taken over if it is there."""
        self._client = await WorldClient.join(self.url, ROBOT, control_token=self._token)
        self.guests.push_async_callback(self._client.close)
        return self._client

    def watcher(self) -> Watcher | None:
        """Reports what the robot's agent thinks, if the run is shown."""
        if self.showing is None or self._client is None:
            return None
        watcher = Watcher(self._client, self.showing)
        self.guests.push_async_callback(watcher.close)
        return watcher

    async def state(self) -> WorldState:
        """The whole world, hidden things included."""
        return await self._control.world()

    async def restore(self, state: WorldState) -> None:
        """Puts the world into a state; the robot stays driven by its client."""
        await self._control.restore(state)


class LocalWorld:
    """A world in this process, which is the rules themselves; else as a `ServedWorld`."""

    showing: Showing | None = None

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

    def watcher(self) -> Watcher | None:
        """Nobody looks."""
        return None

    async def state(self) -> WorldState:
        """The whole world, hidden things included."""
        return self.now

    async def restore(self, state: WorldState) -> None:
        """Puts the world into a state."""
        self.now = state


World = ServedWorld | LocalWorld
"""A world and the experimenter's way to it."""


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
    """Whether to start again; otherwise it is as it was left."""
    showing: Showing | None = None
    """How it is shown to people; None where nobody looks."""


@asynccontextmanager
async def open_world(start: WorldState, how: Opening) -> AsyncGenerator[World]:
    """A world to play in, which begins as `start`.

    Raises:
        ConfigurationError: It is served elsewhere, and there is no control token.
        WorldError: The world cannot be served or reached.
    """
    async with AsyncExitStack() as opened:
        if how.local:
            yield LocalWorld(start, opened)
        elif how.url is not None:
            token = os.environ.get(CONTROL_TOKEN)
            if not token:
                raise ConfigurationError(
                    "A world in its own process is set up with its control token: set "
                    f"{CONTROL_TOKEN}."
                )
            world = ServedWorld(how.url, token, opened, how.showing)
            if how.fresh:
                await world.restore(start)
            yield world
        else:
            if how.fresh and how.kept is not None:
                how.kept.unlink(missing_ok=True)
            shown = how.showing or Showing()
            server = await asyncio.to_thread(
                lambda: WorldServer(
                    start, state_file=how.kept, control_token=shown.control_token, port=shown.port
                ).start()
            )
            opened.push_async_callback(asyncio.to_thread, server.stop)
            yield ServedWorld(server.url, server.control_token, opened, how.showing)
