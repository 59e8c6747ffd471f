"""Recall by meaning and by words together: how candidates are found, ranked and freed from repeats.

The form of the score, its parts and their weights were found on two conversations of LoCoMo and
measured on others (see docs/memory.md and `benchmarks/memory`). Each part is a general rule over
fields of records; where a store's records lack the field, the part is zero.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice
from typing import NamedTuple

from coag.schema import RecalledRecord, Record, ScoreParts

from .filters import Condition
from .lexical import IndexEntry, LexicalHit, Lexicon, query_words, shelf_of, without_names
from .search import DEFAULT_RANKING, Ranking, Search

# ---- The score of a record: pure rules over what is known of each ----


_DAY = 86_400.0
_SAYS_MUCH = math.log1p(32)
"""A text of 32 words or more counts as one that says much; of fewer, by their logarithm."""
_BEST_OF_EPISODE = 3
_RELEVANT = 0.15
"""Share of a query's words, or weight of neighbours, from which on a record has to do with it."""


class RankCandidate(NamedTuple):
    """A record that may answer."""

    entry: IndexEntry
    dense: float
    """Its cosine, or the least that was found where it was not among the nearest."""
    lexical: float
    """Its share of the query's words, 0..1."""


class Ranked(NamedTuple):
    """A record in its place."""

    entry: IndexEntry
    parts: tuple[float, ...]
    """In the order of the fields of `ScoreParts`."""
    total: float

    def why(self) -> ScoreParts:
        """The parts by name."""
        named = zip(ScoreParts.model_fields, self.parts, strict=True)
        return ScoreParts(**{name: round(part, 4) for name, part in named})


def rank(
    candidates: Sequence[RankCandidate],
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
    own = [_own(one, ranking) for one in candidates]
    around = _Surroundings(candidates, own, ranking)
    newest = max((one.entry.created for one in candidates), default=0.0)
    wanted_source = named[0] if len(named) == 1 else None
    ranked: list[Ranked] = []
    for one in candidates:
        neighbours = around.neighbours(one.entry)
        if one.dense >= minimum or one.lexical >= _RELEVANT or neighbours >= _RELEVANT:
            entry = one.entry
            parts = (
                ranking.dense * max(0.0, one.dense),
                ranking.lexical * one.lexical,
                neighbours,
                around.episode(entry),
                ranking.source if entry.source == wanted_source else 0.0,
                _form(entry, ranking),
                ranking.recency * 0.5 ** ((newest - entry.created) / _DAY / ranking.half_life),
                ranking.importance * (2.0 * entry.importance - 1.0),
                0.0 if entry.trusted else -ranking.untrusted,
            )
            ranked.append(Ranked(entry, parts, round(sum(parts), 6)))
    return sorted(ranked, key=lambda one: (-one.total, -one.entry.created, one.entry.id))


def _own(candidate: RankCandidate, ranking: Ranking) -> float:
    """What a record has by itself: its meaning and its words."""
    return ranking.dense * max(0.0, candidate.dense) + ranking.lexical * candidate.lexical


class _Surroundings:
    """The neighbours of each candidate in its episode.

    Args:
        candidates: All that is known.
        own: What each has by itself.
        ranking: The weights.
    """

    def __init__(
        self, candidates: Sequence[RankCandidate], own: Sequence[float], ranking: Ranking
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

    def neighbours(self, entry: IndexEntry) -> float:
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

    def episode(self, entry: IndexEntry) -> float:
        """What its episode as a whole adds."""
        return self._best.get(entry.episode, 0.0)


def _best_of(scores: Iterable[float]) -> float:
    best = nlargest(_BEST_OF_EPISODE, scores)
    return sum(best) / len(best)


def _form(entry: IndexEntry, ranking: Ranking) -> float:
    much = min(1.0, math.log1p(entry.length) / _SAYS_MUCH)
    return ranking.length * much - (ranking.question if entry.asks else 0.0)


# ---- Recall over an index of words and a search by meaning ----


_SPARE = 10
"""How many more records than k are fetched, so that ones that went or say the same leave no gap."""

Nearest = Callable[[bool], Mapping[str, float]]
"""The records nearest in meaning, with their cosines; if asked, of those that pass the filter."""

Fetch = Callable[[list[str]], Mapping[str, Record]]
"""Records by id; those that are gone are left out."""

_WORD = re.compile(r"\w+")
_NEGATIONS = frozenset(
    ("no", "not", "never", "none", "nobody", "nothing", "neither", "nor", "without", "cannot", "t")
)
"""Words that turn what is said into its contrary; `t` is what is left of "isn't"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A search as the lexicon understands it."""

    text: str
    """What to look for, without the names of sources."""
    shelves: list[str]
    named: list[str]
    """The sources that it names."""


@dataclass(frozen=True, slots=True)
class Hybrid:
    """Recall over a lexicon and a search by meaning."""

    lexicon: Lexicon

    def question(self, search: Search) -> Question:
        """What a search asks for; its text must not be blank."""
        text = search.text or ""
        shelves = self._shelves(search)
        named = self.lexicon.sources_named(shelves, query_words(text))
        unnamed = without_names(text, named)
        return Question(text=unnamed if unnamed.strip() else text, shelves=shelves, named=named)

    def ranked(
        self,
        question: Question,
        search: Search,
        condition: Condition,
        nearest: Nearest,
        minimum: float,
    ) -> list[Ranked]:
        """The records that answer a search and pass its filter, best first, some more than k.

        Args:
            question: See `question`.
            search: What was asked; it has a ranking.
            condition: What its filter asks of a record.
            nearest: The search by meaning.
            minimum: Cosine below which meaning alone does not count.
        """
        ranking = search.ranking or DEFAULT_RANKING
        words = query_words(question.text)
        least = -math.inf if search.min_score is None else search.min_score
        enough = minimum if search.min_score is None else -1.0  # the one who asks drew the line

        def proposed(dense: Mapping[str, float]) -> list[RankCandidate]:
            hits = self.lexicon.matches(words, question.shelves, ranking.pool, dense)
            return self._candidates(dense, hits, question.shelves, ranking)

        def passing(candidates: Sequence[RankCandidate]) -> list[Ranked]:
            found = rank(candidates, ranking, named=question.named, minimum=enough)
            good = (one for one in found if one.total >= least)
            fit = (one for one in good if condition.matches(one.entry.flat()))
            return list(islice(fit, search.k + _SPARE))

        dense = nearest(False)
        candidates = proposed(dense)
        best = passing(candidates)
        if len(dense) < ranking.pool:  # these are all there are
            return best
        if len(best) < search.k + _SPARE or not _are_fitting(
            search.k, candidates, dense, condition
        ):
            best = passing(proposed({**dense, **nearest(True)}))
        return best

    def _shelves(self, search: Search) -> list[str]:
        if search.scopes is None:
            return self.lexicon.shelves(search.kind)
        return [shelf_of(search.kind, scope) for scope in search.scopes]

    def _candidates(
        self,
        dense: Mapping[str, float],
        hits: Iterable[LexicalHit],
        shelves: Sequence[str],
        ranking: Ranking,
    ) -> list[RankCandidate]:
        """What may answer, with its neighbours; what is on other shelves has no influence."""
        wanted = frozenset(shelves)
        there = [hit for hit in hits if hit.entry.shelf in wanted]
        near = [dense[hit.entry.id] for hit in there if hit.entry.id in dense]
        least = min(near, default=0.0) if len(dense) >= ranking.pool else 0.0
        known = {
            hit.entry.id: RankCandidate(hit.entry, dense.get(hit.entry.id, least), hit.share)
            for hit in there
        }
        best = nlargest(ranking.centres, known.values(), key=lambda one: _own(one, ranking))
        around = self.lexicon.around((one.entry for one in best), ranking.reach)
        for one, entry in around.items():
            if one not in known:
                known[one] = RankCandidate(entry, least, 0.0)
        return list(known.values())


def _are_fitting(
    k: int, candidates: Iterable[RankCandidate], dense: Mapping[str, float], condition: Condition
) -> bool:
    """Whether k of the nearest in meaning pass a filter."""
    nearest = (one.entry for one in candidates if one.entry.id in dense)
    fitting = (entry for entry in nearest if condition.matches(entry.flat()))
    return sum(1 for _ in islice(fitting, k)) == k


def without_repeats(
    ranked: Sequence[Ranked], fetched: Fetch, k: int, alike: float
) -> tuple[list[RecalledRecord], list[str]]:
    """The first k records that are there; those that say much the same as a better one come last.

    So none of them takes the place of what says something else, and none is hidden where there is
    room. A trusted record never comes after an untrusted one for that reason. Mostly the first
    k all say something else, so no more are fetched at first.

    Args:
        ranked: Best first.
        fetched: Gives records by id.
        k: How many are wanted.
        alike: Share of words from which on two texts say much the same.

    Returns:
        The records, and the ids of those that are gone.
    """
    first: list[RecalledRecord] = []
    last: list[RecalledRecord] = []
    worded: list[_Wording] = []
    gone: list[str] = []
    for some in (ranked[:k], ranked[k:]):
        if not some or len(first) == k:
            break
        records = fetched([one.entry.id for one in some])
        for one in some:
            record = records.get(one.entry.id)
            if record is None:
                gone.append(one.entry.id)
                continue
            wording = _Wording.of(record.text, trusted=one.entry.trusted)
            score = min(1.0, max(0.0, one.total))
            hit = RecalledRecord(record=record, score=score, why=one.why())
            if any(wording.repeats(other, alike) for other in worded):
                last.append(hit)
            elif len(first) < k:
                worded.append(wording)
                first.append(hit)
    return [*first, *last][:k], gone


@dataclass(frozen=True, slots=True)
class _Wording:
    """What a text says, for comparing."""

    words: Sequence[str]
    different: frozenset[str]
    trusted: bool

    @classmethod
    def of(cls, text: str, *, trusted: bool) -> _Wording:
        words = _WORD.findall(text.casefold())
        return cls(words, frozenset(words), trusted)

    def repeats(self, better: _Wording, alike: float) -> bool:
        """Whether it shares most words with a better one, in one order, numbers and "not" too."""
        if self.trusted and not better.trusted:
            return False
        one, two = self.different, better.different
        if min(len(one), len(two)) < alike * max(len(one), len(two)):
            return False
        both = one & two
        if not both or len(both) < alike * len(one | two):
            return False
        if any(word in _NEGATIONS or not word.isalpha() for word in one ^ two):
            return False
        shared = [[word for word in words if word in both] for words in (self.words, better.words)]
        return shared[0] == shared[1]
