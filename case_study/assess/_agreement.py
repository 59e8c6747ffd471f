"""Whether two assessments of the same jobs came to the same."""

from __future__ import annotations

from dataclasses import dataclass

from ._assessment import Assessment
from ._errors import AssessmentError
from ._trial import Trial

_COMPARED = ("actions", "model_calls")
"""Measures that are to be equal too, where both have them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """A job that came to something else."""

    one: Trial
    other: Trial

    def __str__(self) -> str:
        return f"{self.one.job.key}: {_told(self.one)} in the one, {_told(self.other)} in the other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What came of comparing two assessments."""

    same: int
    """Jobs with the same outcome, after as many actions and model calls."""
    differing: tuple[Disagreement, ...]
    """Jobs of which something of that differs."""
    broken: int
    """Jobs of which one or both trials are no evidence."""
    only_one: int
    """Jobs that only one of them has played."""

    @property
    def holds(self) -> bool:
        """Whether they agree wherever both have evidence, and both have some."""
        return self.same > 0 and not self.differing


def agreement(one: Assessment, other: Assessment) -> Agreement:
    """Compares what two assessments came to, job by job, e.g. of a local and a served world.

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
    evidence = [(a, b) for a, b in pairs if a.counts and b.counts]
    differing = tuple(
        Disagreement(one=a, other=b) for a, b in evidence if _essence(a) != _essence(b)
    )
    return Agreement(
        same=len(evidence) - len(differing),
        differing=differing,
        broken=len(pairs) - len(evidence),
        only_one=len(one.trials) + len(other.trials) - 2 * len(pairs),
    )


def _essence(trial: Trial) -> tuple[str, tuple[float | None, ...]]:
    return trial.outcome, tuple(trial.measures.get(name) for name in _COMPARED)


def _told(trial: Trial) -> str:
    counted = [
        f"{value:g} {name.replace('_', ' ')}"
        for name in _COMPARED
        if (value := trial.measures.get(name)) is not None
    ]
    return ", ".join([trial.outcome, *counted])
