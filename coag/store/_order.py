"""The one order in which records come back, the same from every store and every source."""

from __future__ import annotations

from collections.abc import Iterable

from coag.schema import RecalledRecord, Record


def ranked(hits: Iterable[RecalledRecord], k: int) -> list[RecalledRecord]:
    """The k best: by score, then newest first, then by id."""
    return sorted(hits, key=_place)[:k]


def listed(records: Iterable[Record], k: int) -> list[RecalledRecord]:
    """The k newest, each with score 1."""
    return ranked((RecalledRecord(record=record, score=1.0) for record in records), k)


def best_with_ties(best_first: Iterable[RecalledRecord], k: int) -> list[RecalledRecord]:
    """The first k of hits that come best first, and those that tie with the last of them."""
    kept: list[RecalledRecord] = []
    for hit in best_first:
        if len(kept) >= k and hit.score < kept[-1].score:
            break
        kept.append(hit)
    return kept


def _place(hit: RecalledRecord) -> tuple[float, float, str]:
    return (-hit.score, -hit.record.created_at.timestamp(), hit.record.id)
