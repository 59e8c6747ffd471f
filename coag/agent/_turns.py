"""One turn at a time, and its cancellation by AutoGen's token."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from autogen_core import CancellationToken

from coag.cycle import TurnResult
from coag.errors import TurnInProgressError
from coag.schema import Outcome


async def next_item(
    turn: AsyncGenerator[Outcome | TurnResult], token: CancellationToken
) -> Outcome | TurnResult:
    """The turn's next item, waited for in a way that the token can cancel.

    The turn closes its cycle before the cancellation is passed on.
    """

    async def step() -> Outcome | TurnResult:
        return await anext(turn)

    task = asyncio.create_task(step())
    token.link_future(task)
    try:
        return await task
    except asyncio.CancelledError:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
        raise


class Turns:
    """The one turn that an agent is in.

    Args:
        agent: The agent's name, for errors.
    """

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._turn: AsyncGenerator[Outcome | TurnResult] | None = None
        self._stepping = False

    async def end_abandoned(self) -> None:
        """Closes a turn whose stream was left before its end.

        Raises:
            TurnInProgressError: It still runs.
        """
        if self._turn is None:
            return
        if self._stepping:
            raise TurnInProgressError(self._agent)
        await self._turn.aclose()

    def begin(self, turn: AsyncGenerator[Outcome | TurnResult]) -> None:
        """Takes up a turn."""
        self._turn = turn

    async def step(self, token: CancellationToken) -> Outcome | TurnResult:
        """The next item of the turn that was begun."""
        if self._turn is None:
            raise AssertionError("No turn was begun.")
        self._stepping = True
        try:
            return await next_item(self._turn, token)
        finally:
            self._stepping = False
