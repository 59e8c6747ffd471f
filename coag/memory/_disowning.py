"""Taking back what one source stated, where others stated the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coag.schema import Record
from coag.store import RecordStore

from ._healing import Link, links_of
from ._lineage import (
    at_least,
    contradicting,
    derived_levels,
    lowest,
    origins,
    trust_of,
    trusted_at_most,
    without_source,
)
from ._locking import lock_of
from ._long_term import LongTermMemory
from ._naming import full_id
from ._procedural import ProceduralMemory
from ._revoking import Revocation
from ._stretches import begin_of, bounded, end_of, holding_again


async def revoke_origin(
    memory: LongTermMemory,
    name: str,
    source: str,
    reason: str,
    *,
    procedures: ProceduralMemory | None = None,
) -> Revocation:
    """Takes back that a source stated what a record says; what nobody else stated is revoked.

    The record is trusted as those who are left, and what was concluded from it no more than that.
    What these records had superseded, and is trusted more than they are now, holds again beside
    them. It reads the whole scope once.

    Args:
        memory: It writes the record's scope.
        name: Id or unique short id of the record.
        source: Whose word is taken back (`Provenance.source`), in whatever run it was said.
        reason: Why, in one sentence.
        procedures: The memory of procedures that rest on the record, if it is revoked whole.

    Raises:
        ValueError: If the reason is empty, the source is none of the record's, or the name is no
            id of a record that may be written.
        RecordStoreError: If the store or the file of procedures cannot be reached.
    """
    if not reason.strip():
        raise ValueError("The reason is empty; say why the word is taken back.")
    store, scopes = memory.store, memory.scopes.writable
    async with lock_of(store):
        name = await full_id(store, scopes, name)
        record = next(iter(await store.get([name])), None)
        if record is None or record.scope not in scopes:
            raise ValueError(f"There is no record {name!r} in {' or '.join(map(repr, scopes))}.")
        sources = list(dict.fromkeys(one.source for one in origins(record)))
        if source not in sources:
            raise ValueError(f"Record {name!r} stems from {sources}, not from {source!r}.")
        left = without_source(record, source)
        if left is not None:
            changed, restored = await _less_trusted(store, scopes, left)
            await store.update(list(changed.values()))
            return Revocation(
                record_id=name,
                reason=reason,
                at=memory.clock.now(),
                restored=tuple(restored),
                cleared=tuple(one for one in changed if one not in restored),
            )
    return await memory.revoke(name, reason, procedures=procedures)


async def _less_trusted(
    store: RecordStore, scopes: Sequence[str], root: Record
) -> tuple[dict[str, Record], list[str]]:
    """All that changes as a record has fewer origins, and what holds again, by id."""
    links = await links_of(store, scopes)
    levels = derived_levels(root.id, {one: link.derived_from for one, link in links.items()})
    after = {root.id: root}
    for level in levels[1:]:
        for record in await store.get(level):
            lost = [name for name in record.lineage.derived_from if name not in after]
            held = {one.id: one for one in await store.get(lost)} | after
            trusts = [trust_of(held[one]) for one in record.lineage.derived_from if one in held]
            lowered = trusted_at_most(record, lowest(trusts[0], trusts))
            if lowered != record:
                after[record.id] = lowered
    restored: list[str] = []
    for name in list(after):
        olds = [one for one, link in links.items() if link.superseded_by == name]
        for old in await store.get(olds):
            record = after[name]
            if not at_least(trust_of(record), trust_of(old)):
                after |= _apart(record, after.get(old.id, old), links)
                restored += [old.id] if after[old.id].superseded_by is None else []
    return after, restored


def _apart(record: Record, old: Record, links: Mapping[str, Link]) -> dict[str, Record]:
    """A record and what it may no longer supersede, side by side, by id."""
    heir = record.superseded_by
    if end_of(old) == begin_of(record):
        old = holding_again(old)
        old = bounded(old, links[heir].begin) if heir is not None and heir in links else old
    old = old.model_copy(update={"superseded_by": heir})
    if record.supersedes == old.id:
        record = record.model_copy(update={"supersedes": None})
    if heir is None:
        old, record = contradicting(old, [record.id]), contradicting(record, [old.id])
    return {record.id: record, old.id: old}
