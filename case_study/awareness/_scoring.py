"""What an answer is worth against the right one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ._exams import Item
from ._reader import Claim
from ._words import says

FULL, PARTIAL = 0.7, 0.3
"""From where on a score is full, and partial (section 6.3)."""


class Mark(StrEnum):
    """A score as table 7 writes it."""

    FULL = "Y"
    PARTIAL = "~"
    NONE = "-"

    @classmethod
    def of(cls, score: float) -> Mark:
        """The mark of a score."""
        return cls.FULL if score >= FULL else cls.PARTIAL if score >= PARTIAL else cls.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How good an answer is, from 0 to 1."""

    value: float
    """F1 over the items; 1 for rightly claiming nothing."""
    recall: float
    """The share of right items that were given, whatever else was; the same where none is."""


def score(claims: Sequence[Claim] | None, right: Sequence[Item], *, sampled: bool = False) -> Score:
    """What these claims are worth.

    Args:
        claims: What was read from a text; None if there was no answer, which is worth nothing.
        right: The right items. None means that nothing is to be told, and any claim is wrong.
        sampled: Whether claims beyond the right items cost nothing, because these are only some.
    """
    if claims is None:
        return Score(value=0.0, recall=0.0)
    if not right:
        return Score(value=float(not claims), recall=float(not claims))
    given = [item for item in right if any(tells(claim, item) for claim in claims)]
    recall = len(given) / len(right)
    if sampled or not given:
        return Score(value=recall, recall=recall)
    borne_out = sum(any(tells(claim, item) for item in right) for claim in claims)
    precision = borne_out / len(claims)
    return Score(value=2 * precision * recall / (precision + recall), recall=recall)


def tells(claim: Claim, item: Item) -> bool:
    """Whether the phrases of an item are said in parts of the claim, in this order."""
    parts = iter(claim)
    return all(any(says(part, phrase) for part in parts) for phrase in item)
