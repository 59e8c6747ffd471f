"""Taking records back, with what was concluded from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from coag.schema import MemoryKind, Record, Written
from coag.store import RecordStore, Search, short_id

from .facts import (
    begin_of,
    bounded,
    derived_levels,
    end_of,
    holding_again,
    one_matter,
    parted,
    with_lineage,
)
from .procedural import ProceduralMemory
from .procedures import ProcedureVersion, Undone
from .records import StoredRecords

# ---- Which record is meant by an id or by the beginning of one ----


_ID = re.compile(r"[0-9a-f]{8,32}")
_WHOLE = 32


async def full_id(store: RecordStore, scopes: Sequence[str], name: str) -> str:
    """The whole id that is meant; a whole id is taken as it is, whether there is such a record.

    Raises:
        ValueError: If it can be no id, or is the beginning of none or of several.
        RecordStoreError: If the store cannot be reached.
    """
    if not _ID.fullmatch(name):
        raise ValueError(
            f"{name!r} is no id of a record: that is 32 hexadecimal digits in lower case, of "
            "which the first 8 or more will do."
        )
    if len(name) == _WHOLE:
        return name
    meant: list[str] = []
    for kind in MemoryKind:
        search = Search(
            text=None,
            kind=kind,
            k=10,
            scopes=tuple(scopes),
            where={"short_id": short_id(name)},
            include_superseded=True,
        )
        hits = await store.search(search)
        meant += [hit.record.id for hit in hits if hit.record.id.startswith(name)]
    if len(meant) == 1:
        return meant[0]
    own = " or ".join(map(repr, scopes))
    found = f"fits {', '.join(meant)}" if meant else f"fits no record of {own}"
    raise ValueError(f"The short id {name!r} {found}. Give the whole id of 32 digits.")


# ---- What stays when records go: chains close, and what they had superseded holds again ----


_BATCH = 500


@dataclass(frozen=True, slots=True)
class Link:
    """How a record hangs on others."""

    derived_from: tuple[str, ...]
    contradicts: tuple[str, ...]
    supersedes: str | None
    superseded_by: str | None
    begin: datetime

    def names(self, gone: Set[str]) -> bool:
        """Whether a link leads to one of these records."""
        others = (*self.contradicts, self.supersedes, self.superseded_by)
        return not gone.isdisjoint(one for one in others if one is not None)


async def links_of(store: RecordStore, scopes: Sequence[str]) -> dict[str, Link]:
    """The links of the records that have any, by id."""
    links: dict[str, Link] = {}
    async for records in store.scan(scopes=scopes, batch=_BATCH):
        for record in records:
            lineage = record.lineage
            link = Link(
                lineage.derived_from,
                lineage.contradicts,
                record.supersedes,
                record.superseded_by,
                begin_of(record),
            )
            if any((*link.derived_from, *link.contradicts, link.supersedes, link.superseded_by)):
                links[record.id] = link
    return links


async def healed(
    store: RecordStore, links: Mapping[str, Link], gone: Set[str]
) -> tuple[list[Record], list[str]]:
    """The records that stay as they are without those that go, and which of them hold again."""
    touched = [one for one, link in links.items() if one not in gone and link.names(gone)]
    waiting = _waiting(links, gone)
    before = await fetched(store, list(dict.fromkeys((*touched, *waiting))))
    after: dict[str, Record] = {}
    followers = _followers(links, gone)
    for one in before:
        by = waiting.get(one.id) if one.superseded_by is None else one.superseded_by
        after[one.id] = _without(one, gone, links, by if by in gone else None, followers)
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


async def fetched(store: RecordStore, ids: Sequence[str]) -> list[Record]:
    """Those of these records that there are, asked for some at a time."""
    found: list[Record] = []
    for start in range(0, len(ids), _BATCH):
        found += await store.get(ids[start : start + _BATCH])
    return found


def _waiting(links: Mapping[str, Link], gone: Set[str]) -> dict[str, str]:
    """What goes by what stays and was to be superseded by it, or was when the time came."""
    return {
        old: one
        for one, link in links.items()
        if one in gone and (old := link.supersedes) is not None and old not in gone
    }


def _followers(links: Mapping[str, Link], gone: Set[str]) -> dict[str, str]:
    """What stays by what goes and was to be superseded by it."""
    return {
        old: one
        for one, link in links.items()
        if one not in gone and (old := link.supersedes) is not None and old in gone
    }


def _without(
    record: Record,
    gone: Set[str],
    links: Mapping[str, Link],
    by: str | None,
    followers: Mapping[str, str],
) -> Record:
    """A record as if those that go had never been.

    Args:
        record: One that stays.
        gone: What goes.
        links: How all hang together.
        by: What goes, and took the record's place or was to take it.
        followers: What stays by what goes and was to be superseded by it.
    """
    record = _not_contradicting(record, gone)
    if record.supersedes in gone:
        before = _beyond(record.supersedes, gone, links, "supersedes")
        record = record.model_copy(update={"supersedes": None if before == record.id else before})
    if by is None:
        return record
    ended_by_it = by in links and end_of(record) == links[by].begin
    if record.superseded_by is None and not ended_by_it:
        return record
    heir = _beyond(by, gone, links, "superseded_by")
    heir = None if heir == record.id else heir
    after = heir or followers.get(by)
    if ended_by_it:
        record = holding_again(record)
        if after is not None and after in links and links[after].begin > begin_of(record):
            record = bounded(record, links[after].begin)
    return record.model_copy(update={"superseded_by": heir})


def _beyond(
    name: str | None, gone: Set[str], links: Mapping[str, Link], attribute: str
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


# ---- Taking back a record with all that was concluded from it, and the chains it stood in ----


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
