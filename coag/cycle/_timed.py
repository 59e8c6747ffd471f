"""Runs foreign code in a task of its own, so that whatever it does, the caller goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")

GRACE_SECONDS = 0.1
"""Time that a cancelled call has to clean up before it is left behind."""
_LEFT_BEHIND: set[asyncio.Task[Any]] = set()
"""Calls that were cancelled and go on; asyncio itself keeps weak references only."""


class LateError(Exception):
    """The call gave no answer in its time; a `TimeoutError` is the call's own."""


class SelfCancelledError(Exception):
    """The call raised `CancelledError` though nobody had cancelled it."""


async def within(seconds: float | None, call: Callable[[], Awaitable[ResultT]]) -> ResultT:
    """What the call gives or raises, if it does so in time.

    A call that is late, or whose caller is cancelled, is cancelled; one that swallows that is
    left behind.

    Raises:
        LateError: There was no answer within `seconds`.
        SelfCancelledError: The call raised `CancelledError` by itself.
    """
    task = asyncio.create_task(_held(call))
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        await _end(task)
        raise
    if not task.done():
        await _end(task)
        raise LateError
    if task.cancelled():
        raise SelfCancelledError
    value, exit_request = task.result()
    if exit_request is not None:
        raise exit_request
    return value


async def _held(
    call: Callable[[], Awaitable[ResultT]],
) -> tuple[ResultT, None] | tuple[Any, BaseException]:
    """Hands a request to end the process to the caller; in a task it would end the loop."""
    try:
        return await call(), None
    except (KeyboardInterrupt, SystemExit) as exit_request:
        return None, exit_request


async def _end(task: asyncio.Task[Any]) -> None:
    _LEFT_BEHIND.add(task)
    task.add_done_callback(_forget)
    task.cancel()
    await asyncio.wait({task}, timeout=GRACE_SECONDS)


def _forget(task: asyncio.Task[Any]) -> None:
    _LEFT_BEHIND.discard(task)
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not complain of it


def told(error: BaseException) -> str:
    """An error's type and message, even where the message itself raises."""
    try:
        message = str(error)
    except Exception:  # foreign code: see the module's head
        message = "(its message cannot be read)"
    return f"{type(error).__name__}: {message}"
