"""Recall by meaning and by words together: one way for every store that has both."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice

from coag.schema import RecalledRecord, Record

from .lexicon import LexicalHit, Lexicon, query_words, shelf_of, without_names
from .search import DEFAULT_RANKING, Candidate, Condition, Ranked, Ranking, Search, rank

SPARE = 10
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
        asked = without_names(text, named)
        return Question(text=asked if asked.strip() else text, shelves=shelves, named=named)

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
        telling = minimum if search.min_score is None else -1.0  # the one who asks drew the line

        def proposed(dense: Mapping[str, float]) -> list[Candidate]:
            hits = self.lexicon.matches(words, question.shelves, ranking.pool, dense)
            return self._candidates(dense, hits, question.shelves, ranking)

        def passing(candidates: Sequence[Candidate]) -> list[Ranked]:
            found = rank(candidates, ranking, named=question.named, minimum=telling)
            good = (one for one in found if one.total >= least)
            fit = (one for one in good if condition.matches(one.entry.flat()))
            return list(islice(fit, search.k + SPARE))

        dense = nearest(False)
        candidates = proposed(dense)
        best = passing(candidates)
        if len(dense) < ranking.pool:  # these are all there are
            return best
        if len(best) < search.k + SPARE or not _are_fitting(search.k, candidates, dense, condition):
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
    ) -> list[Candidate]:
        """What may answer, with its neighbours; what is on other shelves has no say in it."""
        asked = frozenset(shelves)
        there = [hit for hit in hits if hit.entry.shelf in asked]
        near = [dense[hit.entry.id] for hit in there if hit.entry.id in dense]
        least = min(near, default=0.0) if len(dense) >= ranking.pool else 0.0
        known = {
            hit.entry.id: Candidate(hit.entry, dense.get(hit.entry.id, least), hit.share)
            for hit in there
        }
        best = nlargest(ranking.centres, known.values(), key=ranking.own)
        around = self.lexicon.around((one.entry for one in best), ranking.reach)
        for one, entry in around.items():
            if one not in known:
                known[one] = Candidate(entry, least, 0.0)
        return list(known.values())


def _are_fitting(
    k: int, candidates: Iterable[Candidate], dense: Mapping[str, float], condition: Condition
) -> bool:
    """Whether k of the nearest in meaning pass a filter."""
    nearest = (one.entry for one in candidates if one.entry.id in dense)
    fitting = (entry for entry in nearest if condition.matches(entry.flat()))
    return sum(1 for _ in islice(fitting, k)) == k


def told_apart(
    ranked: Sequence[Ranked], fetched: Fetch, k: int, alike: float
) -> tuple[list[RecalledRecord], list[str]]:
    """The first k records that are there; those that say much the same as a better one come last.

    So none of them takes the place of what says something else, and none is hidden where there is
    room. A trusted record never stands back behind one that is not. Mostly the first k are told
    apart, so no more are fetched at first.

    Args:
        ranked: Best first.
        fetched: Gives records by id.
        k: How many are wanted.
        alike: Share of words from which on two texts say much the same.

    Returns:
        The records, and the ids of those that are gone.
    """
    kept: list[RecalledRecord] = []
    behind: list[RecalledRecord] = []
    said: list[_Saying] = []
    gone: list[str] = []
    for some in (ranked[:k], ranked[k:]):
        if not some or len(kept) == k:
            break
        records = fetched([one.entry.id for one in some])
        for one in some:
            record = records.get(one.entry.id)
            if record is None:
                gone.append(one.entry.id)
                continue
            saying = _Saying.of(record.text, trusted=one.entry.trusted)
            score = min(1.0, max(0.0, one.total))
            hit = RecalledRecord(record=record, score=score, why=one.why())
            if any(saying.says_much_the_same(other, alike) for other in said):
                behind.append(hit)
            elif len(kept) < k:
                said.append(saying)
                kept.append(hit)
    return [*kept, *behind][:k], gone


@dataclass(frozen=True, slots=True)
class _Saying:
    """What a text says, for comparing."""

    words: Sequence[str]
    different: frozenset[str]
    trusted: bool

    @classmethod
    def of(cls, text: str, *, trusted: bool) -> _Saying:
        words = _WORD.findall(text.casefold())
        return cls(words, frozenset(words), trusted)

    def says_much_the_same(self, better: _Saying, alike: float) -> bool:
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
