"""The Dynamic Vacuum World as a domain of an assessment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import ValidationError

from case_study.assess import AssessmentError, How, Job, Played
from case_study.contenders import CONTENDERS, contender_named
from case_study.measures import (
    EpisodeRecord,
    Tally,
    causes_of,
    decisions_of,
    measures_of,
    tally_of,
    vacuum_episode,
)
from case_study.runner import CaseFolder, CaseRequest, play_case
from coag.errors import ResumeError
from coag.schema import TraceRecord
from coag.tracing import RunFolder, read_trace
from vacuum_world.scenarios import SCENARIOS, build_scenario
from vacuum_world.world import WorldState


class VacuumTrials:
    """Plays cases of the vacuum world."""

    @property
    def scenarios(self) -> Sequence[str]:
        """All scenarios of the world, the paper's four first."""
        return tuple(SCENARIOS)

    @property
    def contenders(self) -> Sequence[str]:
        """All contenders."""
        return tuple(CONTENDERS)

    def asks_model(self, contender: str) -> bool:
        """Whether a contender asks a model."""
        return contender_named(contender).asks_model

    async def play(self, job: Job, how: How, room: Path) -> Played:
        """Plays a case, or what is left of one that was broken off and can be gone on with."""
        public = self.request_of(job, how)
        folder = _begun(room, public) or CaseFolder.create(room, public)
        request = public.model_copy(update={"model": how.spec(job)})
        result = await play_case(request, folder)
        return _played(folder, room, result.success, folder.episodes())

    def request_of(self, job: Job, how: How) -> CaseRequest:
        """What a job asks a case for."""
        return CaseRequest(
            scenario=job.scenario,
            agent=job.contender,
            model=job.model,
            seed=job.seed,
            place=how.place,
            token_budget=how.token_budget,
            max_actions=how.max_actions,
        )

    def measure_again(self, job: Job, room: Path) -> Played:
        """Counts a case's traces again where its worlds were kept, and measures it."""
        folder = _only_case(room)
        request = folder.request()
        records = [_counted_again(folder, request, each) for each in folder.episodes()]
        if len(records) < request.episode_count:
            return _unfinished(folder, room, records)
        success = all(record.succeeded(job.scenario) for record in records)
        return _played(folder, room, success, records)


DOMAIN = VacuumTrials()
"""The one of it."""


def _cases(room: Path) -> list[CaseFolder]:
    return [CaseFolder(path.parent) for path in sorted(room.glob("*/case.json"))]


def _begun(room: Path, request: CaseRequest) -> CaseFolder | None:
    """The case of this request that was begun here, if there is one."""
    same = [case for case in _cases(room) if _request_of(case) == request]
    return same[-1] if same else None


def _request_of(case: CaseFolder) -> CaseRequest | None:
    try:
        return case.request()
    except ResumeError:  # killed while it was being made: nothing was played in it
        return None


def _only_case(room: Path) -> CaseFolder:
    cases = _cases(room)
    if not cases:
        raise AssessmentError(
            f"There is no case in {room}: its trial says so, but the folder is gone. Put it back, "
            "or leave --measure-again out."
        )
    return cases[-1]


def _played(
    folder: CaseFolder, room: Path, success: bool, episodes: Sequence[EpisodeRecord]
) -> Played:
    scenario = folder.request().scenario
    failed = [each for each in episodes if not each.succeeded(scenario)]
    told = "; ".join(str(each.found(scenario)["summary"]) for each in failed)
    played = _measured(folder, room, _tallies(episodes))
    return played.model_copy(update={"success": success, "problem": told})


def _unfinished(folder: CaseFolder, room: Path, over: Sequence[EpisodeRecord]) -> Played:
    """What a case came to that ended in the middle of an episode.

    Of that one its trace is counted; what became of its world is not known.
    """
    tallies = _tallies(over)
    number = len(over) + 1
    run = folder.run_of(number)
    if run is not None:
        request = folder.request()
        wall = over[0].truth.wall if over else None
        setup = build_scenario(request.scenario, request.seed, episode=number, wall=wall)
        bound = request.max_actions
        tallies.append(
            tally_of(vacuum_episode(_records(run), setup, None, success=False, bound=bound))
        )
    return _measured(folder, room, tallies).model_copy(update={"finished": False})


def _measured(folder: CaseFolder, room: Path, tallies: Sequence[Tally]) -> Played:
    return Played(
        success=False,
        measures=measures_of(tallies),
        causes=causes_of(tallies),
        decided_by=decisions_of(tallies),
        case=folder.path.relative_to(room).as_posix(),
    )


def _tallies(episodes: Iterable[EpisodeRecord]) -> list[Tally]:
    return [each.tally for each in episodes if each.tally is not None]


def _counted_again(
    folder: CaseFolder, request: CaseRequest, record: EpisodeRecord
) -> EpisodeRecord:
    """The record of an episode, counted from its trace again where its world was kept too."""
    kept = folder.world(record.episode)
    if not kept.is_file():
        return record
    try:
        world = WorldState.model_validate_json(kept.read_bytes())
    except ValidationError as error:
        raise AssessmentError(
            f"{kept} is no state of a world: {error.error_count()} errors in it."
        ) from error
    setup = build_scenario(
        request.scenario, request.seed, episode=record.episode, wall=record.truth.wall
    )
    episode = vacuum_episode(
        _records(RunFolder(folder.path / record.run)),
        setup,
        world,
        success=record.succeeded(request.scenario),
        bound=record.max_actions,
    )
    return record.model_copy(update={"tally": tally_of(episode)})


def _records(run: RunFolder) -> list[TraceRecord]:
    return [entry.body for entry in read_trace(run.trace_path, lambda problem: None)]
