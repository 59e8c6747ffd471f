"""The robot's way to its world, with sensors, motors and a world that can break."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from coag.proof import Cause
from vacuum_world.client import (
    Membership,
    OutcomeUnknownError,
    WorldClient,
    WorldControl,
    WorldRefusedError,
    WorldUnreachableError,
)
from vacuum_world.world import STILL, ActionResult, Direction, Reading, SetDynamics

from ._fault import Breaker
from ._sensor import LIES
from ._world import PLANS

NO_READING = "no reading"
HANGS = "hangs"
TOOL_VARIANTS = (
    "raises",
    HANGS,
    "fails without a reason",
    "world out of reach",
    "line lost",
    "does nothing",
    "worn brush",
)
"""The ways in which a tool breaks."""
_RAISED = (
    RuntimeError("motor controller: no acknowledgement"),
    OSError("bus error while writing to the drive"),
    ValueError("checksum mismatch in frame 3"),
    KeyError("wheel_left"),
)
_REASONS = ("connection reset by peer", "read timed out", "server disconnected")


class BrokenClient(WorldClient):
    """Drives one robot, as well as its breaker lets it.

    Args:
        url: Where the world is served.
        member: The robot and its token.
        breaker: Says what breaks when.
        control: The experimenter's way to the same world.
    """

    def __init__(
        self, url: str, member: Membership, breaker: Breaker, control: WorldControl
    ) -> None:
        super().__init__(url, member.id, member.token)
        self._breaker = breaker
        self._control = control
        self._before: Reading | None = None

    async def sense(self) -> Reading:
        """All sensors at one moment, as far as they work."""
        true = await super().sense()
        before, self._before = self._before or true, true
        breaker = self._breaker
        if not breaker.due(Cause.MISPERCEPTION):
            return true
        if breaker.variant == NO_READING:
            breaker.strike()
            raise WorldRefusedError("GET /api/sensor/all", 503, "unavailable", "try later", {})
        told = LIES[breaker.variant](true, before, breaker.dice())
        if told != true:
            breaker.strike()
        return told

    async def move(self, direction: Direction, action_id: str | None = None) -> ActionResult:
        """Move one cell, if the motors and the world let it."""
        act = super().move
        return await self._act(direction, lambda: act(direction, action_id))

    async def clean(self, action_id: str | None = None) -> ActionResult:
        """Clean the robot's cell, if the brush and the world let it."""
        act = super().clean
        return await self._act(None, lambda: act(action_id))

    async def _act(
        self, direction: Direction | None, act: Callable[[], Awaitable[ActionResult]]
    ) -> ActionResult:
        if self._breaker.due(Cause.CHANGED_ENVIRONMENT):
            await self._intervene(direction)
        if self._breaker.due(Cause.FAILED_EXECUTION):
            return await self._break(direction, act)
        return await act()

    async def _intervene(self, direction: Direction | None) -> None:
        world = await self._control.world()
        robot = next(one for one in world.robots if one.id == self.robot_id)
        plan = PLANS[self._breaker.variant]
        intervention = plan(world, robot, direction, self._breaker.dice())
        if intervention is not None:
            await self._control.intervene(intervention)
            self._breaker.strike()

    async def _break(
        self, direction: Direction | None, act: Callable[[], Awaitable[ActionResult]]
    ) -> ActionResult:
        variant, dice = self._breaker.variant, self._breaker.dice()
        if variant == "worn brush":
            return await act() if direction else await self._worn(act)
        self._breaker.strike()
        match variant:
            case "raises":
                raise dice.choice(_RAISED)
            case "hangs":
                await asyncio.Event().wait()
            case "world out of reach":
                raise WorldUnreachableError(self._call(direction), self.url, dice.choice(_REASONS))
            case "line lost":
                await act()
                raise OutcomeUnknownError(self._call(direction), self.url, dice.choice(_REASONS))
            case _:
                pass
        return await self._told(ok=variant == "does nothing")

    async def _worn(self, act: Callable[[], Awaitable[ActionResult]]) -> ActionResult:
        """A cleaning that fails by the world's own rules; half of the time it says so."""
        self._breaker.strike()
        worn = STILL.model_copy(update={"clean_uncertainty": 1.0})
        await self._control.intervene(SetDynamics(dynamics=worn))
        try:
            return await act()
        finally:
            await self._control.intervene(SetDynamics(dynamics=STILL))

    async def _told(self, *, ok: bool) -> ActionResult:
        """What a tool tells that did nothing."""
        true = await super().sense()
        where: dict[str, Any] = {"position": true.position, "battery": true.battery}
        return ActionResult(ok=ok, failure=None, reason=None, **where)

    @staticmethod
    def _call(direction: Direction | None) -> str:
        return "POST /api/agent/move" if direction else "POST /api/env/clean"
