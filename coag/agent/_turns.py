"""One turn at a time, its cancellation by AutoGen's token, and trying it again."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from autogen_agentchat.messages import BaseChatMessage
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
        self._unanswered: set[str] = set()

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

    async def forget(self) -> None:
        """Closes an abandoned turn, and forgets what was said in turns that broke off.

        Raises:
            TurnInProgressError: A turn still runs.
        """
        await self.end_abandoned()
        self._turn = None
        self._unanswered.clear()

    def unheard(self, messages: Sequence[BaseChatMessage]) -> list[BaseChatMessage]:
        """The messages without those that the agent has heard in turns that broke off.

        Whoever tries again after an error or a cancellation says the same once more; the agent
        has taken it in already.
        """
        said = [(_identity(message), message) for message in messages]
        new = [message for identity, message in said if identity not in self._unanswered]
        self._unanswered.update(identity for identity, _ in said)
        return new

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
            result = task.result()
            if isinstance(result, TurnResult):
                self._unanswered.clear()
            yield result
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


def _identity(message: BaseChatMessage) -> str:
    """The same for messages of the same kind, sender and content."""
    told = message.model_dump_json(exclude={"id", "created_at", "metadata", "models_usage"})
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()
