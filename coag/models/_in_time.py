"""Waiting for a client no longer than is allowed, even for one that cannot be cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")

GRACE_SECONDS = 0.1
"""Time that a cancelled call has to clean up before it is left behind."""
_LEFT_BEHIND: set[asyncio.Task[Any]] = set()
"""Calls that were cancelled and go on; asyncio itself keeps weak references only."""


async def in_time(call: Coroutine[Any, Any, ResultT], seconds: float | None) -> ResultT:
    """What the call brings.

    A call that is late, or whose caller is cancelled, is cancelled; one that swallows that is
    left behind.

    Raises:
        TimeoutError: It brought nothing within `seconds`.
    """
    task = asyncio.create_task(call)
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        await _end(task)
        raise
    if not task.done():
        await _end(task)
        raise TimeoutError(f"no answer within {seconds:g} s")
    return task.result()


async def _end(task: asyncio.Task[Any]) -> None:
    _LEFT_BEHIND.add(task)
    task.add_done_callback(_forget)
    task.cancel()
    await asyncio.wait({task}, timeout=GRACE_SECONDS)


def _forget(task: asyncio.Task[Any]) -> None:
    _LEFT_BEHIND.discard(task)
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not complain of it
