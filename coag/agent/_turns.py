"""One turn at a time, and its cancellation by AutoGen's token."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from autogen_core import CancellationToken

from coag.cycle import TurnResult
from coag.errors import TurnInProgressError
from coag.schema import Outcome

from ._live import Live, Shown


class Turns:
    """The one turn that an agent is in.

    Args:
        agent: The agent's name, for errors.
        live: What is to be shown while the turn goes on.
    """

    def __init__(self, agent: str, live: Live) -> None:
        self._agent = agent
        self._live = live
        self._turn: AsyncGenerator[Outcome | TurnResult] | None = None
        self._waiting = False
        self._task: asyncio.Task[Any] | None = None

    async def end_abandoned(self) -> None:
        """Closes a turn whose stream was left before its end.

        Raises:
            TurnInProgressError: It still runs.
        """
        if self._turn is None:
            return
        if self._waiting:
            raise TurnInProgressError(self._agent)
        await self._end_step()
        await self._turn.aclose()

    def begin(self, turn: AsyncGenerator[Outcome | TurnResult]) -> None:
        """Takes up a turn."""
        self._turn = turn
        self._live.begin()

    async def step(self, token: CancellationToken) -> AsyncGenerator[Shown | Outcome | TurnResult]:
        """The turn's next outcome or its result, last; before it what is shown meanwhile.

        Waited for in a way that the token can cancel: the turn closes its cycle before the
        cancellation is passed on. A step that is left is cancelled too.
        """
        if self._turn is None:
            raise AssertionError("No turn was begun.")
        self._task = task = asyncio.create_task(self._next(self._turn))
        token.link_future(task)
        try:
            while not task.done():
                await self._wait(task)
                for event in self._live.take():
                    yield event
            yield task.result()
        finally:
            await self._end_step()

    async def _wait(self, task: asyncio.Task[Any]) -> None:
        self._waiting = True
        try:
            await self._live.until(task)
        finally:
            self._waiting = False

    async def _end_step(self) -> None:
        """Cancels a step that nobody waits for any more."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _next(self, turn: AsyncGenerator[Outcome | TurnResult]) -> Outcome | TurnResult:
        """Wakes whoever waits at once: the task's own callback would come a loop later."""
        try:
            return await anext(turn)
        finally:
            self._live.wake()
