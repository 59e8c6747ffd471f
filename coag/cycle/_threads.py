"""Blocking calls in threads of their own, which nobody has to wait for at the end."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")


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
