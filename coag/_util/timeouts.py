"""Time-outs and cancellation for foreign code that may ignore both."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")

GRACE_SECONDS = 0.1
"""Time that a cancelled task has to clean up before it is abandoned."""
_PIECES_AT_ONCE = 32
_ABANDONED: set[asyncio.Task[Any]] = set()
"""Cancelled tasks that still run; asyncio itself keeps only weak references to them."""


class LateError(Exception):
    """The call did not answer in time; a `TimeoutError` is one that the call itself raised."""


class SelfCancelledError(Exception):
    """The call raised `CancelledError` although nobody had cancelled it."""

    def __init__(self) -> None:
        super().__init__("the call cancelled itself")


def is_cancelled() -> bool:
    """Whether somebody cancelled the task that runs; if not, a `CancelledError` is a fault."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def within(seconds: float | None, call: Callable[[], Awaitable[ResultT]]) -> ResultT:
    """Awaits a call in a task of its own, for at most so many seconds; None waits for ever.

    A call that is late, or whose caller is cancelled, is cancelled. One that ignores the
    cancellation is abandoned after `GRACE_SECONDS`, so the caller never waits longer.

    Raises:
        LateError: There was no answer within `seconds`.
        SelfCancelledError: The call raised `CancelledError` by itself.
    """
    task = asyncio.create_task(_without_exit(call))
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        await end_task(task)
        raise
    if not task.done():
        await end_task(task)
        raise LateError(f"no answer within {seconds:g} s")
    if task.cancelled():
        raise SelfCancelledError
    value, exit_request = task.result()
    if exit_request is not None:
        raise exit_request
    return value


async def in_time(seconds: float | None, call: Callable[[], Awaitable[ResultT]]) -> ResultT:
    """As `within`, for callers to whom a late call and the call's own time-out are the same.

    Raises:
        TimeoutError: There was no answer within `seconds`; the message says so.
        SelfCancelledError: The call raised `CancelledError` by itself.
    """
    try:
        return await within(seconds, call)
    except LateError as late:
        raise TimeoutError(str(late)) from None


async def next_in_time(seconds: float | None, call: Callable[[], Awaitable[ResultT]]) -> ResultT:
    """As `in_time`, in the caller's own task, which the pieces of one stream need.

    A stream may hold a cancel scope, which is bound to one task, from piece to piece. A call that
    ignores its cancellation is waited for.

    Raises:
        TimeoutError: There was no answer within `seconds`; the message says so.
    """
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            return await call()
    except TimeoutError:
        if not deadline.expired():
            raise
        raise TimeoutError(f"no answer within {seconds:g} s") from None


async def end_task(task: asyncio.Task[Any]) -> None:
    """Cancels a task and waits `GRACE_SECONDS` for its end; then it is abandoned."""
    _ABANDONED.add(task)
    task.add_done_callback(_forget)
    task.cancel()
    await asyncio.wait({task}, timeout=GRACE_SECONDS)


async def until_done(
    tasks: Collection[asyncio.Task[Any]], *, cancel: bool
) -> asyncio.CancelledError | None:
    """Waits until tasks are done, however often the waiter is cancelled meanwhile.

    Args:
        tasks: What is waited for.
        cancel: Whether each cancellation of the waiter is passed on to them.

    Returns:
        The last cancellation of the waiter, which is the caller's to raise; None if it had none.
    """
    cancelled: asyncio.CancelledError | None = None
    while any(not task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError as again:
            cancelled = again
            if cancel:
                for task in tasks:
                    task.cancel()
    return cancelled


async def let_others_run(number: int) -> None:
    """Lets other tasks run after every 32nd piece of a stream.

    A stream that never waits could otherwise neither be cancelled nor be late.
    """
    if number % _PIECES_AT_ONCE == 0:
        await asyncio.sleep(0)


def describe_error(error: BaseException) -> str:
    """An error's type and message, even where building the message raises."""
    try:
        message = str(error)
    except Exception:  # foreign code may raise anything
        message = "(its message cannot be read)"
    return f"{type(error).__name__}: {message}"


def in_thread(call: Callable[[], ResultT], name: str) -> Future[ResultT]:
    """Starts a blocking call in a daemon thread and returns its future.

    Unlike a pool's thread, one that never ends keeps neither the loop nor the process from
    ending. The call sees the context variables of its caller.
    """
    future: Future[ResultT] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(call))
        except BaseException as error:  # a thread has no caller; its waiter raises it
            future.set_exception(error)

    Thread(target=run, name=name, daemon=True).start()
    return future


async def outcome_of(future: Future[ResultT]) -> ResultT:
    """Awaits the result of a thread's future; cancelling the waiter does not touch the future."""
    loop = asyncio.get_running_loop()
    arrived = asyncio.Event()

    def wake(_: Future[Any]) -> None:
        with suppress(RuntimeError):  # the loop has ended, so nobody waits any more
            loop.call_soon_threadsafe(arrived.set)

    future.add_done_callback(wake)
    await arrived.wait()
    return future.result()


async def _without_exit(
    call: Callable[[], Awaitable[ResultT]],
) -> tuple[ResultT, None] | tuple[Any, BaseException]:
    """Hands a request to end the process to the caller; raised in a task it would end the loop."""
    try:
        return await call(), None
    except (KeyboardInterrupt, SystemExit) as exit_request:
        return None, exit_request


def _forget(task: asyncio.Task[Any]) -> None:
    _ABANDONED.discard(task)
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not warn about it
