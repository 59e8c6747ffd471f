"""What a report tells of sequences of episodes, as values."""

from __future__ import annotations

from case_study.statistics import Comparison
from coag.schema import Value


class LearningPoint(Value):
    """One episode of the sequences that are compared."""

    episode: int
    """Counted from 1; in the first nothing can have been remembered."""
    result: Comparison
    """The arm whose memory is emptied is the reference, the one whose memory lasts the other."""


class Learning(Value):
    """What a memory that lasts changes in one measure, of one contender in one scenario."""

    contender: str
    scenario: str
    measure: str
    points: tuple[LearningPoint, ...]
    """By episode; Holm's correction is over all of them of a panel but the first episodes."""
    later: Comparison
    """Over the mean of all episodes but the first; Holm's correction is over these of a panel."""


class Recalled(Value):
    """What a contender whose memory lasts noted and recalled in a scenario."""

    contender: str
    scenario: str
    means: dict[str, tuple[float | None, ...]]
    """By `noted`, `recalled`, `beside` and `refused`: the mean of each episode in order."""
