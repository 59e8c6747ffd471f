"""The world that a case is played in: served here, or in a process of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from coag.errors import ConfigurationError
from vacuum_world.client import WorldClient, WorldControl
from vacuum_world.server import WorldServer
from vacuum_world.world import Intervention, WorldState

from ._showing import Showing, Watcher

CONTROL_TOKEN = "VACUUM_WORLD_CONTROL_TOKEN"
"""Environment variable with the experimenter's token of a world served elsewhere."""

ROBOT = "robot"
"""Name of the robot that the agent drives."""


@dataclass(frozen=True, slots=True)
class World:
    """A served world and the experimenter's way to it."""

    url: str
    """Where it is served."""
    control_token: str
    """The experimenter's token; agents never get it."""
    guests: AsyncExitStack
    """What was opened for playing in it; closed with it."""
    showing: Showing | None = None
    """How it is shown to people; None where nobody looks."""
    clients: list[WorldClient] = field(default_factory=list[WorldClient])
    """Those that drive the robot; the last one has its token."""

    async def join(self) -> WorldClient:
        """A client that drives the robot; the robot joins, or is taken over if it is there."""
        client = await WorldClient.join(self.url, ROBOT, control_token=self.control_token)
        self.guests.push_async_callback(client.close)
        self.clients.append(client)
        return client

    def watcher(self) -> Watcher | None:
        """Tells people what the robot's agent thinks, where they look."""
        if self.showing is None or not self.clients:
            return None
        watcher = Watcher(self.clients[-1], self.showing)
        self.guests.push_async_callback(watcher.close)
        return watcher

    async def state(self) -> WorldState:
        """The whole world, hidden things included."""
        async with WorldControl(self.url, self.control_token) as control:
            return await control.world()

    async def actions(self) -> int:
        """How many actions were taken in it."""
        return (await self.state()).counters.actions

    async def intervene(self, intervention: Intervention) -> None:
        """Changes it as no robot can."""
        async with WorldControl(self.url, self.control_token) as control:
            await control.intervene(intervention)


@asynccontextmanager
async def open_world(
    start: WorldState,
    *,
    url: str | None = None,
    kept: Path | None = None,
    fresh: bool = True,
    showing: Showing | None = None,
) -> AsyncGenerator[World]:
    """A world to play in.

    Args:
        start: How it begins.
        url: Where a world is served already; None to serve one here.
        kept: The file in which a world served here is kept; None keeps it in RAM.
        fresh: Whether to begin anew; otherwise it is found as it was left.
        showing: How it is shown to people; None where nobody looks.

    Raises:
        ConfigurationError: `url` is given, but no control token.
        WorldError: The world cannot be served or reached.
    """
    if url is not None:
        token = await _set_up(start, url, fresh)
        async with AsyncExitStack() as guests:
            yield World(url, token, guests, showing)
        return
    server = await asyncio.to_thread(_started, start, kept, fresh, showing)
    try:
        async with AsyncExitStack() as guests:
            yield World(server.url, server.control_token, guests, showing)
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
