"""Foreign code is waited for as long as is allowed, even if it ignores its cancellation."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable

import pytest

from coag._util.timeouts import (
    LateError,
    SelfCancelledError,
    describe_error,
    in_thread,
    in_time,
    next_in_time,
    outcome_of,
    within,
)

Wait = Callable[[float | None, Callable[[], Awaitable[str]]], Awaitable[str]]
EVERY = pytest.mark.parametrize("wait", [within, in_time, next_in_time])


async def answer(seconds: float = 0.0) -> str:
    await asyncio.sleep(seconds)
    return "answer"


@EVERY
async def test_an_answer_in_time_is_given(wait: Wait) -> None:
    assert await wait(5, answer) == "answer"
    assert await wait(None, answer) == "answer"


@EVERY
async def test_a_late_call_is_cancelled_and_its_time_is_named(wait: Wait) -> None:
    ended = asyncio.Event()

    async def slow() -> str:
        try:
            return await answer(30)
        finally:
            ended.set()

    late = LateError if wait is within else TimeoutError
    with pytest.raises(late, match=r"no answer within 0\.01 s"):
        await wait(0.01, slow)
    assert ended.is_set()


@EVERY
@pytest.mark.parametrize("error", [TimeoutError("of its own"), ValueError("of its own")])
async def test_the_calls_own_error_is_raised_as_it_is(wait: Wait, error: Exception) -> None:
    async def fail() -> str:
        raise error

    with pytest.raises(type(error), match="of its own"):
        await wait(5, fail)


@pytest.mark.parametrize("wait", [within, in_time])
async def test_a_call_that_cancels_only_itself_does_not_cancel_its_caller(wait: Wait) -> None:
    async def give_up() -> str:
        raise asyncio.CancelledError

    with pytest.raises(SelfCancelledError, match="cancelled itself"):
        await wait(5, give_up)


@pytest.mark.parametrize("exit_request", [KeyboardInterrupt, SystemExit])
async def test_a_request_to_end_the_process_reaches_the_caller(
    exit_request: type[BaseException],
) -> None:
    async def leave() -> str:
        raise exit_request

    with pytest.raises(exit_request):
        await within(5, leave)


@pytest.mark.parametrize("late", [True, False])
async def test_a_call_that_ignores_its_cancellation_is_abandoned(late: bool) -> None:
    begun, let_go = asyncio.Event(), asyncio.Event()

    async def cling() -> str:
        begun.set()
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        raise ValueError("nobody hears this")

    before = time.perf_counter()
    task = asyncio.create_task(within(0.01 if late else None, cling))
    await begun.wait()
    if not late:
        task.cancel()
    await asyncio.wait({task})
    assert time.perf_counter() - before < 10
    assert task.cancelled() is not late
    if late:
        assert isinstance(task.exception(), LateError)
    let_go.set()
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_blocking_call_runs_in_a_thread_that_holds_nothing_up() -> None:
    assert await outcome_of(in_thread(lambda: threading.current_thread().daemon, "t")) is True
    with pytest.raises(ZeroDivisionError):
        await outcome_of(in_thread(lambda: 1 // 0, "t"))
    free = threading.Event()
    future = in_thread(lambda: free.wait(50), "t")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(outcome_of(future), 0.01)
    free.set()
    assert await outcome_of(future) is True


def test_an_error_without_a_readable_message_can_be_described() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert describe_error(ValueError("wrong")) == "ValueError: wrong"
    assert describe_error(Mute()) == "Mute: (its message cannot be read)"
