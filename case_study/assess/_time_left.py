"""How long what is left of a sweep will take."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from statistics import median

from ._trial import Job, Trial

_LATEST = 50
"""Trials of a kind whose durations count."""


class TimeLeft:
    """An estimate from the median of what such jobs took so far.

    Args:
        jobs: What is left to play.
        size: How many are played at the same time.
        past: Trials of an earlier sweep in the same folder.
    """

    def __init__(self, jobs: Iterable[Job], *, size: int, past: Iterable[Trial] = ()) -> None:
        self._left = Counter(map(_kind, jobs))
        self._size = size
        self._took: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
        for trial in past:
            self._note(trial)

    def played(self, trial: Trial) -> None:
        """A job is over."""
        self._left[_kind(trial.job)] -= 1
        self._note(trial)

    def seconds(self) -> float | None:
        """Seconds left; None as long as nothing is known."""
        known = {kind: median(took) for kind, took in self._took.items()}
        if not known:
            return None
        total = 0.0
        for kind, count in self._left.items():
            total += count * _guess(kind, known)
        return total / self._size

    def _note(self, trial: Trial) -> None:
        if trial.counts:
            took = self._took[_kind(trial.job)]
            took.append(trial.took)
            del took[:-_LATEST]


def _kind(job: Job) -> tuple[str, str, str]:
    return (job.contender, job.model, job.scenario)


def _guess(kind: tuple[str, str, str], known: dict[tuple[str, str, str], float]) -> float:
    """What one job takes: as jobs of its kind did; else of its contender and model; else any."""
    if kind in known:
        return known[kind]
    alike = [took for other, took in known.items() if other[:2] == kind[:2]]
    alike = alike or [took for other, took in known.items() if other[0] == kind[0]]
    return median(alike or list(known.values()))
