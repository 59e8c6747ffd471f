"""Playing a benchmark as an evaluation: its cases are the scenarios, the arms the contenders."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from case_study.bench.protocol import ARMS, Arm, Benchmark, Case
from coag.errors import UnknownNameError
from coag.evals import (
    Job,
    JobResult,
    ProgressListener,
    RunSettings,
    Trial,
    plan_of,
    run_evaluation,
)

_SETTINGS = RunSettings(keep="none", retries=0, time_limit=86_400.0, only_asked=True)
"""A case has no time limit of its own, since each turn of an agent has one."""


def chosen(cases: Sequence[Case], limit: int | None) -> list[Case]:
    """At most so many cases of each suite and kind, spread evenly; all without a limit."""
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.suite, case.kind), []).append(case)
    if limit is None:
        return list(cases)
    kept = {
        group[at * len(group) // min(limit, len(group))].id
        for group in groups.values()
        for at in range(min(limit, len(group)))
    }
    return [case for case in cases if case.id in kept]


@dataclass(frozen=True, slots=True)
class BenchmarkDomain:
    """A benchmark as `coag.evals` plays it."""

    benchmark: Benchmark
    policy: str
    cases: Mapping[str, Case]
    """By id."""
    contenders: Sequence[str] = ARMS

    @property
    def scenarios(self) -> Sequence[str]:
        """The ids of the cases."""
        return tuple(self.cases)

    def asks_model(self, contender: str) -> bool:
        """No: the policy is the same for all trials, and a condition of the plan."""
        return False

    async def play(self, job: Job, settings: RunSettings, folder: Path) -> JobResult:
        """Plays a case."""
        case, arm = self.cases[job.scenario], cast("Arm", job.contender)
        return await self.benchmark.run(case, arm, self.policy, job.seed)


def play(
    benchmark: Benchmark,
    arms: Sequence[Arm],
    policy: str,
    folder: Path,
    *,
    suites: Sequence[str] = (),
    limit: int | None = None,
    seeds: int = 1,
    progress: ProgressListener | None = None,
) -> list[Trial]:
    """Plays what the folder lacks, and gives the results that were asked for.

    Case by case, every arm plays before the next case, so that a run that was stopped has pairs.

    Args:
        benchmark: What is played.
        arms: Who plays.
        policy: A scripted policy of the benchmark, or the spec of a model.
        folder: Where results are kept; the same call continues a run that was stopped.
        suites: Which; all if none is named.
        limit: At most so many cases of each suite and kind.
        seeds: How often each case is played.
        progress: Follows how far it is.

    Raises:
        UnknownNameError: There is no such suite.
        AssessmentError: The folder holds results of other settings, or is damaged, or case after
            case broke.
    """
    for suite in suites:
        if suite not in benchmark.suites:
            raise UnknownNameError("suite", suite, benchmark.suites)
    cases = chosen(benchmark.cases(suites or benchmark.suites), limit)
    domain = BenchmarkDomain(benchmark, policy, {case.id: case for case in cases}, arms)
    plan = plan_of(
        domain,
        name=benchmark.name,
        seeds=seeds,
        conditions={"policy": policy, **benchmark.settings},
    )
    assessment = run_evaluation(
        domain, folder, plan=plan, extend=True, settings=_SETTINGS, progress=progress
    )
    shutil.rmtree(folder / "cases", ignore_errors=True)  # empty folders: no runs are kept
    asked = {job.key for job in plan.jobs()}
    return [trial for trial in assessment.trials if trial.job.key in asked]
