"""Taking back a record with all that was concluded from it, and the chains it stood in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from coag.schema import Record, Written
from coag.store import RecordStore

from ._facts import begin_of, holding_again, one_matter, parted
from ._lineage import derived_levels, with_lineage
from ._naming import full_id
from ._procedural import ProceduralMemory
from ._procedure import ProcedureVersion
from ._records import StoredRecords
from ._undoing import Undone

_BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation:
    """What was taken back with a record."""

    record_id: str
    reason: str
    at: datetime
    records: tuple[str, ...] = ()
    """Ids of the records that were removed: it and what was concluded from it."""
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
    links = await _links(store, scopes)
    levels = derived_levels(name, {one: link.derived_from for one, link in links.items()})
    gone = {one for level in levels for one in level}
    undone = Undone() if procedures is None else procedures.revoke(gone, reason=reason)
    changed, restored = await _healed(store, links, gone)
    if changed:
        await store.update(changed)
    removed: list[str] = []
    for level in reversed(levels):
        for start in range(0, len(level), _BATCH):
            removed += await store.delete(level[start : start + _BATCH])
    return Revocation(
        record_id=name,
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
    links = await _links(store, [record.scope])
    changed, _ = await _healed(store, links, {name})
    if changed:
        await store.update(changed)
    return bool(await store.delete([name]))


async def chain_of(store: RecordStore, scopes: Sequence[str], name: str) -> tuple[Record, ...]:
    """What a record superseded and what superseded it, oldest first, each once."""
    name = await full_id(store, scopes, name)
    start = next(iter(await store.get([name])), None)
    if start is None or start.scope not in scopes:
        return ()
    chain, seen = [start], {start.id}
    for attribute in ("superseded_by", "supersedes"):
        last = start
        while (following := getattr(last, attribute)) is not None and following not in seen:
            found = next(iter(await store.get([following])), None)
            if found is None or found.scope != start.scope:
                break
            seen.add(found.id)
            last = found
            chain = [*chain, found] if attribute == "superseded_by" else [found, *chain]
    return tuple(chain)


@dataclass(frozen=True, slots=True)
class _Link:
    """How a record hangs on others."""

    derived_from: tuple[str, ...]
    contradicts: tuple[str, ...]
    supersedes: str | None
    superseded_by: str | None
    begin: datetime

    def names(self, gone: Set[str]) -> bool:
        others = (*self.contradicts, self.supersedes, self.superseded_by)
        return not gone.isdisjoint(one for one in others if one is not None)


async def _own(store: RecordStore, scopes: Sequence[str], name: str) -> Record | None:
    record = next(iter(await store.get([name])), None)
    if record is not None and record.scope not in scopes:
        own = " or ".join(map(repr, scopes))
        raise ValueError(f"Record {name!r} is of another scope, not of {own}.")
    return record


async def _links(store: RecordStore, scopes: Sequence[str]) -> dict[str, _Link]:
    """The links of the records that have any, by id."""
    links: dict[str, _Link] = {}
    async for records in store.scan(scopes=scopes, batch=_BATCH):
        for record in records:
            lineage = record.lineage
            link = _Link(
                lineage.derived_from,
                lineage.contradicts,
                record.supersedes,
                record.superseded_by,
                begin_of(record),
            )
            if any((*link.derived_from, *link.contradicts, link.supersedes, link.superseded_by)):
                links[record.id] = link
    return links


async def _healed(
    store: RecordStore, links: Mapping[str, _Link], gone: Set[str]
) -> tuple[list[Record], list[str]]:
    """The records that stay as they are without those that go, and which of them hold again."""
    touched = [one for one, link in links.items() if one not in gone and link.names(gone)]
    before = await _fetched(store, touched)
    after = {record.id: _without(record, gone, links) for record in before}
    restored = [r.id for r in before if r.superseded_by and not after[r.id].superseded_by]
    held = [after[name] for name in restored]
    known = {record.id: record for record in before}
    for record in held:
        rivals = {other.id: other for other in held if _rivals(other, record)}
        rivals[record.id] = record
        for other in await StoredRecords(store).on_matter(record):
            if other.id not in gone:
                known.setdefault(other.id, other)
                rivals.setdefault(other.id, other)
        current = [after.get(name, rival) for name, rival in rivals.items()]
        after.update({other.id: other for other in parted(current)})
    return [record for record in after.values() if record != known[record.id]], restored


def _rivals(one: Record, other: Record) -> bool:
    return one.scope == other.scope and one_matter(one.fact, other.fact)


async def _fetched(store: RecordStore, ids: list[str]) -> list[Record]:
    found: list[Record] = []
    for start in range(0, len(ids), _BATCH):
        found += await store.get(ids[start : start + _BATCH])
    return found


def _without(record: Record, gone: Set[str], links: Mapping[str, _Link]) -> Record:
    """A record as if those that go had never been."""
    record = _not_contradicting(record, gone)
    if record.supersedes in gone:
        before = _beyond(record.supersedes, gone, links, "supersedes")
        record = record.model_copy(update={"supersedes": None if before == record.id else before})
    by = record.superseded_by
    if by is None or by not in gone:
        return record
    heir = _beyond(by, gone, links, "superseded_by")
    heir = None if heir == record.id else heir
    ended_by_it = by in links and record.fact and record.fact.valid_until == links[by].begin
    if ended_by_it:
        record = holding_again(record)
        if heir is not None and heir in links and record.fact is not None:
            fact = record.fact.model_copy(update={"valid_until": links[heir].begin})
            record = record.model_copy(update={"fact": fact})
    return record.model_copy(update={"superseded_by": heir})


def _beyond(
    name: str | None, gone: Set[str], links: Mapping[str, _Link], attribute: str
) -> str | None:
    """The first record along a chain that stays."""
    seen: set[str] = set()
    while name is not None and name in gone:
        link = links.get(name)
        if link is None or name in seen:
            return None
        seen.add(name)
        name = getattr(link, attribute)
    return name


def _not_contradicting(record: Record, gone: Iterable[str]) -> Record:
    left = tuple(one for one in record.lineage.contradicts if one not in set(gone))
    return record if left == record.lineage.contradicts else with_lineage(record, contradicts=left)
