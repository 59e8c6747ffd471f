"""How large a difference is, and how many pairs it takes to see it."""

from __future__ import annotations

from collections.abc import Sequence
from math import asin, ceil, sqrt
from statistics import fmean, stdev

from ._libraries import normal_quantile, paired_t_n
from ._tests import smallest_n

POWER = 0.8
"""With what probability the pairs that are needed are to show a difference that is there."""


def cohens_h(first: float, second: float) -> float:
    """Effect size of two rates, second over first: 0.2 is small, 0.5 medium, 0.8 large.

    From -pi to pi; it does not depend on the number of trials.

    Source: J. Cohen, Statistical Power Analysis (1988) ch. 6.

    Raises:
        ValueError: A rate is not in 0 to 1.
    """
    for rate in (first, second):
        if not 0 <= rate <= 1:
            raise ValueError(f"a rate must be from 0 to 1, got {rate!r}")
    return 2 * asin(sqrt(second)) - 2 * asin(sqrt(first))


def discordant_odds(first_only: int, second_only: int) -> float | None:
    """Odds ratio of paired trials: pairs that only the second won, over those of the first.

    Above 1 the second is better; None where the first alone never won.
    """
    return second_only / first_only if first_only else None


def paired_d(differences: Sequence[float]) -> float | None:
    """Standardised mean of paired differences: 0.2 is small, 0.5 medium, 0.8 large.

    The mean over the differences' standard deviation (d of z). None where there are fewer than
    two, or all are the same.

    Source: J. Cohen, Statistical Power Analysis (1988) § 2.3.5.
    """
    if len(differences) < 2:
        return None
    spread = stdev(differences)
    return fmean(differences) / spread if spread else None


def needed_pairs_for_rates(
    first_only: float, second_only: float, *, alpha: float = 0.05, power: float = POWER
) -> int | None:
    """The pairs by which McNemar's test would show a difference of rates, if it is as observed.

    Args:
        first_only: The share of pairs in which only the first succeeds.
        second_only: The share of pairs in which only the second succeeds.
        alpha: The bar for p.
        power: With what probability p is to come below it.

    Returns:
        At least what an exact test can reach `alpha` with at all; None where the rates do not
        differ, so that no number of pairs would show it.

    Source: R. J. Connor, Biometrics 43 (1987) 207-211.

    Raises:
        ValueError: The shares are no shares.
    """
    discordant, difference = first_only + second_only, second_only - first_only
    if min(first_only, second_only) < 0 or discordant > 1 + 1e-9:
        raise ValueError(
            f"shares of pairs must add up to 1 at most, got {first_only!r} and {second_only!r}"
        )
    if abs(difference) < 1e-12:
        return None
    reach = normal_quantile(1 - alpha / 2) * sqrt(discordant)
    reach += normal_quantile(power) * sqrt(max(0.0, discordant - difference**2))
    return max(smallest_n(alpha), ceil(reach**2 / difference**2 - 1e-9))


def needed_n(
    differences: Sequence[float], *, alpha: float = 0.05, power: float = POWER
) -> int | None:
    """The pairs by which a paired test would show a mean difference, if it is as observed.

    By the power of a paired t-test, which that of signs comes near to. At least what an exact
    test can reach `alpha` with at all; None where the mean is 0 or there are fewer than two
    differences.

    Raises:
        ValueError: `alpha` is not between 0 and 1.
    """
    fewest = smallest_n(alpha)
    if len(differences) < 2 or abs(fmean(differences)) < 1e-12:
        return None
    effect = paired_d(differences)
    if effect is None or abs(effect) > 5:
        return fewest
    if abs(effect) < 0.01:
        reach = normal_quantile(1 - alpha / 2) + normal_quantile(power)
        return ceil((reach / effect) ** 2)
    return max(fewest, ceil(paired_t_n(effect, alpha, power)))
