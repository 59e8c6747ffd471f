"""Pure measures of answers, and how sure they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

LOOKED_AT = 20
"""How many ids a memory is asked for; an answer further down counts as not found."""
DRAWS = 1_000
"""Samples of the bootstrap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a memory gave for one question."""

    conversation: str
    split: str
    """`dev` for what weights may be chosen on, `held-out` for what nobody may look at before."""
    category: int
    wanted: frozenset[str]
    """The ids that answer; there is at least one."""
    got: tuple[str, ...]
    """The ids that came, best first."""
    seconds: float = 0.0
    """What it took."""


def recall_at(answer: Answer, k: int) -> float:
    """Which share of what is wanted is among the first k."""
    return len(answer.wanted.intersection(answer.got[:k])) / len(answer.wanted)


def all_at(answer: Answer, k: int) -> float:
    """1 if all that is wanted is among the first k, else 0."""
    return float(answer.wanted <= set(answer.got[:k]))


def reciprocal_rank(answer: Answer) -> float:
    """One over the place of the first that is wanted; 0 if none is among those looked at."""
    places = (at for at, one in enumerate(answer.got[:LOOKED_AT], 1) if one in answer.wanted)
    return 1.0 / next(places, float("inf"))


def mean(values: Sequence[float]) -> float:
    """The mean; not a number for nothing."""
    return sum(values) / len(values) if values else float("nan")


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not pass; not a number for nothing."""
    if not values:
        return float("nan")
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def interval(values: Sequence[float], *, draws: int = DRAWS, seed: int = 0) -> tuple[float, float]:
    """Bounds within which the mean lies in 95 of 100 samples drawn with replacement."""
    if not values:
        return float("nan"), float("nan")
    known = np.asarray(values, dtype=np.float64)
    drawn = np.random.default_rng(seed).integers(0, len(known), (draws, len(known)))
    low, high = np.percentile(known[drawn].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def of_all(answers: Sequence[Answer], measure: Callable[[Answer], float]) -> float:
    """The mean of a measure."""
    return mean([measure(answer) for answer in answers])
