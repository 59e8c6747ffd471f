"""Records that hold at the same time and say otherwise, shown together."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from coag.schema import RecalledRecord, Record
from coag.store import RecordStore

Pairs = tuple[tuple[str, str], ...]


async def with_contradictions(
    store: RecordStore,
    scopes: Container[str],
    hits: Sequence[RecalledRecord],
    holds: Callable[[Record], bool],
) -> tuple[tuple[RecalledRecord, ...], Pairs]:
    """What was recalled, behind each record those that say otherwise, and which these are.

    A record that was not recalled itself comes with the score of the one that it contradicts.
    One that is superseded, gone or another scope's contradicts nothing any more; nor does one
    that does not hold yet, or no longer.

    Args:
        store: Where they rest.
        scopes: Whose records may be shown.
        hits: What was recalled.
        holds: Whether what a record says holds now.

    Raises:
        RecordStoreError: If the store cannot be reached.
    """
    here = {hit.record.id: hit for hit in hits}
    wanted = {name for hit in hits for name in hit.record.lineage.contradicts} - here.keys()
    if not wanted and not any(hit.record.lineage.contradicts for hit in hits):
        return tuple(hits), ()
    fetched = {record.id: record for record in await store.get(sorted(wanted))}
    shown: list[RecalledRecord] = []
    placed: set[str] = set()
    pairs: dict[frozenset[str], tuple[str, str]] = {}
    for hit in hits:
        shown.append(hit)
        for name in hit.record.lineage.contradicts:
            other = here[name].record if name in here else fetched.get(name)
            if other is None or other.superseded_by is not None:
                continue
            if not holds(other):
                continue
            if other.scope != hit.record.scope or other.scope not in scopes:
                continue
            pairs.setdefault(frozenset((hit.record.id, name)), (hit.record.id, name))
            if name in fetched and name not in placed:
                placed.add(name)
                shown.append(RecalledRecord(record=other, score=hit.score))
    return tuple(shown), tuple(pairs.values())
