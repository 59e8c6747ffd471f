"""Waiting for a client that may be late, or deaf."""

from __future__ import annotations

import asyncio
import time

import pytest

from coag.models.request import in_time


async def answer(seconds: float = 0.0) -> str:
    await asyncio.sleep(seconds)
    return "answer"


async def test_what_comes_in_time_is_given() -> None:
    assert await in_time(answer(), 5) == "answer"
    assert await in_time(answer(), None) == "answer"


async def test_what_is_late_is_cancelled() -> None:
    with pytest.raises(TimeoutError, match=r"no answer within 0\.01 s"):
        await in_time(answer(30), 0.01)


async def test_what_it_raises_is_raised() -> None:
    async def fail() -> str:
        raise TimeoutError("of its own")

    with pytest.raises(TimeoutError, match="of its own"):
        await in_time(fail(), 5)


@pytest.mark.parametrize("late", [True, False])
async def test_one_that_swallows_its_cancellation_is_left_behind(late: bool) -> None:
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
    task = asyncio.create_task(in_time(cling(), 0.01 if late else None))
    await begun.wait()
    if not late:
        task.cancel()
    await asyncio.wait({task})
    assert time.perf_counter() - before < 2
    assert task.cancelled() is not late
    if late:
        assert isinstance(task.exception(), TimeoutError)
    let_go.set()
    for _ in range(5):
        await asyncio.sleep(0)
