"""Recall by meaning and by words together: how candidates are found, ranked and freed from repeats.

The form of the score, its parts and their weights were found on two conversations of LoCoMo and
measured on others (see `benchmarks/README.md`). Each part is a general rule over
fields of records; where a store's records lack the field, the part is zero.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice
from statistics import fmean
from typing import NamedTuple

from coag.schema import MemoryKind, RecalledRecord, Record, ScoreParts

from .filters import EVERYTHING, Condition
from .lexical import IndexEntry, LexicalHit, Lexicon, query_words, shelf_of, without_names
from .search import DEFAULT_RANKING, Ranking, Search

# ---- The score of a record: pure rules over what is known of each ----


_DAY = 86_400.0
_SAYS_MUCH = math.log1p(32)
"""A text of 32 words or more counts as one that says much; of fewer, by their logarithm."""
_BEST_OF_EPISODE = 3
_RELEVANT = 0.15
"""Share of a query's words, or weight of neighbours, from which on a record is related to it."""


class RankCandidate(NamedTuple):
    """A record that may answer."""

    entry: IndexEntry
    dense: float
    """Its cosine, or the least that was found where it was not among the nearest."""
    lexical: float
    """Its share of the query's words, 0..1."""


_PARTS = (
    *("dense", "lexical", "neighbours", "episode", "source", "form", "recency", "importance"),
    "trust",
)
"""The parts of a score that a store knows, in the order in which `rank` computes them."""


class Ranked(NamedTuple):
    """A record in its place."""

    entry: IndexEntry
    parts: tuple[float, ...]
    """As `_PARTS` names them."""
    total: float

    def why(self) -> ScoreParts:
        """The parts by name."""
        named = zip(_PARTS, self.parts, strict=True)
        return ScoreParts(**{name: round(part, 4) for name, part in named})


def rank(
    candidates: Sequence[RankCandidate],
    ranking: Ranking,
    *,
    named: Sequence[str] = (),
    minimum: float = 0.0,
) -> list[Ranked]:
    """The candidates that are related to the query, best first; then newest, then by id.

    Args:
        candidates: What may answer, and its neighbours.
        ranking: The weights.
        named: The sources that the query names; they count if it is one.
        minimum: Cosine below which meaning alone does not count.
    """
    if not candidates:
        return []
    own = [_own(one, ranking) for one in candidates]
    usual = math.fsum(own) / len(own)
    episodes: dict[int, dict[int, float]] = {}
    for (entry, _, _), score in zip(candidates, own, strict=True):
        if entry.episode:
            places = episodes.setdefault(entry.episode, {})
            places[entry.place] = max(score, places.get(entry.place, score))
    best_of = {
        episode: ranking.episode * (fmean(nlargest(_BEST_OF_EPISODE, places.values())) - usual)
        for episode, places in episodes.items()
    }
    newest = max(one.entry.created for one in candidates)
    wanted_source = named[0] if len(named) == 1 else None
    ranked: list[Ranked] = []
    for entry, dense, lexical in candidates:
        neighbours = _neighbours(entry, episodes.get(entry.episode), usual, ranking)
        if dense >= minimum or lexical >= _RELEVANT or neighbours >= _RELEVANT:
            much = min(1.0, math.log1p(entry.length) / _SAYS_MUCH)
            parts = (
                ranking.dense * max(0.0, dense),
                ranking.lexical * lexical,
                neighbours,
                best_of.get(entry.episode, 0.0),
                ranking.source if entry.source == wanted_source else 0.0,
                ranking.length * much - (ranking.question if entry.asks else 0.0),
                ranking.recency * 0.5 ** ((newest - entry.created) / _DAY / ranking.half_life),
                ranking.importance * (2.0 * entry.importance - 1.0),
                0.0 if entry.trusted else -ranking.untrusted,
            )
            ranked.append(Ranked(entry, parts, round(sum(parts), 6)))
    return sorted(ranked, key=lambda one: (-one.total, -one.entry.created, one.entry.id))


def _own(candidate: RankCandidate, ranking: Ranking) -> float:
    """What a record has by itself: its meaning and its words."""
    return ranking.dense * max(0.0, candidate.dense) + ranking.lexical * candidate.lexical


def _neighbours(
    entry: IndexEntry, scores: Mapping[int, float] | None, usual: float, ranking: Ranking
) -> float:
    """What the records before and after it add, as far as they say more than usual."""
    found = 0.0
    if scores is None:
        return found
    for step, weight in enumerate(ranking.neighbours, start=1):
        before = scores.get(entry.place - step, usual)
        found += weight * (before + scores.get(entry.place + step, usual) - 2.0 * usual)
    return found


# ---- Recall over an index of words and a search by meaning ----


_SPARE = 10
"""How many more records than k are fetched, so that ones that went or say the same leave no gap."""

Nearest = Callable[[MemoryKind, str, int, Condition], Mapping[str, float]]
"""The records nearest in meaning to a text that pass a filter, so many, with their cosines."""


def hybrid_hits(
    lexicon: Lexicon, search: Search, condition: Condition, nearest: Nearest, minimum: float
) -> list[Ranked]:
    """The records that answer a search and pass its filter, best first, some more than k.

    Args:
        lexicon: The index of words.
        search: What was asked; its text must not be blank.
        condition: What its filter asks of a record.
        nearest: The search by meaning.
        minimum: Cosine below which meaning alone does not count.
    """
    kind, ranking, text = search.kind, search.ranking or DEFAULT_RANKING, search.text or ""
    if search.scopes is None:
        shelves = lexicon.shelves(kind)
    else:
        shelves = [shelf_of(kind, scope) for scope in search.scopes]
    named = lexicon.sources_named(shelves, query_words(text))
    unnamed = without_names(text, named)
    text = unnamed if unnamed.strip() else text
    words = query_words(text)
    least = -math.inf if search.min_score is None else search.min_score
    enough = minimum if search.min_score is None else -1.0  # the one who asks drew the line

    def answers(dense: Mapping[str, float]) -> tuple[list[RankCandidate], list[Ranked]]:
        hits = lexicon.matches(words, shelves, ranking.pool, dense)
        candidates = _candidates(lexicon, dense, hits, shelves, ranking)
        found = rank(candidates, ranking, named=named, minimum=enough)
        good = (one for one in found if one.total >= least)
        fit = (one for one in good if condition.matches(one.entry.flat()))
        return candidates, list(islice(fit, search.k + _SPARE))

    dense = nearest(kind, text, ranking.pool, EVERYTHING)
    candidates, best = answers(dense)
    if len(dense) < ranking.pool:  # these are all there are
        return best
    near = (one.entry for one in candidates if one.entry.id in dense)
    fitting = islice((entry for entry in near if condition.matches(entry.flat())), search.k)
    if len(best) < search.k + _SPARE or sum(1 for _ in fitting) < search.k:
        _, best = answers({**dense, **nearest(kind, text, ranking.pool, condition)})
    return best


def _candidates(
    lexicon: Lexicon,
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
    around = lexicon.around((one.entry for one in best), len(ranking.neighbours))
    for one, entry in around.items():
        known.setdefault(one, RankCandidate(entry, least, 0.0))
    return list(known.values())


# ---- Repeats: a text that says much the same as a better one comes last ----


_WORD = re.compile(r"\w+")
_NEGATIONS = frozenset(
    ("no", "not", "never", "none", "nobody", "nothing", "neither", "nor", "without", "cannot", "t")
)
"""Words that negate a statement; `t` is what is left of "isn't"."""


def without_repeats(
    ranked: Sequence[Ranked],
    fetched: Callable[[list[str]], Mapping[str, Record]],
    k: int,
    alike: float,
) -> tuple[list[RecalledRecord], list[str]]:
    """The first k records that are there, and the ids of those that are gone; repeats come last.

    So none of them takes the place of what says something else, and none is hidden where there is
    room. A trusted record never comes after an untrusted one for that reason. Mostly the first
    k all say something else, so no more are fetched at first. `alike` is the share of words from
    which on two texts say much the same.
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
            words = _WORD.findall(record.text.casefold())
            wording = _Wording(words, frozenset(words), one.entry.trusted)
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
