"""Sequences of episodes as a domain of an assessment: the same place, met again and again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from case_study.assess import How, Job, Played
from case_study.assess.vacuum import VacuumTrials
from case_study.contenders import CONTENDERS
from case_study.measures import EpisodeRecord, Recollection, recollection_of
from case_study.runner import CaseFolder, CaseRequest
from coag.tracing import RunFolder, read_trace
from vacuum_world.scenarios import build_scenario

from ._arms import ARMS, arm_named
from ._measures import of_episode

EPISODES_USUAL = 5
"""Episodes of a sequence where nothing else is asked for."""


class SequenceTrials(VacuumTrials):
    """Plays a contender several times in a row in the same instance of a scenario.

    A trial is one sequence, and a success if each of its episodes is. Its measures are those of a
    case over all episodes, and those of each episode, named `success.1` and so on. The two arms of
    a contender are a pair: the same instance and, episode by episode, the same chance. They differ
    in what the agent remembers when an episode begins.
    """

    @property
    def contenders(self) -> Sequence[str]:
        """Both arms of each contender that has a long-term memory."""
        return tuple(ARMS)

    def asks_model(self, contender: str) -> bool:
        """Whether a contender asks a model."""
        return CONTENDERS[arm_named(contender).contender].asks_model

    def request_of(self, job: Job, how: How) -> CaseRequest:
        """What a job asks a case for."""
        arm = arm_named(job.contender)
        plain = super().request_of(job, how)
        return plain.model_copy(
            update={
                "agent": arm.contender,
                "between": arm.between,
                "episodes": how.episodes or EPISODES_USUAL,
            }
        )

    async def play(self, job: Job, how: How, room: Path) -> Played:
        """Plays a sequence, or what is left of it, from the episode at which it was broken off."""
        return _by_episode(await super().play(job, how, room), room)

    def measure_again(self, job: Job, room: Path) -> Played:
        """Counts a sequence's traces again, and measures it."""
        return _by_episode(super().measure_again(job, room), room)


DOMAIN = SequenceTrials()
"""The one of it."""


def _by_episode(played: Played, room: Path) -> Played:
    """With the measures of each episode that is over."""
    folder = CaseFolder(room / played.case)
    request = folder.request()
    measures = dict(played.measures)
    for record in folder.episodes():
        told = _recollection(folder, request, record)
        measures |= of_episode(record, request.scenario, told)
    return played.model_copy(update={"measures": measures})


def _recollection(
    folder: CaseFolder, request: CaseRequest, record: EpisodeRecord
) -> Recollection | None:
    """What an episode recalled; None of a plain agent, whose trace does not tell."""
    if request.contender.kind != "coag":
        return None
    setup = build_scenario(
        request.scenario, request.seed, episode=record.episode, wall=record.truth.wall
    )
    trace = RunFolder(folder.path / record.run).trace_path
    records = [entry.body for entry in read_trace(trace, lambda problem: None)]
    return recollection_of(records, record.run, setup.facts.start)
