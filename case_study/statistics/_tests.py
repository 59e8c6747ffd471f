"""Tests of paired trials, and the correction for many of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import TypeVar

from pydantic import Field

from coag.schema import Value

from ._libraries import holm_adjusted, mcnemar_p, sign_flip_p

RESAMPLES = 9999
"""How many samples a bootstrap draws, unless told otherwise."""
_SIGNS_DRAWN = 19_999
"""How often signs are drawn where there are too many to be listed."""
_LISTED_UP_TO = 16
"""Differences of which all signs are listed."""

KeyT = TypeVar("KeyT")


class Paired(Value):
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


def mcnemar(pairs: Iterable[tuple[bool, bool]]) -> Paired:
    """McNemar's exact test of pairs `(first, second)`.

    Without a discordant pair p is 1.

    Source: Q. McNemar, Psychometrika 12 (1947) 153-157; exact by the binomial distribution.
    """
    counts = {(a, b): 0 for a in (True, False) for b in (True, False)}
    for first, second in pairs:
        counts[bool(first), bool(second)] += 1
    first_only, second_only = counts[True, False], counts[False, True]
    return Paired(
        both=counts[True, True],
        first_only=first_only,
        second_only=second_only,
        neither=counts[False, False],
        p=min(1.0, mcnemar_p(first_only, second_only)) if first_only + second_only else 1.0,
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
    listed = len(moved) <= _LISTED_UP_TO
    resamples = 2**_LISTED_UP_TO if listed else _SIGNS_DRAWN
    return min(1.0, sign_flip_p(moved, resamples=resamples, seed=seed))


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
    if not p_values:
        return {}
    return dict(zip(p_values, holm_adjusted(list(p_values.values())), strict=True))


def smallest_n(alpha: float = 0.05) -> int:
    """The fewest pairs by which an exact two-sided paired test can come below `alpha`.

    Even if all pairs speak for the same side, p of n pairs is 2 / 2**n: 6 pairs for 0.05.

    Raises:
        ValueError: `alpha` is not between 0 and 1.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, got {alpha!r}")
    return next(n for n in count(1) if 2 / 2**n < alpha)
