"""How common the common words are, remembered from query to query."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from ._rows import how_many, is_common, newest_row, rarity, rows_with

_KEPT = 10_000
"""Words that are remembered; then all are looked up anew."""
_CHANGE = 0.02
"""What is remembered holds while the size of the index has changed by no more than this part."""


class CommonWords:
    """In about how many rows common words stand.

    To estimate this anew for each query is most of what words cost in a large index, and what
    comes out hardly changes: a rarity is the logarithm of a share.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, tuple[str, ...]], int] = {}
        self._size = 0

    def hold_for(self, size: int) -> None:
        """Forgets everything if the index, now of so many records, was another size by much."""
        if len(self._counts) >= _KEPT or abs(size - self._size) > _CHANGE * self._size:
            self._counts.clear()
            self._size = size

    def among(self, words: Sequence[str], shelves: Sequence[str]) -> dict[str, int]:
        """Those of the words that are known to be common on these shelves, with their rows."""
        where = tuple(shelves)
        known = ((word, self._counts.get((word, where))) for word in words)
        return {word: count for word, count in known if count is not None}

    def keep(self, word: str, shelves: Sequence[str], count: int) -> None:
        """Remembers in how many rows of these shelves a common word stands."""
        self._counts[word, tuple(shelves)] = count


class Standing(NamedTuple):
    """Where the words of a query stand."""

    proposing: dict[str, list[int]]
    """The words that propose records, each with its rows."""
    common: list[str]
    """Those that stand in very many rows, of which not all were seen."""
    weights: dict[str, float]
    """How much each word of the query tells."""


def standing(
    db: sqlite3.Connection,
    words: Sequence[str],
    shelves: Sequence[str],
    within: int,
    remembered: CommonWords,
) -> Standing:
    """Where words stand. Common ones propose nothing, if there are others.

    Args:
        db: The lexicon.
        words: Of a query.
        shelves: Where to look; none for everywhere.
        within: How many records there are.
        remembered: What is known of common words; more comes to be known.
    """
    counts = remembered.among(words, shelves)
    rows = {word: rows_with(db, word, shelves) for word in words if word not in counts}
    for word, seen in rows.items():
        if is_common(seen):
            counts[word] = how_many(seen, newest_row(db))
            remembered.keep(word, shelves, counts[word])
    common = [word for word in words if word in counts]
    proposing = {word: seen for word, seen in rows.items() if seen and word not in counts}
    if common and not proposing:
        one = common[0]
        proposing = {one: rows[one] if one in rows else rows_with(db, one, shelves)}
    every = {word: counts[word] if word in counts else len(rows[word]) for word in words}
    weights = {word: rarity(count, within) for word, count in every.items()}
    return Standing(proposing, common, weights)
