"""Waits for what others bring about."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


async def until(condition: Callable[[], object]) -> None:
    """Gives others their turn until a condition holds, threads and servers, too."""
    latest = time.monotonic() + 50
    while not condition():
        assert time.monotonic() < latest, "what was waited for does not come"
        await asyncio.sleep(0)
