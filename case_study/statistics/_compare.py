"""Two contenders on the same seeds: one value that says all that can be said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from statistics import fmean
from typing import Literal, TypeVar, cast

from coag.schema import Value

from ._differences import paired_bootstrap, rate_difference
from ._effects import cohens_h, needed_n, needed_pairs_for_rates, paired_d
from ._interval import Interval
from ._tests import holm, mcnemar, sign_flip, smallest_n

KeyT = TypeVar("KeyT")
LabelT = TypeVar("LabelT")
FEWEST_PAIRS = smallest_n()
"""Pairs below which no p-value is given: fewer cannot come below 0.05, whatever they show."""


class Comparison(Value):
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
    """Where the difference lies; None for a measure with too few pairs."""
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
    """Effect size; None where it cannot be told."""
    effect_name: str
    """Which one: `Cohen's h` for rates, `paired d` for measures."""
    needed_n: int | None
    """Pairs that would show this difference (p < 0.05 with probability 0.8), if it is as
    observed; given where the interval includes 0 or no claim is possible, None otherwise."""
    why: str
    """Why there is no p-value, interval or needed number; empty where all is there."""

    @property
    def claims(self) -> bool:
        """Whether a difference is shown: the p-value, adjusted where it was, is below 0.05."""
        p = self.p if self.p_holm is None else self.p_holm
        return p is not None and p < 0.05


def compare(
    reference: Mapping[KeyT, bool | float | None],
    other: Mapping[KeyT, bool | float | None],
    *,
    seed: int = 0,
) -> Comparison:
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
    told = {key for side in (reference, other) for key, value in side.items() if value is not None}
    pairs = [(cast("float", reference[key]), cast("float", other[key])) for key in keys]
    for key, pair in zip(keys, pairs, strict=True):
        if not all(isfinite(value) for value in pair):
            raise ValueError(f"the values of {key!r} must be finite, got {pair!r}")
    unpaired = len(told) - len(pairs)
    if pairs and all(isinstance(value, bool) for pair in pairs for value in pair):
        return _of_rates([(bool(a), bool(b)) for a, b in pairs], unpaired)
    return _of_numbers([(float(a), float(b)) for a, b in pairs], unpaired, seed)


def with_holm(table: Mapping[LabelT, Comparison]) -> dict[LabelT, Comparison]:
    """The comparisons of one table with their p-values adjusted for all of them (Holm)."""
    adjusted = holm({key: one.p for key, one in table.items() if one.p is not None})
    return {key: one.model_copy(update={"p_holm": adjusted.get(key)}) for key, one in table.items()}


def _of_rates(pairs: Sequence[tuple[bool, bool]], unpaired: int) -> Comparison:
    paired, n = mcnemar(pairs), len(pairs)
    first, second = fmean(a for a, _ in pairs), fmean(b for _, b in pairs)
    interval = rate_difference(paired)
    enough = n >= FEWEST_PAIRS
    needed = needed_pairs_for_rates(paired.first_only / n, paired.second_only / n)
    open_question = interval.includes_zero or not enough
    return Comparison(
        kind="rate",
        pairs=n,
        unpaired=unpaired,
        reference=first,
        other=second,
        difference=second - first,
        interval=interval,
        higher=paired.second_only,
        lower=paired.first_only,
        test="exact McNemar",
        p=paired.p if enough else None,
        effect=cohens_h(first, second),
        effect_name="Cohen's h",
        needed_n=needed if open_question else None,
        why=_why(n, open_question and needed is None),
    )


def _of_numbers(pairs: Sequence[tuple[float, float]], unpaired: int, seed: int) -> Comparison:
    differences, n = [b - a for a, b in pairs], len(pairs)
    enough = n >= FEWEST_PAIRS
    interval = paired_bootstrap(differences, seed) if enough else None
    open_question = interval is None or interval.includes_zero
    needed = needed_n(differences) if open_question else None
    return Comparison(
        kind="number",
        pairs=n,
        unpaired=unpaired,
        reference=fmean(a for a, _ in pairs) if pairs else None,
        other=fmean(b for _, b in pairs) if pairs else None,
        difference=fmean(differences) if pairs else None,
        interval=interval,
        higher=sum(value > 0 for value in differences),
        lower=sum(value < 0 for value in differences),
        test="sign-flip permutation",
        p=sign_flip(differences, seed) if enough else None,
        effect=paired_d(differences),
        effect_name="paired d",
        needed_n=needed,
        why=_why(n, open_question and needed is None),
    )


def _why(n: int, no_number: bool) -> str:
    told: list[str] = []
    if n < FEWEST_PAIRS:
        told.append(
            f"{n} {'pair is' if n == 1 else 'pairs are'} too few for a claim: "
            f"p < 0.05 takes at least {FEWEST_PAIRS}"
        )
    if no_number and n:
        told.append("no difference was seen, so no number of pairs can be told")
    return "; ".join(told)
