"""scipy and statsmodels, met here and nowhere else, behind functions with types.

Both take seconds to import and come without types, so they are imported where they are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast


def wilson_bounds(successes: int, n: int, alpha: float) -> tuple[float, float]:
    """Wilson's score interval of a rate, by statsmodels."""
    from statsmodels.stats import proportion

    found = cast("Any", proportion).proportion_confint(successes, n, alpha=alpha, method="wilson")
    return float(found[0]), float(found[1])


def mcnemar_p(first_only: int, second_only: int) -> float:
    """Two-sided exact p of McNemar's test, by statsmodels."""
    from statsmodels.stats import contingency_tables

    table = [[0, first_only], [second_only, 0]]
    return float(cast("Any", contingency_tables).mcnemar(table, exact=True).pvalue)


def bootstrap_bounds(
    values: Sequence[float], *, level: float, resamples: int, seed: int
) -> tuple[float, float]:
    """Bias-corrected and accelerated bootstrap interval of a mean, by scipy."""
    import numpy
    from scipy import stats

    found = cast("Any", stats).bootstrap(
        (list(values),),
        numpy.mean,
        confidence_level=level,
        n_resamples=resamples,
        method="BCa",
        vectorized=True,
        rng=seed,
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def sign_flip_p(values: Sequence[float], *, resamples: int, seed: int) -> float:
    """Two-sided p of the mean under random signs, by scipy; exact where the signs are few."""
    import numpy
    from scipy import stats

    found = cast("Any", stats).permutation_test(
        (list(values),),
        numpy.mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        rng=seed,
    )
    return float(found.pvalue)


def holm_adjusted(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values in the order given, by statsmodels."""
    from statsmodels.stats import multitest

    found = cast("Any", multitest).multipletests(list(p_values), method="holm")
    return [float(p) for p in found[1]]


def normal_quantile(probability: float) -> float:
    """The quantile of the standard normal distribution, by scipy."""
    from scipy import stats

    return float(cast("Any", stats).norm.ppf(probability))


def paired_t_n(effect: float, alpha: float, power: float) -> float:
    """The pairs that a paired t-test needs for a standardised effect, by statsmodels."""
    from statsmodels.stats import power as powers

    found = (
        cast("Any", powers)
        .TTestPower()
        .solve_power(
            effect_size=abs(effect), nobs=None, alpha=alpha, power=power, alternative="two-sided"
        )
    )
    return float(found)
