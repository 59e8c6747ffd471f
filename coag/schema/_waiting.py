"""Ending a task that may not want to end."""

from __future__ import annotations

import asyncio
from typing import Any

GRACE_SECONDS = 0.1
"""Time that a cancelled task has to clean up before it is left behind."""
_LEFT_BEHIND: set[asyncio.Task[Any]] = set()
"""Tasks that were cancelled and go on; asyncio itself keeps weak references only."""

_AT_ONCE = 32


async def end_task(task: asyncio.Task[Any]) -> None:
    """Cancels a task and waits for its end; one that swallows that is left behind."""
    _LEFT_BEHIND.add(task)
    task.add_done_callback(_forget)
    task.cancel()
    await asyncio.wait({task}, timeout=GRACE_SECONDS)


def _forget(task: asyncio.Task[Any]) -> None:
    _LEFT_BEHIND.discard(task)
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not complain of it


async def let_others_run(number: int) -> None:
    """Lets other tasks run after every 32nd piece of a stream.

    A stream that never waits could otherwise neither be cancelled nor be late.
    """
    if number % _AT_ONCE == 0:
        await asyncio.sleep(0)
