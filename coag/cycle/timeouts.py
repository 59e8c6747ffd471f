"""Calls within a time: what is late is left behind, and what only cancels itself is told apart."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import Any, TypeVar

from coag.schema import end_task

# ---- Runs foreign code in a task of its own, so that whatever it does, the caller goes on ----


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


# ---- Blocking calls in threads of their own, which nobody has to wait for at the end ----


def in_thread(call: Callable[[], ResultT], name: str) -> Future[ResultT]:
    """Starts a blocking call in a daemon thread and gives its future.

    Unlike a pool's thread, one that never ends keeps neither the loop nor the process from
    ending. The call sees the context variables of whoever starts it.
    """
    future: Future[ResultT] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(call))
        except BaseException as error:  # a thread has nobody to raise to; the waiter raises it
            future.set_exception(error)

    Thread(target=run, name=name, daemon=True).start()
    return future


async def outcome_of(future: Future[ResultT]) -> ResultT:
    """What a thread's future brings, awaited; a cancelled waiter leaves the future alone."""
    loop = asyncio.get_running_loop()
    arrived = asyncio.Event()

    def wake(done: Future[Any]) -> None:
        with suppress(RuntimeError):  # the loop has ended, so nobody waits there any more
            loop.call_soon_threadsafe(arrived.set)

    future.add_done_callback(wake)
    await arrived.wait()
    return future.result()
