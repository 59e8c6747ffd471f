"""An interval, and that of a rate."""

from __future__ import annotations

from pydantic import Field

from coag.schema import Value

from ._libraries import wilson_bounds


class Interval(Value):
    """Where a quantity lies, by the data."""

    low: float
    """The lower bound."""
    high: float
    """The upper bound; never below `low`."""
    level: float = Field(default=0.95, gt=0, lt=1)
    """How often such an interval holds the truth, in the long run."""

    @property
    def includes_zero(self) -> bool:
        """Whether nothing at all is among what the data allow."""
        return self.low <= 0 <= self.high

    @property
    def width(self) -> float:
        """From the lower bound to the upper one."""
        return self.high - self.low


def wilson(successes: int, n: int, *, level: float = 0.95) -> Interval:
    """Wilson's score interval of a rate.

    It stays within 0 and 1 and is wide where `n` is small, also at 0 and at `n` successes. Of no
    trials at all everything is possible: 0 to 1.

    Args:
        successes: How many trials succeeded.
        n: How many there were.
        level: How often the interval is to hold the truth.

    Raises:
        ValueError: There are more successes than trials, or less than none.

    Source: E. B. Wilson, JASA 22 (1927) 209-212; recommended for small n by Brown, Cai and
    DasGupta, Statistical Science 16 (2001) 101-133.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"successes must be from 0 to n, got {successes!r} of n = {n!r}")
    if n == 0:
        return Interval(low=0.0, high=1.0, level=level)
    low, high = wilson_bounds(successes, n, 1 - level)
    return Interval(
        low=0.0 if successes == 0 else max(0.0, low),
        high=1.0 if successes == n else min(1.0, high),
        level=level,
    )
