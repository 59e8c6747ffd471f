"""An assessment as it lies in its folder, read in one go."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from ._kept import read_plan, read_trials
from ._trial import NO_MODEL, Job, Plan, Trial


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """A plan, and the trials that there are so far."""

    folder: Path
    """Where it lies; `Trial.case` is relative to it."""
    plan: Plan
    """What was asked for."""
    trials: tuple[Trial, ...]
    """What came of the jobs that were played, in the plan's order."""

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Reads an assessment, finished or not.

        Raises:
            AssessmentError: There is none, or one of its files is damaged or foreign.
        """
        plan = read_plan(folder)
        trials = read_trials(folder, plan)
        ordered = tuple(trials[job.key] for job in plan.jobs() if job.key in trials)
        return cls(folder=folder, plan=plan, trials=ordered)

    @property
    def trials_that_count(self) -> tuple[Trial, ...]:
        """Those that are evidence: all but the broken ones."""
        return tuple(trial for trial in self.trials if trial.counts)

    @cached_property
    def missing(self) -> tuple[Job, ...]:
        """Jobs that were not played yet, or broke each time."""
        counted = {trial.job.key for trial in self.trials_that_count}
        return tuple(job for job in self.plan.jobs() if job.key not in counted)

    @property
    def complete(self) -> bool:
        """Whether each job has a trial that counts."""
        return not self.missing

    def of_model(self, model: str) -> tuple[Trial, ...]:
        """The trials of a model, with those of contenders that ask none."""
        return tuple(trial for trial in self.trials if trial.job.model in (model, NO_MODEL))
