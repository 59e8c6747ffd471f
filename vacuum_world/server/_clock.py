"""The clock of a served world."""

from __future__ import annotations

import asyncio
import logging

from ._hub import WorldHub

_log = logging.getLogger("vacuum_world.server")


async def tick_by_clock(hub: WorldHub) -> None:
    """Lets ticks pass where time passes by the clock, at the pace of the moment; never ends."""
    while True:
        try:
            async with asyncio.timeout(hub.gate.pace.interval):
                await hub.gate.next_change()
        except TimeoutError:
            _tick(hub)


def _tick(hub: WorldHub) -> None:
    if hub.state.ticks != "clock" or hub.gate.pace.paused:
        return
    try:
        hub.tick()
    except OSError as error:
        _log.warning("a tick was left out, the world could not be kept: %s", error)
