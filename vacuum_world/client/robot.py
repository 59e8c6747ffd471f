"""Drives a robot of a world over HTTP."""

from __future__ import annotations

import asyncio
from typing import Self

from pydantic import BaseModel, ConfigDict

from vacuum_world.errors import WorldRefusedError
from vacuum_world.showing import Report
from vacuum_world.world import (
    ActionResult,
    BatteryReading,
    Cell,
    Direction,
    DirtReading,
    Manual,
    PositionReading,
    ProximityReading,
    Reading,
)

from .http import Body, WorldHttp

_PAUSE = 0.2
"""Seconds between two questions of a client that is too impatient to wait in one."""


class _Manuals(BaseModel):
    gadgets: tuple[Manual, ...]


class Membership(BaseModel):
    """What joining a world gave: the robot and the token that drives it."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    id: str
    """The robot's id."""
    name: str
    """The robot's name."""
    token: str
    """The bearer token."""
    position: Cell
    """Where the robot was then."""
    battery: int
    """Its charge then."""


class WorldClient:
    """Drives one robot.

    Every method may raise `WorldUnreachableError` (nothing was sent), `OutcomeUnknownError`
    (sent, but no usable answer: it may have happened), `WorldRefusedError` (the world said no
    and why) or, for actions, `RobotStrandedError`. While the world is paused, an action waits,
    without end: bound it where you call it.

    Args:
        url: Where the world is served.
        robot_id: The robot's id.
        token: The token that drives it.
        timeout: Seconds to wait for connecting and for each part of an answer.
    """

    def __init__(self, url: str, robot_id: str, token: str, *, timeout: float = 10.0) -> None:
        self.robot_id = robot_id
        """The robot that is driven."""
        self._http = WorldHttp(url, token, timeout)
        self._wait = int(timeout / 2)

    @classmethod
    async def join(
        cls, url: str, name: str, *, control_token: str | None = None, timeout: float = 10.0
    ) -> Self:
        """Join a world, or take over the robot of this name with the control token."""
        member = await join_world(url, name, control_token=control_token, timeout=timeout)
        return cls(url, member.id, member.token, timeout=timeout)

    @property
    def url(self) -> str:
        """Where the world is served."""
        return self._http.url

    async def move(self, direction: Direction, action_id: str | None = None) -> ActionResult:
        """Move one cell."""
        return await self._patiently("/api/agent/move", {"direction": direction}, action_id)

    async def clean(self, action_id: str | None = None) -> ActionResult:
        """Clean the robot's cell."""
        return await self._patiently("/api/env/clean", None, action_id)

    async def use(self, gadget: str, action_id: str | None = None) -> ActionResult:
        """Use a gadget, whatever it does."""
        return await self._patiently("/api/agent/use", {"gadget": gadget}, action_id)

    async def gadgets(self) -> tuple[Manual, ...]:
        """What the world says of the gadgets that there are; it need not be true."""
        return (await self._http.get("/api/agent/gadgets", _Manuals)).gadgets

    async def report(self, report: Report) -> None:
        """Show those who watch what the robot's agent thinks and believes.

        The world stays as it is. A report takes the place of the one before.
        """
        await self._http.put(f"/api/agents/{self.robot_id}/report", report)

    async def _patiently(self, path: str, body: Body | None, action_id: str | None) -> ActionResult:
        """Asks again for as long as the world is paused: then nothing was done."""
        headers = {"Prefer": f"wait={self._wait}"}
        if action_id is not None:
            headers["X-Action-Id"] = action_id
        while True:
            try:
                return await self._http.post(path, ActionResult, body, headers)
            except WorldRefusedError as refused:
                if refused.error != "paused":
                    raise
            if not self._wait:
                await asyncio.sleep(_PAUSE)

    async def sense(self) -> Reading:
        """All sensors at one moment."""
        return await self._http.get("/api/sensor/all", Reading)

    async def position(self) -> PositionReading:
        """Where the robot, the charger and the grid's bounds are."""
        return await self._http.get("/api/sensor/position", PositionReading)

    async def dirty(self) -> DirtReading:
        """Dirt on the robot's cell and its four neighbours."""
        return await self._http.get("/api/sensor/dirty", DirtReading)

    async def proximity(self) -> ProximityReading:
        """Which of the four ways are blocked."""
        return await self._http.get("/api/sensor/proximity", ProximityReading)

    async def battery(self) -> BatteryReading:
        """The robot's charge."""
        return await self._http.get("/api/sensor/battery", BatteryReading)

    async def leave(self) -> None:
        """Take the robot out of the world; its token loses force."""
        await self._http.delete(f"/api/agents/{self.robot_id}")

    async def close(self) -> None:
        """Give the connections back; the robot stays."""
        await self._http.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


async def join_world(
    url: str, name: str, *, control_token: str | None = None, timeout: float = 10.0
) -> Membership:
    """Join a world as `name`; with the control token, take over the robot of that name.

    Raises:
        WorldRefusedError: The name is taken (409) or cannot be one (422), or the control token
            is wrong (401).
        WorldUnreachableError: No world answers there.
        OutcomeUnknownError: The robot may have joined, but no usable answer came back.
    """
    async with WorldHttp(url, control_token, timeout) as http:
        return await http.post("/api/agents", Membership, {"name": name})
