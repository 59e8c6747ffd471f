"""Showing a run while it happens: what an agent thinks and believes, reported to the world."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from case_study.robot import VacuumState
from coag.agent import CoagAgent
from coag.context import CognitiveState, WorkingMemory
from coag.schema import PHASES, Candidate, Evaluation, ExecutionOutcome, Phase
from vacuum_world.client import WorldClient
from vacuum_world.errors import WorldError
from vacuum_world.showing import Belief, Option, Report

_TEXT, _NOTE, _ABOUT, _OPTIONS = 200, 200, 600, 12
_ARGUMENTS: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
_ALL = tuple(phase.value.capitalize() for phase in PHASES)


def report_of(memory: WorkingMemory) -> Report | None:
    """What is reported of a vacuum robot's working memory; None before its first phase."""
    if memory.phase is None:
        return None
    return Report(
        phase=memory.phase.value.capitalize(),
        phases=_ALL,
        about=_cut(_about(memory.phase, memory.cognitive_state), _ABOUT),
        options=_options(memory.cognitive_state),
        cycle=memory.cycle,
        belief=_belief(VacuumState.model_validate(memory.perceptual_state)),
    )


def _belief(state: VacuumState) -> Belief:
    known = state.position is not None
    return Belief(
        position=state.position,
        battery=state.battery if known else None,
        dirty=state.dirty,
        clean=tuple(cell for cell in state.clean if cell not in state.dirty),
        obstacles=state.obstacles,
    )


def _about(phase: Phase, mind: CognitiveState) -> str:
    """One phase in a sentence or two, of any length."""
    match phase:
        case Phase.RETRIEVAL if mind.retrieval:
            return _counted(len(mind.retrieval.records), "record recalled", "records recalled")
        case Phase.REASONING if mind.reasoning:
            return mind.reasoning.situation
        case Phase.PROPOSAL if mind.proposal:
            return _counted(len(mind.proposal.candidates), "candidate", "candidates")
        case Phase.EVALUATION if mind.evaluation:
            judged = mind.evaluation.evaluations
            survivors = sum(each.survived for each in judged)
            return f"{survivors} of {_counted(len(judged), 'candidate', 'candidates')} survive"
        case Phase.SELECTION if mind.selection:
            if mind.selection.impasse:
                return "An impasse: no candidate survived."
            return mind.selection.reason or f"Chosen by {mind.selection.decided_by}."
        case Phase.EXECUTION if mind.execution:
            return _done(mind.execution)
        case _:
            return ""


def _done(execution: ExecutionOutcome) -> str:
    """What was run and how it ended; of a tool's answer the first line."""
    actions = [f"{one.action}: {one.status}." for one in execution.executed] or ["Nothing was run."]
    first = execution.result.strip().partition("\n")[0]
    return " ".join([*actions, first]).strip()


def _options(mind: CognitiveState) -> tuple[Option, ...]:
    candidates = mind.proposal.candidates if mind.proposal else ()
    judged = {each.candidate_id: each for each in _evaluations(mind)}
    chosen = mind.selection.chosen if mind.selection else ()
    return tuple(
        _option(each, judged.get(each.id), each.id in chosen) for each in candidates[:_OPTIONS]
    )


def _evaluations(mind: CognitiveState) -> Sequence[Evaluation]:
    return mind.evaluation.evaluations if mind.evaluation else ()


def _option(candidate: Candidate, judged: Evaluation | None, chosen: bool) -> Option:
    rejected_by = judged.rejected_by if judged else None
    state: Literal["open", "chosen", "rejected"] = "chosen" if chosen else "open"
    note = candidate.reason
    if rejected_by is not None:
        state = "rejected"
        note = ": ".join(part for part in (rejected_by.constraint, rejected_by.reason) if part)
    elif judged is not None:
        score = None if judged.score is None else f"{judged.score:.2f}"
        note = ", ".join(part for part in (score, judged.reason or candidate.reason) if part)
    return Option(text=_cut(_action_text(candidate), _TEXT), state=state, note=_cut(note, _NOTE))


def _action_text(candidate: Candidate) -> str:
    """An action and the values of its arguments."""
    raw = candidate.raw_arguments
    arguments = candidate.arguments
    if arguments is None:
        try:
            arguments = _ARGUMENTS.validate_json(raw)
        except ValidationError:
            return f"{candidate.action or '(no action)'} {raw}".strip()
    return " ".join([candidate.action or "(no action)", *map(str, arguments.values())])


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


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
                    _log.warning("the world's page does not show what the agent thinks: %s", error)
                self._failed = True
