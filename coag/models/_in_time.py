"""Waiting for a client no longer than is allowed, even for one that cannot be cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from coag.schema import end_task

ResultT = TypeVar("ResultT")


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
        await end_task(task)
        raise
    if not task.done():
        await end_task(task)
        raise TimeoutError(f"no answer within {seconds:g} s")
    return task.result()
