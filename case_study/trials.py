"""The vacuum world as a domain of `coag.evals`: cases, sequences of episodes, and their report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from case_study.contenders import CONTENDERS, contender_named
from case_study.faults import VacuumDomain
from case_study.measures import (
    MEASURES,
    EpisodeRecord,
    Tally,
    measures_of,
    recollection_of,
    tally_of,
    vacuum_episode,
)
from case_study.runner import Between, CaseFolder, CaseRequest, Place, play_case, records_of
from case_study.temperaments import is_scripted
from coag import inspector
from coag.errors import ConfigurationError, ResumeError, UnknownNameError
from coag.evals import (
    Ablation,
    AssessmentError,
    BrokenTrialError,
    EvaluationDomain,
    Job,
    JobResult,
    ReportProfile,
    RunSettings,
    causes_of,
    decisions_of,
)
from coag.schema import from_import_name
from coag.tracing import RunFolder
from vacuum_world.errors import WorldError
from vacuum_world.scenarios import ADVERSARIAL, SCENARIOS, ScenarioSetup, build_scenario
from vacuum_world.world import Cell, WorldState

VACUUM, EPISODES = "vacuum", "episodes"
"""Names of the two domains: single cases, and sequences of episodes."""
USUAL_EPISODES = 5
"""Episodes of a sequence if not given."""
BETWEEN: tuple[Between, ...] = ("emptied", "kept")
"""The arms of a sequence: memory is emptied before each episode, or kept for the next."""
GROUPS: Mapping[str, Sequence[str]] = {
    "headline": (
        *("random", "rules", "oracle", "plain", "plain-iterations", "plain-memory"),
        *("plain-guarded", "coag-compact", "coag-auto", "coag-full"),
    ),
    "ablations": (
        "coag-full",
        *(name for name in CONTENDERS if name.startswith("coag-without-")),
    ),
}
"""Contenders that are asked for together."""

_OF_EPISODE = (
    *("success", "actions", "model_calls", "tokens", "bumps", "violations", "critical_cleans"),
    *("stranded", "left_dirty", "energy"),
)
_RECALLED = {
    "noted": "noted",
    "recalled": "cycles that recalled an earlier episode",
    "beside": "of them, beside a cell that it tells is blocked",
    "refused": "candidates rejected for it",
}


class VacuumTrials:
    """Plays cases of the vacuum world."""

    name = VACUUM

    @property
    def scenarios(self) -> Sequence[str]:
        """All scenarios of the world, the paper's four first."""
        return tuple(SCENARIOS)

    @property
    def contenders(self) -> Sequence[str]:
        """All contenders."""
        return tuple(CONTENDERS)

    def asks_model(self, contender: str) -> bool:
        """Whether a contender, or an arm of one, asks a model."""
        return contender_named(contender.partition(":")[0]).asks_model

    async def play(self, job: Job, settings: RunSettings, folder: Path) -> JobResult:
        """Plays a case, or the rest of one that was interrupted and can be continued.

        Raises:
            BrokenTrialError: The world failed.
            CoagError: The model, the records or the log failed.
        """
        public = self.request_of(job, settings)
        case = _begun(folder, public) or CaseFolder.create(folder, public)
        request = public.model_copy(update={"model": settings.spec(job)})
        try:
            result = await play_case(request, case)
        except WorldError as error:
            raise BrokenTrialError(str(error) or type(error).__name__) from error
        return _played(case, folder, result.success, case.episodes())

    def request_of(self, job: Job, settings: RunSettings) -> CaseRequest:
        """The case that a job asks for."""
        conditions = cast("dict[str, Any]", settings.conditions)
        return CaseRequest(
            scenario=job.scenario,
            agent=job.contender,
            model=job.model,
            seed=job.seed,
            place=cast("Place", conditions.get("place", "local")),
            token_budget=conditions.get("token_budget"),
            max_actions=conditions.get("max_actions"),
        )

    def measure_again(self, job: Job, folder: Path) -> JobResult:
        """Counts a case's traces again where its worlds were kept, and measures it."""
        cases = _cases(folder)
        if not cases:
            raise AssessmentError(
                f"There is no case in {folder}: its trial says so, but the folder is gone. Restore "
                "it, or leave --measure-again out."
            )
        case = cases[-1]
        request = case.request()
        records = [_counted_again(case, request, each) for each in case.episodes()]
        if len(records) < request.episode_count:
            return _unfinished(case, folder, records)
        success = all(record.succeeded(job.scenario) for record in records)
        return _played(case, folder, success, records)


class SequenceTrials(VacuumTrials):
    """Plays a contender several times in a row in the same instance of a scenario.

    A trial is one sequence, and a success if each of its episodes is. Its measures are those of a
    case over all episodes, and those of each episode, named `success.1` and so on. The two arms of
    a contender, `coag-full:kept` and `coag-full:emptied`, are a pair: the same instance and,
    episode by episode, the same chance. They differ in what the agent remembers when an episode
    begins.
    """

    name = EPISODES

    @property
    def contenders(self) -> Sequence[str]:
        """Both arms of each contender that has a long-term memory."""
        return tuple(arm for arms in ARMS.values() for arm in reversed(arms))

    def request_of(self, job: Job, settings: RunSettings) -> CaseRequest:
        """The case that a job asks for."""
        contender, between = arm_named(job.contender)
        episodes = settings.conditions.get("episodes", USUAL_EPISODES)
        update = {"agent": contender, "between": between, "episodes": episodes}
        return super().request_of(job, settings).model_copy(update=update)

    async def play(self, job: Job, settings: RunSettings, folder: Path) -> JobResult:
        """Plays a sequence, or the rest of one, from the episode at which it was interrupted."""
        return _by_episode(await super().play(job, settings, folder), folder)

    def measure_again(self, job: Job, folder: Path) -> JobResult:
        """Counts a sequence's traces again, and measures it."""
        return _by_episode(super().measure_again(job, folder), folder)


ARMS: Mapping[str, tuple[str, str]] = {
    contender.name: (f"{contender.name}:emptied", f"{contender.name}:kept")
    for contender in CONTENDERS.values()
    if contender.has_memory
}
"""By contender with a long-term memory: the arm whose memory is emptied, and the one that keeps."""


def arm_named(name: str) -> tuple[str, Between]:
    """The contender of an arm, and what becomes of its memory between episodes.

    Raises:
        UnknownNameError: There is no such arm; the message lists those that exist.
    """
    for contender, arms in ARMS.items():
        if name in arms:
            return contender, BETWEEN[arms.index(name)]
    raise UnknownNameError("arm", name, [arm for arms in ARMS.values() for arm in arms])


_DOMAINS: Mapping[str, VacuumTrials] = {VACUUM: VacuumTrials(), EPISODES: SequenceTrials()}


def domain_named(name: str) -> EvaluationDomain:
    """The domain of this name: `vacuum`, `episodes`, or `module:name` of another.

    Raises:
        ConfigurationError: There is none, or the object of this name is no domain.
    """
    if name in _DOMAINS:
        return _DOMAINS[name]
    if ":" not in name:
        raise ConfigurationError(
            f"There is no domain {name!r}: it is {VACUUM!r}, {EPISODES!r}, or the import name of "
            "another, such as 'package.module:DOMAIN'."
        )
    domain = from_import_name(name)
    if not isinstance(domain, EvaluationDomain):
        raise ConfigurationError(
            f"{name!r} is no domain: it lacks one of scenarios, contenders, asks_model and play."
        )
    return domain


# ---- The result of a case ----


def _cases(folder: Path) -> list[CaseFolder]:
    return [CaseFolder(path.parent) for path in sorted(folder.glob("*/case.json"))]


def _begun(folder: Path, request: CaseRequest) -> CaseFolder | None:
    """The case of this request that was begun here, if there is one."""
    same: list[CaseFolder] = []
    for case in _cases(folder):
        try:
            same += [case] if case.request() == request else []
        except ResumeError:  # killed while it was being made: nothing was played in it
            continue
    return same[-1] if same else None


def _played(
    case: CaseFolder, folder: Path, success: bool, episodes: Sequence[EpisodeRecord]
) -> JobResult:
    scenario = case.request().scenario
    failed = [each for each in episodes if not each.succeeded(scenario)]
    problem = "; ".join(str(each.found(scenario)["summary"]) for each in failed)
    measured = _measured(case, folder, [each.tally for each in episodes])
    return measured.model_copy(update={"success": success, "problem": problem})


def _unfinished(case: CaseFolder, folder: Path, over: Sequence[EpisodeRecord]) -> JobResult:
    """The result of a case that ended in the middle of an episode.

    Of that one its trace is counted; what became of its world is not known.
    """
    tallies, number, request = [each.tally for each in over], len(over) + 1, case.request()
    run = case.run_of(number)
    if run is not None:
        setup = _setup(request, number, over[0].truth.wall if over else None)
        records, bound = records_of(run), request.max_actions
        tallies.append(tally_of(vacuum_episode(records, setup, None, success=False, bound=bound)))
    return _measured(case, folder, tallies).model_copy(update={"finished": False})


def _measured(case: CaseFolder, folder: Path, tallies: Sequence[Tally | None]) -> JobResult:
    counted = [tally for tally in tallies if tally is not None]
    return JobResult(
        success=False,
        measures=measures_of(counted),
        causes=causes_of(counted),
        decided_by=decisions_of(counted),
        case=case.path.relative_to(folder).as_posix(),
    )


def _counted_again(case: CaseFolder, request: CaseRequest, record: EpisodeRecord) -> EpisodeRecord:
    """The record of an episode, counted from its trace again where its world was kept too."""
    path = case.world(record.episode)
    if not path.is_file():
        return record
    try:
        world = WorldState.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise AssessmentError(
            f"{path} is no state of a world: {error.error_count()} errors in it."
        ) from error
    episode = vacuum_episode(
        records_of(RunFolder(case.path / record.run)),
        _setup(request, record.episode, record.truth.wall),
        world,
        success=record.succeeded(request.scenario),
        bound=record.max_actions,
    )
    return record.model_copy(update={"tally": tally_of(episode)})


def _by_episode(result: JobResult, folder: Path) -> JobResult:
    case = CaseFolder(folder / result.case)
    request = case.request()
    measures = dict(result.measures)
    for record in case.episodes():
        found = {} if record.tally is None else measures_of([record.tally])
        own: dict[str, float | None] = {name: found.get(name) for name in _OF_EPISODE}
        own["success"] = float(record.succeeded(request.scenario))
        own |= dict.fromkeys(_RECALLED)  # a plain agent's trace does not say
        if request.contender.kind == "coag":
            start = _setup(request, record.episode, record.truth.wall).facts.start
            records = records_of(RunFolder(case.path / record.run))
            recalled = recollection_of(records, record.run, start).model_dump()
            own |= {name: float(recalled[name]) for name in _RECALLED}
        measures |= {f"{name}.{record.episode}": value for name, value in own.items()}
    return result.model_copy(update={"measures": measures})


def _setup(request: CaseRequest, episode: int, wall: Cell | None) -> ScenarioSetup:
    return build_scenario(request.scenario, request.seed, episode=episode, wall=wall)


# ---- what a report knows of the case study ----


def lettered(scenario: str) -> str:
    """A scenario with its letter, where it has one: A sudden-wall."""
    letters = dict(zip(ADVERSARIAL, "ABCDEFGHIJ", strict=True))
    return f"{letters[scenario]} {scenario}" if scenario in letters else scenario


def described(contender: str) -> str:
    """What a contender is, in a sentence."""
    name, _, between = contender.partition(":")
    summary = CONTENDERS[name].summary if name in CONTENDERS else ""
    if not summary or not between:
        return summary
    how = "its memory lasts" if between == "kept" else "its memory is emptied before each"
    return f"{summary}; episodes in a row, {how}"


_ABLATIONS = {
    "Retrieval": ("coag-full", "coag-without-retrieval"),
    "Reasoning": ("coag-full", "coag-without-reasoning"),
    "Evaluation by the model": ("coag-full", "coag-without-evaluation"),
    "Constraints": ("coag-full", "coag-without-constraints"),
    "Rewriting of procedures": ("coag-full", "coag-without-rewriting"),
    "Rules of good conduct": ("coag-full", "coag-without-conduct"),
    "Value of predicted states": ("coag-full", "coag-without-value"),
    "Offering only what is allowed": ("coag-full", "coag-without-masking"),
    "Enumerated calls": ("coag-full", "coag-without-enumeration"),
    "Six phases instead of one call": ("coag-full", "coag-compact"),
    "Depth as needed instead of one call": ("coag-auto", "coag-compact"),
    "Depth as needed instead of six phases": ("coag-auto", "coag-full"),
    "Grounded candidates (full)": ("coag-full-grounded", "coag-full"),
    "Grounded candidates (compact)": ("coag-compact-grounded", "coag-compact"),
    "Situational awareness (compact)": ("coag-compact-aware", "coag-compact"),
    "Situational awareness (full)": ("coag-full-aware", "coag-full"),
    "Constraints on a plain agent": ("plain-guarded", "plain"),
    "Deliberation beyond constraints (full)": ("coag-full", "plain-guarded"),
    "Deliberation beyond constraints (compact)": ("coag-compact", "plain-guarded"),
    "AutoGen's memory on a plain agent": ("plain-memory", "plain"),
    "Tool iterations on a plain agent": ("plain-iterations", "plain"),
}
"""What each pair of contenders, with and without, shows."""


def report_profile(domain: str) -> ReportProfile:
    """What a report knows of the case study's contenders, and of the vacuum world."""

    def write_page(runs: Any, page: Path) -> None:
        inspector.write_report(runs, page, domain=VacuumDomain() if domain == VACUUM else None)

    return ReportProfile(
        references=("plain", "coag-full", "coag-compact", "rules", "random"),
        claimed=("coag-auto", "coag-full", "coag-compact"),
        frontier=("plain", "coag-compact", "coag-full", "coag-auto"),
        bounds=("oracle",),
        ablations=tuple(Ablation(part, *pair) for part, pair in _ABLATIONS.items()),
        measures=MEASURES,
        behaviour=(
            *("persistence", "grounding", "repeated_contradiction", "false_affordances"),
            *("violations", "coverage", "energy", "learning"),
        ),
        arms=ARMS,
        learning_measures={
            "success": "success, points",
            "actions": "actions",
            "bumps": "blocked moves",
            "violations": "forbidden cleanings",
            "energy": "charge",
            "tokens": "tokens",
        },
        recall_measures=_RECALLED,
        label=lettered,
        describe=described,
        is_scripted=is_scripted,
        write_run_page=write_page,
    )
