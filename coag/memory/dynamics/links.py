"""Hebbian links: records that are recalled together are tied, and later lead to each other.

What fires together is wired together (Hebb 1949, "The Organization of Behavior"): each two of the
best records of a recall are tied, a little more each time. At sleep links weaken, and the weakest
go. A recall follows them by spreading activation (Collins and Loftus 1975), with the fan effect of
`coag.memory.network`: a record shares what reached it out among those it is tied to. A record is
activated once, so activation never runs back to where it came from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import permutations

from coag.schema import RecalledRecord, Record, ScoreParts
from coag.store import (
    LinkSource,
    Ranking,
    RecordStore,
    Search,
    condition_of,
    flat_fields,
    query_words,
    ranked,
)

from .file import DynamicsFile
from .settings import Links
from .vectors import RecordVectors

_TABLE = """
CREATE TABLE IF NOT EXISTS links (
  record TEXT NOT NULL, owner TEXT NOT NULL, other TEXT NOT NULL, weight REAL NOT NULL,
  PRIMARY KEY (record, owner, other)
) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS untie AFTER DELETE ON links BEGIN
  DELETE FROM links WHERE record = old.other AND owner = old.owner AND other = old.record;
END;
DROP INDEX IF EXISTS links_back;
DELETE FROM record_columns WHERE name = 'links.other'
"""
"""A pair is two rows; when one goes, so does the other. Older files had an index for that."""
_LEARNED = """
INSERT INTO links (record, owner, other, weight) VALUES (?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET weight = MIN(1.0, weight + excluded.weight)
"""
_LEAST_ACTIVATION = 1e-3
"""A record with less activates no others."""


class RecordLinks:
    """The links of one owner: pairs of records with a weight, 0..1, the same from both ends."""

    def __init__(self, file: DynamicsFile, owner: str, settings: Links | None = None) -> None:
        self.file = file
        self.owner = owner
        self.settings = settings or Links()
        file.create(_TABLE, records=("links.record",))

    def learned(self, records: Collection[str]) -> None:
        """Ties each two of these records a little more.

        A record that has too many links loses its weakest, though none of these.
        """
        together, rate = sorted({*records}), self.settings.rate
        pairs = permutations(together, 2)
        with self.file.transaction():
            self.file.write(_LEARNED, ((one, self.owner, other, rate) for one, other in pairs))
            too_many = (
                "SELECT record FROM links WHERE owner = ? AND record IN ({}) "
                f"GROUP BY record HAVING COUNT(*) > {self.settings.bound}"
            )
            for row in self.file.rows_of(too_many, together, self.owner):
                self._bound(row["record"], [one for one in together if one != row["record"]])

    def _bound(self, record: str, kept: Collection[str]) -> None:
        tied = self.neighbours([record]).get(record, {})
        spare = len(tied) - max(self.settings.bound, len(kept))
        if spare > 0:
            old = [one for one in tied if one not in kept]
            weakest = nsmallest(spare, old, key=lambda one: (tied[one], one))
            self.file.write(
                "DELETE FROM links WHERE record = ? AND owner = ? AND other = ?",
                [(record, self.owner, one) for one in weakest],
            )

    def neighbours(self, ids: Collection[str]) -> dict[str, dict[str, float]]:
        """What each of these records is tied to, with the weights; those without are left out."""
        found: dict[str, dict[str, float]] = {}
        query = "SELECT record, other, weight FROM links WHERE owner = ? AND record IN ({})"
        for row in self.file.rows_of(query, sorted(ids), self.owner):
            found.setdefault(row["record"], {})[row["other"]] = row["weight"]
        return found

    def scan(self, *, batch: int = 500) -> Iterator[list[tuple[str, str, float]]]:
        """Each pair once with its weight, in the order of the ids, some at a time."""
        query = (
            "SELECT record, other, weight FROM links WHERE owner = ? AND record < other "
            "AND (record, other) > (?, ?) ORDER BY record, other LIMIT ?"
        )
        last = ("", "")
        while rows := self.file.rows(query, self.owner, *last, batch):
            yield [tuple(row) for row in rows]
            last = (rows[-1]["record"], rows[-1]["other"])

    def put(self, pairs: Iterable[tuple[str, str, float]]) -> None:
        """Ties pairs by so much, in place of what tied them."""
        both = [(self.owner, *ends, w) for a, b, w in pairs for ends in ((a, b), (b, a))]
        self.file.write(
            "INSERT OR REPLACE INTO links (owner, record, other, weight) VALUES (?, ?, ?, ?)", both
        )

    def drop(self, ids: Iterable[str]) -> None:
        """Unties records that faded."""
        rows = [(one, self.owner) for one in ids]
        self.file.write("DELETE FROM links WHERE record = ? AND owner = ?", rows)

    def decay(self) -> int:
        """Weakens every link, as sleep does, and says how many pairs went: once for each sleep."""
        with self.file.transaction() as db:
            db.execute(
                "UPDATE links SET weight = weight * ? WHERE owner = ?",
                (self.settings.decay, self.owner),
            )
            gone = db.execute(
                "DELETE FROM links WHERE owner = ? AND weight < ? AND record < other",
                (self.owner, self.settings.floor),
            )
            return gone.rowcount

    def check(self) -> None:
        """Reads one, to see whether they can be read."""
        self.file.rows("SELECT 1 FROM links LIMIT 1")

    def count(self) -> int:
        """How many pairs are tied."""
        query = "SELECT COUNT(*) AS n FROM links WHERE owner = ?"
        return int(self.file.rows(query, self.owner)[0]["n"]) // 2


# ---- Spreading activation over links ----


def passed_on(
    firing: Mapping[str, float],
    links: Mapping[str, Mapping[str, float]],
    reached: Collection[str],
) -> dict[str, float]:
    """What records give those that they are tied to, but none of those reached before.

    Each gives its activation times the weight of the link; one whose weights sum to more than 1
    shares its activation out, so that no more leaves it than it has.
    """
    given: dict[str, float] = defaultdict(float)
    for one in sorted(firing):
        tied = links.get(one, {})
        whole = max(1.0, sum(tied.values()))
        for other in sorted(tied):
            if other not in reached and other not in firing:
                given[other] += firing[one] * tied[other] / whole
    return dict(given)


def spread(
    seeds: Mapping[str, float], links: LinkSource, *, steps: int = 2, decay: float = 0.5
) -> dict[str, float]:
    """The activation, 0..1, of every record that links reach from some, without these.

    Args:
        seeds: Records with their activation.
        links: What ties records.
        steps: How many links deep it goes.
        decay: What is left of the activation behind each link after the first.
    """
    reached: dict[str, float] = {}
    firing = dict(seeds)
    for _ in range(steps):
        known = {**seeds, **reached}
        strong = {one: a for one, a in firing.items() if a >= _LEAST_ACTIVATION}
        given = passed_on(strong, links.neighbours(strong), known) if strong else {}
        reached |= {one: min(1.0, activation) for one, activation in given.items()}
        firing = {one: decay * activation for one, activation in given.items()}
    return reached


# ---- What links add to a recall ----


async def with_linked(
    hits: Sequence[RecalledRecord],
    search: Search,
    store: RecordStore,
    links: RecordLinks,
    vectors: RecordVectors | None = None,
) -> list[RecalledRecord]:
    """The hits of a search, with what links add to their scores, and what only links find.

    Activation begins at the best hits, each by its score in proportion to the best one. A record
    that the search did not find comes in where its activation is high enough; the filter, the
    scopes and the kind of the search hold for it, too.
    """
    settings = links.settings
    if not hits or hits[0].score <= 0.0:
        return list(hits)
    seeds = {hit.record.id: hit.score / hits[0].score for hit in hits[: settings.most]}
    active = spread(seeds, links, steps=settings.steps)
    if not active:
        return list(hits)
    found = {hit.record.id for hit in hits}
    further = [one for one in active if one not in found and active[one] >= settings.least]
    best = nsmallest(settings.most, further, key=lambda one: (-active[one], one))
    further_hits = await _fetched(best, search, store, vectors or RecordVectors())
    if len(hits) >= search.k:  # a better one would have been found
        further_hits = [_at_most(hits[-1].score, hit) for hit in further_hits]
    all_hits = [*hits, *further_hits]
    raised = [_linked(hit, settings.weight * active.get(hit.record.id, 0.0)) for hit in all_hits]
    good = (hit for hit in raised if hit.score >= (search.min_score or 0.0))
    return ranked(good, search.k)


async def _fetched(
    ids: Collection[str], search: Search, store: RecordStore, vectors: RecordVectors
) -> list[RecalledRecord]:
    """These records as far as the search's filter lets them, with scores of their own.

    A score is made of what the record has by itself: its meaning and its words. Another search
    would take as long as the first one.
    """
    if not ids:
        return []
    condition = condition_of(search)
    wanted = [
        one
        for one in await store.get(list(ids))
        if one.kind is search.kind and condition.matches(flat_fields(one))
    ]
    cosines = await vectors.cosines(search.text or "", wanted, store)
    words = query_words(search.text or "")
    return [_scored(one, cosines.get(one.id, 0.0), words, search.ranking) for one in wanted]


def _scored(
    record: Record, cosine: float, words: Collection[str], ranking: Ranking | None
) -> RecalledRecord:
    if ranking is None:
        return RecalledRecord(record=record, score=cosine)
    there = frozenset(query_words(record.text))
    share = sum(word in there for word in words) / max(1, len(words))
    why = ScoreParts(dense=round(ranking.dense * cosine, 4), lexical=ranking.lexical * share)
    return RecalledRecord(record=record, score=min(1.0, why.dense + why.lexical), why=why)


def _at_most(score: float, hit: RecalledRecord) -> RecalledRecord:
    if hit.score <= score:
        return hit
    why = hit.why and hit.why.model_copy(update={"form": round(score - hit.score, 4)})
    return hit.model_copy(update={"score": score, "why": why})


def _linked(hit: RecalledRecord, more: float) -> RecalledRecord:
    return hit if more <= 0.0 else scored_anew(hit, more, links=round(more, 4))


def scored_anew(hit: RecalledRecord, more: float, **parts: float) -> RecalledRecord:
    """A hit with so much more, or less, of a score of 0..1, and the parts that say why."""
    why = hit.why or ScoreParts(dense=hit.score)
    score = min(1.0, max(0.0, hit.score + more))
    return RecalledRecord(record=hit.record, score=score, why=why.model_copy(update=parts))
