"""Sums and means over dialogues, and how sure a difference is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from case_study.statistics import FEWEST_PAIRS, Interval, paired_bootstrap
from coag.schema import Value

from ._coverage import Coverage
from ._memories import Kind
from ._scoring import Mark

SEED = 2026
"""What the resamples of the bootstrap are drawn by."""


class Figures(Value):
    """Table 6 of one kind of memory: of one dialogue, or the mean of several."""

    tokens: float
    covered: float
    """Coverage, of as many as there are questions."""
    recalled: float
    """The same where claiming too much costs nothing."""
    density: float
    """Coverage per 100 tokens."""
    full: float
    partial: float
    none: float


class Difference(Value):
    """How far one kind of memory is before another, over dialogues."""

    mean: float
    interval: Interval | None
    """None below `FEWEST_PAIRS` dialogues: so few tell nothing of others."""
    better: int
    """In how many dialogues it is."""
    worse: int


Measure = Callable[[Figures], float]


def figures(coverage: Coverage, dialogue: str, kind: Kind) -> Figures:
    """Table 6 of one memory of one dialogue."""
    scored = coverage.of(dialogue, kind)
    tokens = coverage.tokens(dialogue, kind)
    covered = sum(one.value for one in scored)
    marks = [one.mark for one in scored]
    return Figures(
        tokens=tokens,
        covered=covered,
        recalled=sum(one.recall for one in scored),
        density=100 * covered / tokens if tokens else 0.0,
        full=marks.count(Mark.FULL),
        partial=marks.count(Mark.PARTIAL),
        none=marks.count(Mark.NONE),
    )


def mean_figures(coverage: Coverage, dialogues: Sequence[str], kind: Kind) -> Figures:
    """The means over dialogues."""
    each = [figures(coverage, dialogue, kind).model_dump() for dialogue in dialogues]
    return Figures.model_validate({name: fmean(one[name] for one in each) for name in each[0]})


def difference(
    coverage: Coverage, dialogues: Sequence[str], measure: Measure, one: Kind, other: Kind
) -> Difference:
    """How far `one` is before `other`, paired by dialogue."""
    apart = [
        measure(figures(coverage, dialogue, one)) - measure(figures(coverage, dialogue, other))
        for dialogue in dialogues
    ]
    return Difference(
        mean=fmean(apart),
        interval=paired_bootstrap(apart, SEED) if len(apart) >= FEWEST_PAIRS else None,
        better=sum(value > 0 for value in apart),
        worse=sum(value < 0 for value in apart),
    )


def question_mean(coverage: Coverage, dialogues: Sequence[str], kind: Kind, question: str) -> float:
    """The mean score of one question over dialogues."""
    return fmean(
        one.value
        for one in coverage.scored
        if one.kind is kind and one.question == question and one.dialogue in dialogues
    )
