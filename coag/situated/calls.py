"""The calls of one tool by their keys: each is run once, and can be asked about later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import NamedTuple

from coag.schema import Reconciliation

from .operations import OperationRefusedError
from .records import Acknowledgement

KEYS = 10_000
"""Calls that a tool remembers by default."""


class _Call(NamedTuple):
    what: str
    task: asyncio.Task[Acknowledgement]


class CallBook:
    """Remembers the newest calls of a tool.

    Args:
        keep: How many calls are remembered; those that still run are not counted.
    """

    def __init__(self, keep: int = KEYS) -> None:
        self._keep = keep
        self._calls: dict[str, _Call] = {}
        self._running: set[asyncio.Task[Acknowledgement]] = set()
        self._forgotten = False

    async def once(
        self, key: str | None, what: str, run: Callable[[], Awaitable[Acknowledgement]]
    ) -> Acknowledgement:
        """Runs a call, or gives the answer of the one that had the same key.

        A call runs on when its caller is cancelled, so that its answer can be asked for again.

        Args:
            key: Names the call; None for one that is not remembered.
            what: What the same call has in common, and no other: its operation and arguments.
            run: Runs it.

        Raises:
            OperationRefusedError: The key was used for something else.
        """
        if key is not None and (known := self._calls.get(key)) is not None:
            if known.what != what:
                raise OperationRefusedError(
                    f"key {key!r} was used for another operation or other arguments; give each "
                    "call a key of its own"
                )
            answer = await asyncio.shield(known.task)
            return answer.model_copy(update={"repeated": True})
        task = asyncio.ensure_future(_awaited(run))
        self._running.add(task)
        task.add_done_callback(self._ended)
        if key is not None:
            self._calls[key] = _Call(what, task)
        return await asyncio.shield(task)

    def knows(self, key: str) -> bool:
        """Whether a call with this key is remembered."""
        return key in self._calls

    def became_of(self, key: str) -> Reconciliation:
        """What became of the call with this key.

        It happened; it did not: it was refused, or never arrived; or that is unknown: it still
        runs, it failed half-way, or calls have been forgotten.
        """
        known = self._calls.get(key)
        if known is None:
            return "unknown" if self._forgotten else "did_not_happen"
        if not known.task.done() or known.task.cancelled() or known.task.exception() is not None:
            return "unknown"
        return "happened" if known.task.result().accepted else "did_not_happen"

    async def close(self, seconds: float) -> None:
        """Waits for calls that run, so many seconds at most; then they are cancelled."""
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=seconds)
            for task in late:
                task.cancel()

    def _ended(self, task: asyncio.Task[Acknowledgement]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not report it: who called has it
        over = len(self._calls) - self._keep
        if over > 0:  # only calls that run can stand before those that have ended
            for key in list(islice(self._calls, over + len(self._running))):
                if over > 0 and self._calls[key].task.done():
                    del self._calls[key]
                    over -= 1
                    self._forgotten = True


async def _awaited(run: Callable[[], Awaitable[Acknowledgement]]) -> Acknowledgement:
    return await run()
