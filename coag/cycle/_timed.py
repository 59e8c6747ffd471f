"""Runs foreign code in a task of its own, so that whatever it does, the caller goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from coag.schema import end_task

ResultT = TypeVar("ResultT")


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
        await end_task(task)
        raise
    if not task.done():
        await end_task(task)
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


def told(error: BaseException) -> str:
    """An error's type and message, even where the message itself raises."""
    try:
        message = str(error)
    except Exception:  # foreign code: see the module's head
        message = "(its message cannot be read)"
    return f"{type(error).__name__}: {message}"
