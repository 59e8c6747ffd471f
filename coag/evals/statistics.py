"""Statistics of paired trials: pure functions on scipy and statsmodels.

Contenders are compared on the same seeds, so everything is paired: McNemar's exact test for
success, a sign-flip test and a bootstrap interval for measures, Holm's correction over a table,
effect sizes that do not depend on the number of seeds, and the number of pairs that would be
needed where the data leave the question open. Below six pairs no p-value is given, because none
could come below 0.05. `compare` puts all of it into one value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from math import asin, ceil, comb, isfinite, isnan, sqrt
from statistics import NormalDist, fmean, stdev
from typing import Any, Literal, TypeVar, cast

from pydantic import Field

from coag.schema import Value


class Interval(Value):
    """The range of a quantity, by the data."""

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
    from scipy import stats

    test = cast("Any", stats).binomtest(successes, n)
    low, high = map(float, test.proportion_ci(level, method="wilson"))
    return Interval(
        low=0.0 if successes == 0 else max(0.0, low),
        high=1.0 if successes == n else min(1.0, high),
        level=level,
    )


RESAMPLES = 9999
"""How many samples a bootstrap draws by default."""
_SIGNS_DRAWN = 19_999
"""How often signs are drawn where there are too many to be listed."""
_LISTED_UP_TO = 16
"""Differences of which all signs are listed."""

KeyT = TypeVar("KeyT")


class PairedCounts(Value):
    """How pairs of yes and no fell, and what McNemar's exact test says of it."""

    both: int = Field(ge=0)
    """Pairs in which both succeeded."""
    first_only: int = Field(ge=0)
    """Pairs in which only the first succeeded."""
    second_only: int = Field(ge=0)
    """Pairs in which only the second succeeded."""
    neither: int = Field(ge=0)
    """Pairs in which none succeeded."""
    p: float = Field(ge=0, le=1)
    """Two-sided exact p: how likely so uneven a split of the discordant pairs is by chance."""

    @property
    def n(self) -> int:
        """How many pairs there are."""
        return self.both + self.discordant + self.neither

    @property
    def discordant(self) -> int:
        """Pairs in which one succeeded and the other did not; only they say which is better."""
        return self.first_only + self.second_only


def mcnemar(pairs: Iterable[tuple[bool, bool]]) -> PairedCounts:
    """McNemar's exact test of pairs `(first, second)`.

    Without a discordant pair p is 1.

    Source: Q. McNemar, Psychometrika 12 (1947) 153-157; exact by the binomial distribution.
    """
    counts = {(a, b): 0 for a in (True, False) for b in (True, False)}
    for first, second in pairs:
        counts[bool(first), bool(second)] += 1
    first_only, second_only, p = counts[True, False], counts[False, True], 1.0
    if first_only + second_only:
        from scipy import stats

        test = cast("Any", stats).binomtest(first_only, first_only + second_only)
        p = min(1.0, float(test.pvalue))
    return PairedCounts(
        both=counts[True, True],
        first_only=first_only,
        second_only=second_only,
        neither=counts[False, False],
        p=p,
    )


def sign_flip(differences: Sequence[float], seed: int = 0) -> float:
    """Two-sided p of paired differences: how likely a mean so far from 0 is under random signs.

    Up to 16 differences that are not 0 all signs are listed, and p is exact; beyond, signs are
    drawn by the seed. Less than two that are not 0 give 1.

    Source: R. A. Fisher, The Design of Experiments (1935) § 21.
    """
    moved = [value for value in differences if value]
    if len(moved) < 2:
        return 1.0
    import numpy
    from scipy import stats

    test = cast("Any", stats).permutation_test(
        (moved,),
        numpy.mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=2**_LISTED_UP_TO if len(moved) <= _LISTED_UP_TO else _SIGNS_DRAWN,
        random_state=numpy.random.default_rng(seed),  # `rng` since scipy 1.15
    )
    return min(1.0, float(test.pvalue))


def holm(p_values: Mapping[KeyT, float]) -> dict[KeyT, float]:
    """Holm's adjusted p-values of a family of tests.

    With adjusted p below 0.05 as the bar, at most 5 % of such tables hold any false claim.

    Source: S. Holm, Scandinavian Journal of Statistics 6 (1979) 65-70.

    Raises:
        ValueError: A p-value is not in 0 to 1.
    """
    for key, p in p_values.items():
        if not 0 <= p <= 1:
            raise ValueError(f"the p-value of {key!r} must be from 0 to 1, got {p!r}")
    adjusted: dict[KeyT, float] = {}
    largest = 0.0  # not by statsmodels, whose function collects all garbage at each call
    for place, key in enumerate(sorted(p_values, key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[key]))
        adjusted[key] = largest
    return {key: adjusted[key] for key in p_values}


def smallest_n(alpha: float = 0.05) -> int:
    """The fewest pairs by which an exact two-sided paired test can come below `alpha`.

    Even if all pairs speak for the same side, p of n pairs is 2 / 2**n: 6 pairs for 0.05.

    Raises:
        ValueError: `alpha` is not between 0 and 1.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, got {alpha!r}")
    return next(n for n in count(1) if 2 / 2**n < alpha)


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
    import numpy
    from scipy import stats

    bootstrap = cast("Any", stats).bootstrap(
        (list(differences),),
        numpy.mean,
        confidence_level=level,
        n_resamples=resamples,
        method="BCa",
        vectorized=True,
        random_state=numpy.random.default_rng(seed),  # `rng` since scipy 1.15
    )
    low, high = map(float, bootstrap.confidence_interval)
    # Where all but one are alike, a jackknife sample has no spread, and there is no bound.
    return Interval(
        low=smallest if isnan(low) else low, high=largest if isnan(high) else high, level=level
    )


def rate_difference(paired: PairedCounts, *, level: float = 0.95) -> Interval:
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


def _correlation(paired: PairedCounts) -> float:
    """How much the pairs go together, shrunk where it is positive; 0 where a side never varies."""
    a, b, c, d = paired.both, paired.first_only, paired.second_only, paired.neither
    product = (a + b) * (c + d) * (a + c) * (b + d)
    if product == 0:
        return 0.0
    cross = a * d - b * c
    if cross > 0:
        cross = max(0.0, cross - paired.n / 2)
    return cross / sqrt(product)


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
    quantile = NormalDist().inv_cdf
    reach = quantile(1 - alpha / 2) * sqrt(discordant)
    reach += quantile(power) * sqrt(max(0.0, discordant - difference**2))
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
        reach = NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(power)
        return ceil((reach / effect) ** 2)
    from statsmodels.stats.power import TTestPower

    pairs = cast("Any", TTestPower)().solve_power(
        effect_size=abs(effect), nobs=None, alpha=alpha, power=power, alternative="two-sided"
    )
    return max(fewest, ceil(pairs))


def pass_at_k(successes: int, n: int, k: int) -> float:
    """Probability that at least one of k trials succeeds: what an agent can do.

    Estimated without bias from n trials, of which k are drawn without putting back.

    Raises:
        ValueError: It is not 0 <= successes <= n and 1 <= k <= n.

    Source: M. Chen et al., Evaluating Large Language Models Trained on Code (2021).
    """
    _check(successes, n, k)
    return 1 - comb(n - successes, k) / comb(n, k)


def worst_of_k(successes: int, n: int, k: int) -> float:
    """Probability that all of k trials succeed: what can be relied on.

    Estimated without bias from n trials, of which k are drawn without putting back.

    Raises:
        ValueError: It is not 0 <= successes <= n and 1 <= k <= n.

    Source: pass^k of S. Yao et al., tau-bench (2024).
    """
    _check(successes, n, k)
    return comb(successes, k) / comb(n, k)


def _check(successes: int, n: int, k: int) -> None:
    if not 0 <= successes <= n:
        raise ValueError(f"successes must be from 0 to n, got {successes!r} of n = {n!r}")
    if not 1 <= k <= n:
        raise ValueError(f"k must be from 1 to n = {n!r}, got {k!r}")


LabelT = TypeVar("LabelT")
FEWEST_PAIRS = smallest_n()
"""Pairs below which no p-value is given: fewer cannot come below 0.05, whatever they show."""


class PairedComparison(Value):
    """What paired trials say of the difference between a reference and another contender."""

    kind: Literal["rate", "number"]
    """`rate` for yes and no, such as success; `number` for a measure."""
    pairs: int
    """Seeds for which both have a value."""
    unpaired: int
    """Seeds for which only one of them has a value; they are left out."""
    reference: float | None
    """The reference's mean over the pairs; None without pairs."""
    other: float | None
    """The other's mean over the pairs."""
    difference: float | None
    """`other` minus `reference`."""
    interval: Interval | None
    """The range of the difference; None for a measure with too few pairs."""
    higher: int
    """Pairs in which the other's value is higher."""
    lower: int
    """Pairs in which the other's value is lower."""
    test: str
    """Which test gave `p`."""
    p: float | None
    """Two-sided p; None where there are too few pairs for a claim."""
    p_holm: float | None = None
    """`p` adjusted for all tests of its table; None until `with_holm` has seen the table."""
    effect: float | None
    """Effect size; None where it cannot be computed."""
    effect_name: str
    """Which one: `Cohen's h` for rates, `paired d` for measures."""
    needed_n: int | None
    """Pairs that would show this difference (p < 0.05 with probability 0.8), if it is as
    observed; given where the interval includes 0 or no claim is possible, None otherwise."""
    why: str
    """Why there is no p-value, interval or needed number; empty where all is there."""

    @property
    def adjusted_p(self) -> float | None:
        """The p-value, adjusted for its table where it was."""
        return self.p if self.p_holm is None else self.p_holm

    @property
    def claims(self) -> bool:
        """Whether a difference is shown: the adjusted p-value is below 0.05."""
        return self.adjusted_p is not None and self.adjusted_p < 0.05


def compare(
    reference: Mapping[KeyT, bool | float | None],
    other: Mapping[KeyT, bool | float | None],
    *,
    seed: int = 0,
) -> PairedComparison:
    """Compares two contenders over the seeds (or whatever the keys are) that both have.

    If all values are `bool`, they are compared as rates: exact McNemar, Newcombe's interval,
    Cohen's h. Otherwise as numbers: sign-flip test, bootstrap interval, paired d.

    Args:
        reference: Value by seed of what is compared with; None where there is none.
        other: Value by seed of what is compared.
        seed: What resamples are drawn by.

    Raises:
        ValueError: A value is infinite or not a number.
    """
    keys = [key for key in reference if other.get(key) is not None and reference[key] is not None]
    valued = {
        key for side in (reference, other) for key, value in side.items() if value is not None
    }
    pairs = [(cast("float", reference[key]), cast("float", other[key])) for key in keys]
    for key, pair in zip(keys, pairs, strict=True):
        if not all(isfinite(value) for value in pair):
            raise ValueError(f"the values of {key!r} must be finite, got {pair!r}")
    unpaired = len(valued) - len(pairs)
    if pairs and all(isinstance(value, bool) for pair in pairs for value in pair):
        return _of_rates([(bool(a), bool(b)) for a, b in pairs], unpaired)
    return _of_numbers([(float(a), float(b)) for a, b in pairs], unpaired, seed)


def with_holm(table: Mapping[LabelT, PairedComparison]) -> dict[LabelT, PairedComparison]:
    """The comparisons of one table with their p-values adjusted for all of them (Holm)."""
    adjusted = holm({key: one.p for key, one in table.items() if one.p is not None})
    return {key: one.model_copy(update={"p_holm": adjusted.get(key)}) for key, one in table.items()}


def _of_rates(pairs: Sequence[tuple[bool, bool]], unpaired: int) -> PairedComparison:
    paired, n = mcnemar(pairs), len(pairs)
    first, second = fmean(a for a, _ in pairs), fmean(b for _, b in pairs)
    return _compared(
        pairs,
        unpaired,
        kind="rate",
        difference=second - first,
        interval=rate_difference(paired),
        test="exact McNemar",
        p=paired.p,
        effect=cohens_h(first, second),
        effect_name="Cohen's h",
        needed=lambda: needed_pairs_for_rates(paired.first_only / n, paired.second_only / n),
    )


def _of_numbers(pairs: Sequence[tuple[float, float]], unpaired: int, seed: int) -> PairedComparison:
    differences, enough = [b - a for a, b in pairs], len(pairs) >= FEWEST_PAIRS
    return _compared(
        pairs,
        unpaired,
        kind="number",
        difference=fmean(differences) if pairs else None,
        interval=paired_bootstrap(differences, seed) if enough else None,
        test="sign-flip permutation",
        p=sign_flip(differences, seed) if enough else None,
        effect=paired_d(differences),
        effect_name="paired d",
        needed=lambda: needed_n(differences),
    )


def _compared(
    pairs: Sequence[tuple[float, float]],
    unpaired: int,
    *,
    interval: Interval | None,
    p: float | None,
    needed: Callable[[], int | None],
    **found: Any,
) -> PairedComparison:
    n, enough = len(pairs), len(pairs) >= FEWEST_PAIRS
    is_open = interval is None or interval.includes_zero or not enough
    needed_pairs = needed() if is_open else None
    return PairedComparison(
        pairs=n,
        unpaired=unpaired,
        reference=fmean(a for a, _ in pairs) if pairs else None,
        other=fmean(b for _, b in pairs) if pairs else None,
        interval=interval,
        higher=sum(b > a for a, b in pairs),
        lower=sum(b < a for a, b in pairs),
        p=p if enough else None,
        needed_n=needed_pairs,
        why=_why(n, is_open and needed_pairs is None),
        **found,
    )


def _why(n: int, no_number: bool) -> str:
    reasons: list[str] = []
    if n < FEWEST_PAIRS:
        reasons.append(
            f"{n} {'pair is' if n == 1 else 'pairs are'} too few for a claim: "
            f"p < 0.05 takes at least {FEWEST_PAIRS}"
        )
    if no_number and n:
        reasons.append("no difference was seen, so no number of pairs can be computed")
    return "; ".join(reasons)
