"""A run that people look at: what its agent thinks is told to its world's page, at their pace."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from coag.agent import CoagAgent
from vacuum_world.client import WorldClient
from vacuum_world.errors import WorldError
from vacuum_world.showing import Report

from ._mind_report import report_of

PATIENCE = 3600.0
"""Seconds that an action of a shown run may wait: whoever looks may have paused the world."""
_LAST_WORD = 2.0
"""Seconds that the latest report has for its way when a run ends."""

_log = logging.getLogger("case_study")


@dataclass(frozen=True, slots=True, kw_only=True)
class Showing:
    """How a run is shown."""

    pace: float = 0.0
    """Seconds that are left between two phases, for eyes to follow."""
    port: int = 0
    """Where its worlds are served one after the other; 0 takes a free port for each."""
    control_token: str | None = None
    """The experimenter's token of these worlds; None makes a fresh one for each."""


class Watcher:
    """Reports what an agent thinks to the world that it acts in.

    Reports go their own way: none delays a turn, and where one fails, the first failure is
    noted and the run goes on. If another report comes while one is under way, only the latest
    waits.

    Args:
        client: Drives the agent's robot.
        showing: At which pace.
    """

    def __init__(self, client: WorldClient, showing: Showing) -> None:
        self._client = client
        self._pace = showing.pace
        self._seen: Report | None = None
        self._next: Report | None = None
        self._sending: asyncio.Task[None] | None = None
        self._failed = False

    async def saw(self, agent: CoagAgent) -> None:
        """Something has happened in the agent; leaves time to look at it, where it is new."""
        report = report_of(agent.context.working_memory)
        if report is None or report == self._seen:
            return
        thought_on = self._seen is None or report.phase != self._seen.phase
        self._seen = self._next = report
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())
        if thought_on and self._pace:
            await asyncio.sleep(self._pace)

    async def close(self) -> None:
        """Waits for the latest report, but not for long."""
        if self._sending is not None:
            await asyncio.wait([self._sending], timeout=_LAST_WORD)
            self._sending.cancel()
            await asyncio.wait([self._sending])

    async def _send(self) -> None:
        while self._next is not None:
            report, self._next = self._next, None
            try:
                await self._client.report(report)
            except WorldError as error:
                if not self._failed:
                    _log.warning("the world's page is not told what the agent thinks: %s", error)
                self._failed = True
