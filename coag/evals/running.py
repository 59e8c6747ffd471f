"""Running an evaluation: plays what an assessment lacks, and stores each trial when it is over."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import shutil
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from multiprocessing import connection, parent_process
from pathlib import Path
from statistics import median
from typing import Literal, Protocol, runtime_checkable

from pydantic import Field

from coag._util.text import one_line, well_formed
from coag.errors import CoagError, ConfigurationError, ModelAnswerError, ModelCallError
from coag.schema import SystemClock, Value

from .planning import begin, machine_class, versions
from .trials import (
    NO_MODEL,
    Assessment,
    AssessmentError,
    Condition,
    Job,
    Number,
    Plan,
    Trial,
    TrialLog,
)

Keep = Literal["all", "failures", "none"]
BROKEN_IN_A_ROW = 8
"""Broken trials in a row after which an evaluation stops: the fault is then not in the jobs."""
JOBS_A_WORKER = 400
"""Jobs after which a worker process is replaced, so that memory stays flat whatever leaks."""
_REFUSED_REQUESTS = frozenset({400, 413, 422})
"""HTTP statuses by which a server refuses a request itself, e.g. because it is too long."""
_PROBLEM_LENGTH = 500
_PARENT_ENDED = 3
"""Exit code of a worker whose parent was killed."""
_RECENT = 50
"""Trials of a kind whose durations count for an estimate."""


class RunSettings(Value):
    """How the jobs of an evaluation are played."""

    conditions: dict[str, Condition] = Field(default_factory=dict[str, Condition])
    """Settings of the domain; the plan's."""
    keep: Keep = "failures"
    """Of which trials the runs are kept; runs of broken trials are kept unless it is `none`."""
    retries: int = Field(default=2, ge=0)
    """Further attempts of a job after the model or the environment failed."""
    pause: float = Field(default=2.0, ge=0)
    """Seconds before the first of these; each further one waits twice as long."""
    time_limit: float = Field(default=3_600.0, gt=0)
    """Seconds for an attempt; one that takes longer is the contender's failure."""
    continues: bool = False
    """Whether the domain continues an interrupted job; else it starts in an empty folder."""
    processes: int = Field(default=1, ge=1)
    """How many jobs are played at the same time; 1 plays them in the calling process."""
    jobs_a_worker: int = Field(default=JOBS_A_WORKER, ge=1)
    """Jobs after which a worker process is replaced."""
    only_asked: bool = False
    """Whether no more is played than is asked for now, where the folder's plan asks for more."""
    specs: dict[str, str] = Field(default_factory=dict[str, str], repr=False)
    """The spec that opens each model, by its public name; it may hold secrets."""

    def spec(self, job: Job) -> str:
        """What opens the model of a job."""
        return self.specs.get(job.model, job.model)


class JobResult(Value):
    """What a domain reports of a job that was played."""

    success: bool
    problem: str = ""
    """How the contender failed; empty for a success."""
    measures: dict[str, Number | None] = Field(default_factory=dict[str, Number | None])
    causes: dict[str, int] = Field(default_factory=dict[str, int])
    decided_by: dict[str, int] = Field(default_factory=dict[str, int])
    finished: bool = True
    """Whether it was played to its end; else it is measured as far as it was played."""
    case: str = "."
    """Folder of the runs, relative to the job's folder."""


@runtime_checkable
class EvaluationDomain(Protocol):
    """Where contenders are evaluated: names, and a way to play one job."""

    @property
    def scenarios(self) -> Sequence[str]:
        """All scenarios."""
        ...

    @property
    def contenders(self) -> Sequence[str]:
        """All contenders."""
        ...

    def asks_model(self, contender: str) -> bool:
        """Whether a contender asks one of the plan's models."""
        ...

    async def play(self, job: Job, settings: RunSettings, folder: Path) -> JobResult:
        """Plays a job.

        Args:
            job: What to play.
            settings: How.
            folder: The job's own folder: new and empty, or, where `settings.continues`, with what
                an interrupted attempt left.

        Raises:
            ModelAnswerError: The model's answer stayed unusable; counts as the contender's failure.
            CoagError: The model, the environment or the log failed; the trial is no evidence.
        """
        ...


@runtime_checkable
class MeasuresAgain(Protocol):
    """A domain that can measure a job again from the runs that were kept."""

    def measure_again(self, job: Job, folder: Path) -> JobResult:
        """The result of a job from its kept runs alone, also of one that was not finished.

        Raises:
            CoagError: A run cannot be read.
        """
        ...


class ProgressListener:
    """Follows how far an evaluation is; shows nothing by itself."""

    def begin(self, total: int, done: int) -> None:
        """It begins: `done` of `total` jobs are done already."""

    def played(self, trial: Trial, seconds_left: float | None) -> None:
        """A job is over."""

    def stopping(self) -> None:
        """It was interrupted: running jobs are played to their end."""


def run_evaluation(
    domain: EvaluationDomain,
    folder: Path | str,
    *,
    seeds: int | Sequence[int] = 10,
    models: Sequence[str] = (),
    plan: Plan | None = None,
    extend: bool = False,
    settings: RunSettings | None = None,
    progress: ProgressListener | None = None,
) -> Assessment:
    """Plays contenders over scenarios and seeds; called again, it plays what is missing.

    Each trial is stored when it is over. A first interrupt (Ctrl-C) lets running jobs finish; a
    second one ends them at once. After both, or a kill, call it again to continue.

    Args:
        domain: Who plays what; with several processes it is pickled.
        folder: The assessment's folder, which need not exist.
        seeds: The first so many seeds from 0 on, or which.
        models: Public names of models, for contenders that ask one.
        plan: What to play, in place of all contenders and scenarios of the domain.
        extend: Whether the plan is added to an assessment that is there.
        settings: How, e.g. in how many processes; `conditions` are the plan's.
        progress: Follows how far it is.

    Returns:
        The assessment, with all trials so far.

    Raises:
        AssessmentError: The folder holds something else, it is damaged, another process is
            writing to it, or trial after trial broke.
        KeyboardInterrupt: After a second interrupt.
    """
    folder = Path(folder)
    wanted = plan or plan_of(domain, seeds=seeds, models=models)
    plan = begin(folder, wanted, extend=extend)
    settings = (settings or RunSettings()).model_copy(update={"conditions": plan.conditions})
    progress = progress or ProgressListener()
    with TrialLog(folder) as log:
        before = Assessment.read(folder)
        asked = {job.key for job in (wanted if settings.only_asked else plan).jobs()}
        jobs = [job for job in before.missing if job.key in asked]
        progress.begin(len(asked), len(asked) - len(jobs))
        estimate = _Estimate(before.trials, jobs, settings.processes)
        broken: list[Trial] = []
        with (
            _interruptible(progress) as stop,
            closing(_play_all(_until(stop, jobs), domain, settings, folder)) as trials,
        ):
            for trial in trials:
                log.append(trial)
                progress.played(trial, estimate.after(trial))
                broken = [] if trial.counts else [*broken, trial]
                if len(broken) >= BROKEN_IN_A_ROW:
                    raise AssessmentError(
                        f"The last {len(broken)} trials broke; the last one, {trial.job.key}: "
                        f"{trial.problem.rstrip('.')}. Repair it and run the same command again."
                    )
    return Assessment.read(folder)


def plan_of(
    domain: EvaluationDomain,
    *,
    seeds: int | Sequence[int] = 10,
    models: Sequence[str] = (),
    name: str = "",
    contenders: Sequence[str] = (),
    scenarios: Sequence[str] = (),
    conditions: dict[str, Condition] | None = None,
) -> Plan:
    """A plan over a domain; contenders and scenarios are all of it if not given."""
    names = tuple(contenders or domain.contenders)
    return Plan(
        domain=name or getattr(domain, "name", "") or type(domain).__name__,
        contenders=names,
        scenarios=tuple(scenarios or domain.scenarios),
        models=tuple(models) or (NO_MODEL,),
        seeds=tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds),
        without_model=tuple(one for one in names if not domain.asks_model(one)),
        conditions=conditions or {},
        versions=versions(),
        machine=machine_class(),
        started_at=SystemClock().now(),
    )


# ---- one job ----


async def play_job(
    job: Job, domain: EvaluationDomain, settings: RunSettings, folder: Path
) -> Trial:
    """Plays a job until it is over, or has failed too often."""
    own = folder / job.folder
    for attempt in range(1, settings.retries + 2):
        began = time.monotonic()
        try:
            result = await _attempt(job, domain, settings, own)
            took = round(time.monotonic() - began, 3)
            trial = trial_of(job, result, attempts=attempt, took=took)
        except (CoagError, OSError) as error:
            if attempt <= settings.retries and not isinstance(error, ConfigurationError):
                await asyncio.sleep(settings.pause * 2 ** (attempt - 1))
                continue
            trial = broken_trial(job, _problem(error), attempt, job.folder)
        except (Exception, asyncio.CancelledError, SystemExit) as error:
            # The outermost guard: one bad job must not end an evaluation; who cancels it may.
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            trial = broken_trial(job, _problem(error), attempt, job.folder)
        break
    else:
        raise AssertionError("unreachable")
    if settings.keep == "all" or (settings.keep == "failures" and not trial.success):
        return trial
    shutil.rmtree(own, ignore_errors=True)
    return trial.model_copy(update={"case": None})


async def _attempt(
    job: Job, domain: EvaluationDomain, settings: RunSettings, folder: Path
) -> JobResult:
    if not settings.continues:
        shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder, exist_ok=True)
    limit = asyncio.timeout(settings.time_limit)
    try:
        async with limit:
            return await domain.play(job, settings, folder)
    except TimeoutError:
        if not limit.expired():
            raise
        problem = f"It took longer than {settings.time_limit:g} s, the time limit of an attempt."
    except CoagError as error:
        if not _is_contenders_fault(error):
            raise
        problem = _problem(error)
    if isinstance(domain, MeasuresAgain):
        try:
            result = domain.measure_again(job, folder)
        except (CoagError, OSError):  # the domain cannot measure an unfinished job
            result = JobResult(success=False)
        return result.model_copy(update={"success": False, "problem": problem})
    return JobResult(success=False, problem=problem)


def trial_of(job: Job, result: JobResult, *, attempts: int, took: float) -> Trial:
    """The trial of a job that was played."""
    return Trial(
        job=job,
        outcome="success" if result.success else "failure",
        problem=well_formed(result.problem),
        attempts=attempts,
        took=took,
        measures=result.measures,
        causes=result.causes,
        decided_by=result.decided_by,
        case=f"{job.folder}/{result.case}".removesuffix("/."),
    )


def broken_trial(job: Job, problem: str, attempts: int, case: str | None = None) -> Trial:
    """The trial of a job that is no evidence."""
    text = one_line(problem)[:_PROBLEM_LENGTH]
    return Trial(job=job, outcome="broken", problem=text, attempts=attempts, case=case)


def _is_contenders_fault(error: CoagError) -> bool:
    """Whether the contender caused it: by an unusable answer, or by a request that is refused."""
    if isinstance(error, ModelAnswerError):
        return True
    status = getattr(error.__cause__, "status_code", None)
    return isinstance(error, ModelCallError) and status in _REFUSED_REQUESTS


def _problem(error: BaseException) -> str:
    text = one_line(str(error))[:_PROBLEM_LENGTH]
    if isinstance(error, CoagError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


# ---- many jobs ----


def _play_all(
    jobs: Iterator[Job],
    domain: EvaluationDomain,
    settings: RunSettings,
    folder: Path,
) -> Generator[Trial]:
    """The trials of jobs, each when it is over. A job is taken when somebody is free to play it."""
    if settings.processes == 1:
        for job in jobs:
            yield asyncio.run(play_job(job, domain, settings, folder))
        return
    pool = _Pool(domain, settings, folder)
    while (first := next(jobs, None)) is not None:
        further = settings.jobs_a_worker * settings.processes - 1
        yield from pool.trials(chain([first], islice(jobs, further)))


@dataclass(frozen=True, slots=True)
class _Pool:
    """Worker processes that play jobs at the same time.

    Where a worker is lost, e.g. for want of memory, the standard pool is lost and does not say in
    which job. So the jobs that were running are played again one at a time: a job that ends its
    process then is tried again within the bound of `settings.retries`.
    """

    domain: EvaluationDomain
    settings: RunSettings
    folder: Path

    def trials(self, jobs: Iterator[Job]) -> Generator[Trial]:
        """The trials of these jobs, by processes that live as long as that."""
        suspects: deque[Job] = deque()
        while (first := next(jobs, None)) is not None:
            yield from self._together(chain([first], jobs), suspects)
            while suspects:
                yield self._alone(suspects.popleft())

    def _together(self, jobs: Iterator[Job], suspects: deque[Job]) -> Generator[Trial]:
        """Trials until there are no more jobs, or a worker ends: then `suspects` were running."""
        running: dict[Future[Trial], Job] = {}
        size = self.settings.processes
        try:
            with self._open(size) as executor:
                while True:
                    for job in islice(jobs, size - len(running)):
                        try:
                            running[executor.submit(_play_in_worker, job)] = job
                        except BrokenProcessPool:  # it was taken from `jobs` already
                            suspects.append(job)
                            raise
                    if not running:
                        return
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        trial = future.result()
                        del running[future]
                        yield trial
        except BrokenProcessPool:
            suspects.extend(running.values())

    def _alone(self, job: Job) -> Trial:
        """Plays a job that was running when a worker was lost, with no other beside it."""
        for attempt in range(2, max(3, self.settings.retries + 2)):
            try:
                with self._open(1) as executor:
                    trial = executor.submit(_play_in_worker, job).result()
            except BrokenProcessPool:
                continue
            return trial.model_copy(update={"attempts": trial.attempts + attempt - 1})
        return broken_trial(
            job, "The process that played it ended early.", self.settings.retries + 1
        )

    @contextmanager
    def _open(self, processes: int) -> Generator[ProcessPoolExecutor]:
        """A pool whose processes end with the block; at once if it is left by an exception."""
        before = set(multiprocessing.active_children())
        executor = ProcessPoolExecutor(
            processes,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start_worker,
            initargs=(self.domain, self.settings, self.folder),
        )
        try:
            yield executor
        except BaseException:
            for process in set(multiprocessing.active_children()) - before:
                process.kill()
            raise
        finally:
            executor.shutdown(cancel_futures=True)


_worker: tuple[EvaluationDomain, RunSettings, Path] | None = None
"""What a worker process plays with."""


def _start_worker(domain: EvaluationDomain, settings: RunSettings, folder: Path) -> None:
    """Prepares a worker: an interrupt is its parent's business, and it ends with its parent."""
    global _worker  # noqa: PLW0603 - a process of a pool has no other place for its state
    _worker = (domain, settings, folder)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(_PARENT_ENDED)


def _play_in_worker(job: Job) -> Trial:
    assert _worker is not None
    domain, settings, folder = _worker
    return asyncio.run(play_job(job, domain, settings, folder))


def _until(stop: threading.Event, jobs: Sequence[Job]) -> Iterator[Job]:
    for job in jobs:
        if stop.is_set():
            return
        yield job


@contextmanager
def _interruptible(progress: ProgressListener) -> Generator[threading.Event]:
    """An event that the first interrupt sets; the second one is raised."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def interrupted(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        progress.stopping()

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


class _Estimate:
    """How long the rest takes: by the median of what such jobs took so far."""

    def __init__(self, before: Sequence[Trial], jobs: Sequence[Job], processes: int) -> None:
        self._left = Counter(_kind(job) for job in jobs)
        self._processes = max(1, processes)
        self._took: dict[tuple[str, str, str], deque[float]] = {}
        for trial in before:
            self._note(trial)

    def after(self, trial: Trial) -> float | None:
        """Seconds left after a trial; None as long as nothing is known."""
        self._left[_kind(trial.job)] -= 1
        self._note(trial)
        known = {kind: median(took) for kind, took in self._took.items()}
        if not known:
            return None
        usual = median(known.values())
        by_contender = {kind[:2]: took for kind, took in known.items()}
        left = sum(
            count * known.get(kind, by_contender.get(kind[:2], usual))
            for kind, count in self._left.items()
        )
        return left / self._processes

    def _note(self, trial: Trial) -> None:
        if trial.counts:
            took = self._took.setdefault(_kind(trial.job), deque(maxlen=_RECENT))
            took.append(trial.took)


def _kind(job: Job) -> tuple[str, str, str]:
    return job.contender, job.model, job.scenario


# ---- what is done with a finished assessment ----


class Remeasured(Value):
    """The result of measuring an assessment again."""

    measured: int
    """Trials whose runs were there."""
    unchanged: int
    """Those of them whose measures came out as they were."""
    without_runs: int
    """Trials whose runs were not kept; they stay as they were measured."""


def measure_again(
    folder: Path | str,
    domain: MeasuresAgain,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Remeasured:
    """Measures each trial again whose runs were kept, with no model, and stores the results.

    Raises:
        AssessmentError: There is no assessment, none of its runs was kept, or another process is
            writing to it.
        CoagError: A run cannot be read.
    """
    folder = Path(folder)
    before = Assessment.read(folder)
    with TrialLog(folder) as log:
        trials = [trial for trial in before.evidence if trial.case is not None]
        if not trials:
            raise AssessmentError(
                f"No runs were kept in {str(folder)!r}, so that nothing can be measured again. "
                'Run it with --keep all (`keep="all"`).'
            )
        unchanged = 0
        for number, trial in enumerate(trials, start=1):
            result = domain.measure_again(trial.job, folder / trial.job.folder)
            if trial.success and not result.finished:
                raise AssessmentError(
                    f"The trial of {trial.job.key} succeeded, but what lies in {trial.job.folder} "
                    "was not played to its end. Restore it, or remove the line from the trials."
                )
            if trial.problem and not result.problem:
                result = result.model_copy(update={"problem": trial.problem, "success": False})
            again = trial_of(trial.job, result, attempts=trial.attempts, took=trial.took)
            if again == trial:
                unchanged += 1
            else:
                log.append(again)
            on_progress(number, len(trials))
    return Remeasured(
        measured=len(trials),
        unchanged=unchanged,
        without_runs=len(before.evidence) - len(trials),
    )


class Agreement(Value):
    """The result of comparing two assessments of the same jobs."""

    same: int
    """Jobs with the same outcome and the same compared measures."""
    differing: tuple[str, ...]
    """Jobs that differ, each as a sentence."""
    broken: int
    """Jobs of which one or both trials are no evidence."""
    only_one: int
    """Jobs that only one of them has played."""

    @property
    def holds(self) -> bool:
        """Whether they agree wherever both have evidence, and both have some."""
        return self.same > 0 and not self.differing


def agreement(
    one: Assessment, other: Assessment, measures: Sequence[str] = ("actions", "model_calls")
) -> Agreement:
    """Compares two assessments job by job: the outcome, and some measures.

    Raises:
        AssessmentError: They have no job in common.
    """
    others = {trial.job.key: trial for trial in other.trials}
    pairs = [(trial, others[trial.job.key]) for trial in one.trials if trial.job.key in others]
    if not pairs:
        raise AssessmentError(
            f"{str(one.folder)!r} and {str(other.folder)!r} have no job in common: give the same "
            "--agents, --scenarios, --model and --seeds for both."
        )

    def essence(trial: Trial) -> str:
        values = [(name.replace("_", " "), trial.measures.get(name)) for name in measures]
        parts = [f"{value:g} {name}" for name, value in values if value is not None]
        return ", ".join([trial.outcome, *parts])

    evidence = [(a, b) for a, b in pairs if a.counts and b.counts]
    differing = tuple(
        f"{a.job.key}: {essence(a)} in the one, {essence(b)} in the other"
        for a, b in evidence
        if essence(a) != essence(b)
    )
    return Agreement(
        same=len(evidence) - len(differing),
        differing=differing,
        broken=len(pairs) - len(evidence),
        only_one=len(one.trials) + len(other.trials) - 2 * len(pairs),
    )
