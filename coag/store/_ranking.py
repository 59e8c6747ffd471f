"""In which order records answer a query: pure rules over what is known of each.

The form of the score, its parts and their weights were found on two conversations of LoCoMo and
measured on others (see docs/memory.md and `benchmarks/memory`). Each part is a general rule over
fields of records; where a store's records lack the field, the part is zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from heapq import nlargest
from typing import NamedTuple

from pydantic import Field

from coag.schema import ScoreParts, Value

from .lexicon import Entry

_DAY = 86_400.0
_SAYS_MUCH = math.log1p(32)
"""A text of 32 words or more counts as one that says much; of fewer, by their logarithm."""
_BEST_OF_EPISODE = 3
_TELLING = 0.15
"""Share of a query's words, or weight of neighbours, from which on a record has to do with it."""


class Ranking(Value):
    """How much each part of a score weighs."""

    dense: float = Field(default=0.55, ge=0.0)
    """Of the cosine."""
    lexical: float = Field(default=0.45, ge=0.0)
    """Of the share of the query's words."""
    neighbours: tuple[float, ...] = (0.5, 0.2)
    """Of what stands one place before and after in the same episode, two places, and so on."""
    episode: float = Field(default=0.2, ge=0.0)
    """Of the mean of the three best records of its episode."""
    source: float = Field(default=0.18, ge=0.0)
    """For a record that stems from the one source which the query names."""
    question: float = Field(default=0.09, ge=0.0)
    """Taken from a record that asks: questions seldom answer."""
    length: float = Field(default=0.15, ge=0.0)
    """For a text that says much; a shorter one has a part of it."""
    recency: float = Field(default=0.02, ge=0.0)
    """For the newest record found; an older one has a part of it."""
    half_life: float = Field(default=30.0, gt=0.0)
    """Days after which recency has halved."""
    importance: float = Field(default=0.05, ge=0.0)
    """For a record of importance 1; taken from one of importance 0."""
    untrusted: float = Field(default=0.02, ge=0.0)
    """Taken from a record that is not to be trusted."""
    pool: int = Field(default=40, ge=1)
    """How many records each index proposes."""
    centres: int = Field(default=30, ge=1)
    """How many of the best have their neighbours looked at."""
    alike: float = Field(default=0.9, gt=0.0)
    """Of texts that share this part of their words, the first counts; the others come last."""

    @property
    def reach(self) -> int:
        """How far neighbours count, in places."""
        return len(self.neighbours)

    def own(self, candidate: Candidate) -> float:
        """What a record has by itself: its meaning and its words."""
        return self.dense * max(0.0, candidate.dense) + self.lexical * candidate.lexical


DEFAULT_RANKING = Ranking()
"""The weights that were measured."""


class Candidate(NamedTuple):
    """A record that may answer."""

    entry: Entry
    dense: float
    """Its cosine, or the least that was found where it was not among the nearest."""
    lexical: float
    """Its share of the query's words, 0..1."""


class Ranked(NamedTuple):
    """A record in its place."""

    entry: Entry
    parts: tuple[float, ...]
    """In the order of the fields of `ScoreParts`."""
    total: float

    def why(self) -> ScoreParts:
        """The parts by name."""
        named = zip(ScoreParts.model_fields, self.parts, strict=True)
        return ScoreParts(**{name: round(part, 4) for name, part in named})


def rank(
    candidates: Sequence[Candidate],
    ranking: Ranking,
    *,
    named: Sequence[str] = (),
    minimum: float = 0.0,
) -> list[Ranked]:
    """The candidates that have to do with the query, best first; then newest, then by id.

    Args:
        candidates: What may answer, and its neighbours.
        ranking: The weights.
        named: The sources that the query names; they count if it is one.
        minimum: Cosine below which meaning alone does not count.
    """
    own = [ranking.own(one) for one in candidates]
    around = Surroundings(candidates, own, ranking)
    newest = max((one.entry.created for one in candidates), default=0.0)
    asked_of = named[0] if len(named) == 1 else None
    ranked: list[Ranked] = []
    for one in candidates:
        neighbours = around.neighbours(one.entry)
        if one.dense >= minimum or one.lexical >= _TELLING or neighbours >= _TELLING:
            entry = one.entry
            parts = (
                ranking.dense * max(0.0, one.dense),
                ranking.lexical * one.lexical,
                neighbours,
                around.episode(entry),
                ranking.source if entry.source == asked_of else 0.0,
                _form(entry, ranking),
                ranking.recency * 0.5 ** ((newest - entry.created) / _DAY / ranking.half_life),
                ranking.importance * (2.0 * entry.importance - 1.0),
                0.0 if entry.trusted else -ranking.untrusted,
            )
            ranked.append(Ranked(entry, parts, round(sum(parts), 6)))
    return sorted(ranked, key=lambda one: (-one.total, -one.entry.created, one.entry.id))


class Surroundings:
    """What stands around each candidate in its episode.

    Args:
        candidates: All that is known.
        own: What each has by itself.
        ranking: The weights.
    """

    def __init__(
        self, candidates: Sequence[Candidate], own: Sequence[float], ranking: Ranking
    ) -> None:
        self._weights = tuple(enumerate(ranking.neighbours, start=1))
        self._episodes: dict[int, dict[int, float]] = {}
        for one, score in zip(candidates, own, strict=True):
            if one.entry.episode:
                places = self._episodes.setdefault(one.entry.episode, {})
                places[one.entry.place] = max(score, places.get(one.entry.place, score))
        self._usual = math.fsum(own) / len(own) if own else 0.0
        self._best = {
            episode: ranking.episode * (_best_of(scores.values()) - self._usual)
            for episode, scores in self._episodes.items()
        }

    def neighbours(self, entry: Entry) -> float:
        """What the records before and after it add, as far as they say more than usual."""
        scores = self._episodes.get(entry.episode)
        if scores is None:
            return 0.0
        usual = self._usual
        found = 0.0
        for step, weight in self._weights:
            before = scores.get(entry.place - step, usual)
            found += weight * (before + scores.get(entry.place + step, usual) - 2.0 * usual)
        return found

    def episode(self, entry: Entry) -> float:
        """What its episode as a whole adds."""
        return self._best.get(entry.episode, 0.0)


def _best_of(scores: Iterable[float]) -> float:
    best = nlargest(_BEST_OF_EPISODE, scores)
    return sum(best) / len(best)


def _form(entry: Entry, ranking: Ranking) -> float:
    much = min(1.0, math.log1p(entry.length) / _SAYS_MUCH)
    return ranking.length * much - (ranking.question if entry.asks else 0.0)
