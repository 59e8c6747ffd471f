"""Taking back a record with all that was concluded from it, and the chains it stood in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from coag.schema import Record, Written
from coag.store import RecordStore

from ._healing import healed, links_of
from ._lineage import derived_levels
from ._naming import full_id
from ._procedural import ProceduralMemory
from ._procedure import ProcedureVersion
from ._records import StoredRecords
from ._stretches import end_of
from ._undoing import Undone

_BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation:
    """What was taken back with a record."""

    record_id: str
    """The record that was named; empty where all that a source had stated was taken back."""
    reason: str
    at: datetime
    records: tuple[str, ...] = ()
    """Ids of the records that were removed: it and what was concluded from it."""
    source: str | None = None
    """Whose word was taken back, if not everybody's."""
    lowered: tuple[str, ...] = ()
    """Records that others state too and that stay, and what was concluded from them: without that
    source's word, and trusted no more than what is left."""
    restored: tuple[str, ...] = ()
    """Records that they had superseded and that hold again."""
    cleared: tuple[str, ...] = ()
    """Records that no longer name them, as what says otherwise or in a chain."""
    procedures: tuple[tuple[str, ProcedureVersion], ...] = ()
    """Procedures that were rolled back, with the version that now holds."""
    dropped: tuple[str, ...] = ()
    """Ids of waiting rewrites that were dropped."""

    def written(self, cycle: int = 0) -> tuple[Written, ...]:
        """The lines of the trace that say so: what was revoked, then each procedure's version.

        Args:
            cycle: The agent's cycle, 0 outside of one.
        """
        versions = {name: version.version for name, version in self.procedures}
        word = {} if self.source is None else {"source": self.source, "lowered": list(self.lowered)}
        line = Written(
            at=self.at,
            cycle=cycle,
            what="revoked",
            id=self.record_id,
            content={
                "reason": self.reason,
                "records": list(self.records),
                "restored": list(self.restored),
                "cleared": list(self.cleared),
                "procedures": versions,
                "dropped": list(self.dropped),
                **word,
            },
        )
        return (line, *(version.written(name) for name, version in self.procedures))


async def revoked(
    store: RecordStore,
    scopes: Sequence[str],
    name: str,
    reason: str,
    *,
    at: datetime,
    procedures: ProceduralMemory | None,
) -> Revocation:
    """Takes back a record and all that rests on it, those that rest on others first.

    So the record itself goes last, and whoever repeats it finds what is left to do.

    Args:
        store: Where they rest.
        scopes: Whose records may be changed; what others concluded stays.
        name: Id of the record.
        reason: Why.
        at: Now.
        procedures: The memory of procedures that may rest on it.

    Raises:
        ValueError: If the reason is empty, the name is no id or short id, or the record is
            another scope's.
        RecordStoreError: If something cannot be reached or written.
    """
    if not reason.strip():
        raise ValueError("The reason is empty; say why the record is revoked.")
    name = await full_id(store, scopes, name)
    await _own(store, scopes, name)
    return await taken_back(store, scopes, [name], reason, at=at, procedures=procedures)


async def taken_back(
    store: RecordStore,
    scopes: Sequence[str],
    roots: Sequence[str],
    reason: str,
    *,
    at: datetime,
    procedures: ProceduralMemory | None,
) -> Revocation:
    """Takes back records by their whole ids, with all that rests on them; see `revoked`."""
    links = await links_of(store, scopes)
    levels = derived_levels(roots, {one: link.derived_from for one, link in links.items()})
    gone = {one for level in levels for one in level}
    undone = Undone() if procedures is None else procedures.revoke(gone, reason=reason)
    changed, restored = await healed(store, links, gone)
    if changed:
        await store.update(changed)
    removed: list[str] = []
    for level in reversed(levels):
        for start in range(0, len(level), _BATCH):
            removed += await store.delete(level[start : start + _BATCH])
    return Revocation(
        record_id=roots[0] if len(roots) == 1 else "",
        reason=reason,
        at=at,
        records=tuple(reversed(removed)),
        restored=tuple(restored),
        cleared=tuple(record.id for record in changed if record.id not in restored),
        procedures=undone.versions,
        dropped=tuple(waiting.id for waiting in undone.dropped),
    )


async def forgotten(store: RecordStore, scopes: Sequence[str], name: str) -> bool:
    """Removes one record; what stood before and behind it in its chain now meet.

    What it alone had superseded holds again.

    Raises:
        ValueError: If the record is another scope's.
        RecordStoreError: If something cannot be reached or written.
    """
    name = await full_id(store, scopes, name)
    record = await _own(store, scopes, name)
    if record is None:
        return False
    links = await links_of(store, [record.scope])
    changed, _ = await healed(store, links, {name})
    if changed:
        await store.update(changed)
    return bool(await store.delete([name]))


async def chain_of(store: RecordStore, scopes: Sequence[str], name: str) -> tuple[Record, ...]:
    """What a record superseded and what superseded it or is to, oldest first, each once."""
    name = await full_id(store, scopes, name)
    start = next(iter(await store.get([name])), None)
    if start is None or start.scope not in scopes:
        return ()
    chain, seen = [start], {start.id}
    for step in (_next, _previous):
        last = start
        while (found := await step(store, last)) is not None:
            if found.id in seen or found.scope != start.scope:
                break
            seen.add(found.id)
            last = found
            chain = [*chain, found] if step is _next else [found, *chain]
    return tuple(chain)


async def _previous(store: RecordStore, record: Record) -> Record | None:
    """What a record superseded or is to supersede."""
    return next(iter(await store.get([record.supersedes or ""])), None)


async def _next(store: RecordStore, record: Record) -> Record | None:
    """What superseded a record, or is to when its time comes."""
    if record.superseded_by is not None or end_of(record) is None:
        return next(iter(await store.get([record.superseded_by or ""])), None)
    others = await StoredRecords(store).all_on_matter(record)
    return next((one for one in others if one.supersedes == record.id), None)


async def _own(store: RecordStore, scopes: Sequence[str], name: str) -> Record | None:
    record = next(iter(await store.get([name])), None)
    if record is not None and record.scope not in scopes:
        own = " or ".join(map(repr, scopes))
        raise ValueError(f"Record {name!r} is of another scope, not of {own}.")
    return record
