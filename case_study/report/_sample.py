"""The trials that are compared like with like: one domain and one model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from case_study.assess import NO_MODEL, Assessment, Trial

from ._values import DecidedBy

Pair = tuple[str, int]
"""A scenario and a seed: the instance that several contenders met."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Trials of one domain and model, with those of contenders that ask no model."""

    domain: str
    model: str
    scenarios: tuple[str, ...]
    """Those with a trial, in the plan's order."""
    contenders: tuple[str, ...]
    """Those with a trial, in the plan's order."""
    by_contender: dict[str, dict[Pair, Trial]]
    """Trials that are evidence, by the instance."""
    broken: Counter[str]
    """Trials that are no evidence, by contender."""

    def of(self, contender: str) -> list[Trial]:
        """The trials of a contender that are evidence."""
        return list(self.by_contender.get(contender, {}).values())

    def successes(self, contender: str, scenario: str | None = None) -> dict[Pair, bool]:
        """Whether a contender succeeded, by instance.

        Args:
            contender: Its name.
            scenario: One of them, or None for all.
        """
        played = self.by_contender.get(contender, {})
        return {
            pair: trial.success
            for pair, trial in played.items()
            if scenario is None or pair[0] == scenario
        }

    def values(self, contender: str, measure: str) -> dict[Pair, float]:
        """A measure of a contender by instance, where it has a value."""
        found = {
            pair: trial.measures.get(measure)
            for pair, trial in self.by_contender.get(contender, {}).items()
        }
        return {pair: value for pair, value in found.items() if value is not None}

    def decided_by(self, contender: str) -> DecidedBy:
        """Who decided, over all trials of a contender."""
        return decided_by(self.of(contender))


def samples_of(assessment: Assessment) -> list[Sample]:
    """One sample a model, in the plan's order; one of its own where no model was asked at all."""
    plan = assessment.plan
    asked = [contender for contender in plan.contenders if contender not in plan.without_model]
    models = plan.models if asked else (NO_MODEL,)
    found = [_sample(assessment, model) for model in models]
    return [sample for sample in found if sample.contenders]


def _sample(assessment: Assessment, model: str) -> Sample:
    plan = assessment.plan
    by_contender: dict[str, dict[Pair, Trial]] = {}
    broken: Counter[str] = Counter()
    for trial in assessment.of_model(model):
        job = trial.job
        played = by_contender.setdefault(job.contender, {})
        if trial.counts:
            played[(job.scenario, job.seed)] = trial
        else:
            broken[job.contender] += 1
    there = {pair[0] for played in by_contender.values() for pair in played}
    return Sample(
        domain=plan.domain,
        model=model,
        scenarios=tuple(name for name in plan.scenarios if name in there),
        contenders=tuple(name for name in plan.contenders if name in by_contender),
        by_contender=by_contender,
        broken=broken,
    )


def decided_by(trials: Iterable[Trial]) -> DecidedBy:
    """Who decided, over some trials; nobody is told of where no model was asked."""
    counts: Counter[str] = Counter()
    for trial in trials:
        if trial.job.model != NO_MODEL:
            counts.update(trial.decided_by)
    total = counts.total()
    if not total:
        return DecidedBy()
    return DecidedBy(
        decisions=total,
        model=counts["model"] / total,
        rank=counts["rank"] / total,
        only_survivor=counts["only_survivor"] / total,
    )


def mean(values: Sequence[float]) -> float | None:
    """The mean; None of nothing."""
    return sum(values) / len(values) if values else None


def means(trials: Iterable[Trial], measure: str) -> list[float]:
    """The values of a measure in the trials that have one."""
    found = (trial.measures.get(measure) for trial in trials)
    return [value for value in found if value is not None]
