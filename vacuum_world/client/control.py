"""The experimenter's way to a world."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict

from vacuum_world.showing import Pace, PaceChange
from vacuum_world.world import Intervention, WorldEvent, WorldState

from .http import WorldHttp


class Happening(BaseModel):
    """What a control call brought about."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    tick: int
    """Ticks passed since the world began."""
    events: tuple[WorldEvent, ...]
    """What happened."""


class WorldControl:
    """Looks at and changes a world as no robot can.

    Every method may raise `WorldUnreachableError`, `OutcomeUnknownError` or `WorldRefusedError`.

    Args:
        url: Where the world is served.
        control_token: The experimenter's token.
        timeout: Seconds to wait for connecting and for each part of an answer.
    """

    def __init__(self, url: str, control_token: str, *, timeout: float = 10.0) -> None:
        self._http = WorldHttp(url, control_token, timeout)

    async def world(self) -> WorldState:
        """The whole world, hidden things included."""
        return await self._http.get("/api/world", WorldState)

    async def tick(self, count: int = 1) -> Happening:
        """Let ticks pass."""
        return await self._http.post("/api/world/tick", Happening, {"count": count})

    async def intervene(self, intervention: Intervention) -> Happening:
        """Apply an intervention."""
        return await self._http.post("/api/world/interventions", Happening, intervention)

    async def snapshot(self) -> WorldState:
        """The whole world, to be restored later."""
        return await self._http.post("/api/world/snapshot", WorldState)

    async def restore(self, world: WorldState) -> Happening:
        """Put a world in place of the one that is served."""
        return await self._http.post("/api/world/restore", Happening, world)

    async def remove(self, robot_id: str) -> None:
        """Take a robot out of the world."""
        await self._http.delete(f"/api/agents/{robot_id}")

    async def pace(self) -> Pace:
        """Whether the world is paused, who waits, and how fast its clock goes."""
        return await self._http.get("/api/pace", Pace)

    async def change_pace(
        self, *, paused: bool | None = None, interval: float | None = None
    ) -> Pace:
        """Pause or resume, or set the seconds between ticks of the clock; None leaves it."""
        wish = PaceChange(paused=paused, interval=interval)
        return Pace.model_validate_json((await self._http.put("/api/pace", wish)).content)

    async def step(self, count: int = 1) -> Pace:
        """While paused, let so many actions through; by the clock, as many ticks pass too."""
        return await self._http.post("/api/pace/step", Pace, {"count": count})

    async def close(self) -> None:
        """Give the connections back."""
        await self._http.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
