"""The world that a case is played in, here or elsewhere, and how a run is shown in it."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from case_study.local_world import ROBOT, LocalWorld
from case_study.robot import VacuumState
from coag._util.text import counted, ellipsis
from coag.agent import CoagAgent
from coag.context import CognitiveState, WorkingMemory
from coag.errors import ConfigurationError
from coag.schema import PHASES, Candidate, Evaluation, Phase, parsed_arguments
from vacuum_world.client import WorldClient, WorldControl
from vacuum_world.errors import WorldError
from vacuum_world.server import WorldServer
from vacuum_world.showing import Belief, Option, Report
from vacuum_world.world import WorldState

_TEXT, _NOTE, _ABOUT, _OPTIONS = 200, 200, 600, 12


def report_of(memory: WorkingMemory) -> Report | None:
    """What is reported of a vacuum robot's working memory; None before its first phase."""
    if memory.phase is None:
        return None
    mind, state = memory.cognitive_state, VacuumState.model_validate(memory.perceptual_state)
    candidates = mind.proposal.candidates if mind.proposal else ()
    evaluations = mind.evaluation.evaluations if mind.evaluation else ()
    judged = {one.candidate_id: one for one in evaluations}
    chosen = mind.selection.chosen if mind.selection else ()
    return Report(
        phase=memory.phase.value.capitalize(),
        phases=tuple(phase.value.capitalize() for phase in PHASES),
        about=ellipsis(_about(memory.phase, mind), _ABOUT),
        options=tuple(
            _option(one, judged.get(one.id), one.id in chosen) for one in candidates[:_OPTIONS]
        ),
        cycle=memory.cycle,
        belief=Belief(
            position=state.position,
            battery=None if state.position is None else state.battery,
            dirty=state.dirty,
            clean=tuple(cell for cell in state.clean if cell not in state.dirty),
            obstacles=state.obstacles,
        ),
    )


def _about(phase: Phase, mind: CognitiveState) -> str:
    """One phase in a sentence or two, of any length."""
    match phase:
        case Phase.RETRIEVAL if mind.retrieval:
            return f"{counted(len(mind.retrieval.records), 'record')} recalled"
        case Phase.REASONING if mind.reasoning:
            return mind.reasoning.situation
        case Phase.PROPOSAL if mind.proposal:
            return counted(len(mind.proposal.candidates), "candidate")
        case Phase.EVALUATION if mind.evaluation:
            judged = mind.evaluation.evaluations
            survivors = sum(each.survived for each in judged)
            return f"{survivors} of {counted(len(judged), 'candidate')} survive"
        case Phase.SELECTION if mind.selection:
            if mind.selection.impasse:
                return "An impasse: no candidate survived."
            return mind.selection.reason or f"Chosen by {mind.selection.decided_by}."
        case Phase.EXECUTION if mind.execution:
            ran = [f"{one.action}: {one.status}." for one in mind.execution.executed]
            first = mind.execution.result.strip().partition("\n")[0]
            return " ".join([*(ran or ["Nothing was run."]), first]).strip()
        case _:
            return ""


def _option(candidate: Candidate, judged: Evaluation | None, chosen: bool) -> Option:
    """A candidate as it is reported: its action with the values of the arguments, and why."""
    rejected_by = judged.rejected_by if judged else None
    state: Literal["open", "chosen", "rejected"] = "chosen" if chosen else "open"
    note = candidate.reason
    if rejected_by is not None:
        state = "rejected"
        note = ": ".join(part for part in (rejected_by.constraint, rejected_by.reason) if part)
    elif judged is not None:
        score = None if judged.score is None else f"{judged.score:.2f}"
        note = ", ".join(part for part in (score, judged.reason or candidate.reason) if part)
    arguments = candidate.arguments
    if arguments is None:
        arguments = parsed_arguments(candidate.raw_arguments)
    text = " ".join([candidate.action or "(no action)", *map(str, arguments.values())]).strip()
    return Option(text=ellipsis(text, _TEXT), state=state, note=ellipsis(note, _NOTE))


PATIENCE = 3600.0
"""Seconds that an action of a shown run may wait: a viewer may have paused the world."""
_LAST_WORD = 2.0
"""Seconds to send the latest report when a run ends."""

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

    Reports are sent beside the turn and never delay it. The first failure is logged, and the run
    continues. Of the reports that come while one is being sent, only the latest waits.
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
                    _log.warning("the world's page does not show what the agent thinks: %s", error)
                self._failed = True


CONTROL_TOKEN = "VACUUM_WORLD_CONTROL_TOKEN"
"""Environment variable with the experimenter's token of a world served elsewhere."""


class ServedWorld:
    """A world behind HTTP, and the experimenter's way to it; agents never get the token."""

    def __init__(
        self, url: str, control_token: str, guests: AsyncExitStack, showing: Showing | None
    ) -> None:
        self.url = url
        self.guests = guests
        """What was opened for playing in it; closed with it."""
        self.showing = showing
        """How it is shown to people; None where nobody looks."""
        self._token = control_token
        self._control = WorldControl(url, control_token)
        guests.push_async_callback(self._control.close)
        self._client: WorldClient | None = None

    async def join(self) -> WorldClient:
        """A client that drives the robot; the robot joins, or is taken over if it is there."""
        self._client = await WorldClient.join(self.url, ROBOT, control_token=self._token)
        self.guests.push_async_callback(self._client.close)
        return self._client

    def watch(self) -> Callable[[CoagAgent], Awaitable[None]] | None:
        """What is called to report what the robot's agent thinks, if the run is shown."""
        if self.showing is None or self._client is None:
            return None
        watcher = Watcher(self._client, self.showing)
        self.guests.push_async_callback(watcher.close)
        return watcher.saw

    async def state(self) -> WorldState:
        """The whole world, hidden things included."""
        return await self._control.world()

    async def restore(self, state: WorldState) -> None:
        """Puts the world into a state; the robot stays driven by its client."""
        await self._control.restore(state)


World = ServedWorld | LocalWorld
"""A world and the experimenter's way to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Where and how a world is opened."""

    local: bool = False
    """In this process, behind no server."""
    url: str | None = None
    """Where it is served already; None to serve it here."""
    kept: Path | None = None
    """The file in which a world served here is kept; None keeps it in RAM."""
    fresh: bool = True
    """Whether to start again; otherwise it is as it was left."""
    showing: Showing | None = None
    """How it is shown to people; None where nobody looks."""


@asynccontextmanager
async def open_world(start: WorldState, how: Opening) -> AsyncGenerator[World]:
    """A world to play in, which begins as `start`.

    Raises:
        ConfigurationError: It is served elsewhere, and there is no control token.
        WorldError: The world cannot be served or reached.
    """
    async with AsyncExitStack() as opened:
        if how.local:
            yield LocalWorld(start, opened)
        elif how.url is not None:
            token = os.environ.get(CONTROL_TOKEN)
            if not token:
                raise ConfigurationError(
                    "A world in its own process is set up with its control token: set "
                    f"{CONTROL_TOKEN}."
                )
            world = ServedWorld(how.url, token, opened, how.showing)
            if how.fresh:
                await world.restore(start)
            yield world
        else:
            if how.fresh and how.kept is not None:
                how.kept.unlink(missing_ok=True)
            shown = how.showing or Showing()
            server = await asyncio.to_thread(
                lambda: WorldServer(
                    start, state_file=how.kept, control_token=shown.control_token, port=shown.port
                ).start()
            )
            opened.push_async_callback(asyncio.to_thread, server.stop)
            yield ServedWorld(server.url, server.control_token, opened, how.showing)
