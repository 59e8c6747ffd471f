"""Intervals of paired differences."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, sqrt

from ._interval import Interval, wilson
from ._libraries import bootstrap_bounds
from ._tests import RESAMPLES, Paired


def paired_bootstrap(
    differences: Sequence[float], seed: int = 0, *, level: float = 0.95, resamples: int = RESAMPLES
) -> Interval:
    """Bootstrap interval of the mean of paired differences (bias-corrected, accelerated).

    Where all differences are the same, nothing can be resampled: the interval is that one value,
    and says nothing of what other pairs would show.

    Args:
        differences: One number per pair.
        seed: What the resamples are drawn by; the same seed gives the same interval.
        level: How often the interval is to hold the truth.
        resamples: How many samples are drawn.

    Raises:
        ValueError: There is no difference.

    Source: B. Efron, JASA 82 (1987) 171-185.
    """
    if not differences:
        raise ValueError("an interval needs at least one difference, got none")
    smallest, largest = min(differences), max(differences)
    if smallest == largest:
        return Interval(low=smallest, high=largest, level=level)
    low, high = bootstrap_bounds(differences, level=level, resamples=resamples, seed=seed)
    # Where all but one are alike, a jackknife sample has no spread and no bound can be told.
    return Interval(
        low=smallest if isnan(low) else low, high=largest if isnan(high) else high, level=level
    )


def rate_difference(paired: Paired, *, level: float = 0.95) -> Interval:
    """Interval of the difference of two paired rates, second minus first.

    Newcombe's square-and-add interval with the pairs' correlation. Unlike a bootstrap it is wide
    where few pairs all say the same.

    Source: R. G. Newcombe, Statistics in Medicine 17 (1998) 2635-2650, method 10.
    """
    n = paired.n
    if n == 0:
        return Interval(low=-1.0, high=1.0, level=level)
    first, second = paired.both + paired.first_only, paired.both + paired.second_only
    p1, p2 = first / n, second / n
    of_first, of_second = wilson(first, n, level=level), wilson(second, n, level=level)
    phi = _correlation(paired)
    down, up = p2 - of_second.low, of_first.high - p1
    below = sqrt(max(0.0, down**2 - 2 * phi * down * up + up**2))
    up, down = of_second.high - p2, p1 - of_first.low
    above = sqrt(max(0.0, up**2 - 2 * phi * up * down + down**2))
    return Interval(low=max(-1.0, p2 - p1 - below), high=min(1.0, p2 - p1 + above), level=level)


def _correlation(paired: Paired) -> float:
    """How much the pairs go together, shrunk where it is positive; 0 where a side never varies."""
    a, b, c, d = paired.both, paired.first_only, paired.second_only, paired.neither
    product = (a + b) * (c + d) * (a + c) * (b + d)
    if product == 0:
        return 0.0
    cross = a * d - b * c
    if cross > 0:
        cross = max(0.0, cross - paired.n / 2)
    return cross / sqrt(product)
