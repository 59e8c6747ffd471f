"""The world that a case is played in: served here, or in a process of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from coag.errors import ConfigurationError
from vacuum_world.client import WorldClient, WorldControl
from vacuum_world.server import WorldServer
from vacuum_world.world import Intervention, WorldState

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

    async def join(self) -> WorldClient:
        """A client that drives the robot; the robot joins, or is taken over if it is there."""
        client = await WorldClient.join(self.url, ROBOT, control_token=self.control_token)
        self.guests.push_async_callback(client.close)
        return client

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
    start: WorldState, *, url: str | None = None, kept: Path | None = None, fresh: bool = True
) -> AsyncGenerator[World]:
    """A world to play in.

    Args:
        start: How it begins.
        url: Where a world is served already; None to serve one here.
        kept: The file in which a world served here is kept; None keeps it in RAM.
        fresh: Whether to begin anew; otherwise it is found as it was left.

    Raises:
        ConfigurationError: `url` is given, but no control token.
        WorldError: The world cannot be served or reached.
    """
    if url is not None:
        token = await _set_up(start, url, fresh)
        async with AsyncExitStack() as guests:
            yield World(url, token, guests)
        return
    server = await asyncio.to_thread(_started, start, kept, fresh)
    try:
        async with AsyncExitStack() as guests:
            yield World(server.url, server.control_token, guests)
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


def _started(start: WorldState, kept: Path | None, fresh: bool) -> WorldServer:
    if fresh and kept is not None:
        kept.unlink(missing_ok=True)
    return WorldServer(start, state_file=kept).start()
