"""Sleep now and then, beside whatever else an event loop does."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Self

from coag.errors import CoagError
from coag.memory.long_term import LongTermMemory
from coag.models import StructuredModel

from .sleep import SleepReport, sleep

_LOG = logging.getLogger(__name__)


class SleepSchedule:
    """Lets a memory sleep at an interval, as an asynchronous context manager.

    A sleep that fails is logged, and the next one comes in its turn.

    Args:
        memory: With its dynamics.
        every: Seconds between the end of a sleep and the beginning of the next.
        most_seconds: How long one may take; the next goes on where it stopped. None for no bound.
        model: See `sleep`.

    Raises:
        ValueError: `every` is not above 0.
    """

    def __init__(
        self,
        memory: LongTermMemory,
        *,
        every: float = 86_400.0,
        most_seconds: float | None = 60.0,
        model: StructuredModel | None = None,
    ) -> None:
        if not every > 0:
            raise ValueError(f"every must be above 0 seconds, not {every!r}.")
        self.last: SleepReport | None = None
        """What the last sleep did."""
        self._memory = memory
        self._every = every
        self._most_seconds = most_seconds
        self._model = model
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Begins: the first sleep comes after the interval."""
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *error: object) -> None:
        """Ends, in the midst of a sleep, too: the next one goes on there."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            try:
                self.last = await sleep(
                    self._memory, model=self._model, most_seconds=self._most_seconds
                )
            except CoagError as error:
                _LOG.warning("A sleep failed; the next one comes in its turn. %s", error)
