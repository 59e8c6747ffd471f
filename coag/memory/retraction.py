"""Retraction: taking records back, with all that was concluded from them.

A record, or all that one source stated, is taken back in two steps: a plan is made from one pass
over the links of all records, and then it is carried out. Records that depend on others are
removed first, the named record last, so an interrupted retraction can be repeated and completes. A
dry run makes the plan only.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from coag.schema import MemoryKind, Record, Written
from coag.store import RecordStore, found_by_id, slices

from .facts import (
    at_least,
    begin_of,
    bounded,
    contradicting,
    derived_levels,
    end_of,
    marked_contradictions,
    one_matter,
    origins,
    trust_of,
    trusted_at_most,
    unbounded,
    with_lineage,
    without_source,
)
from .procedural import ProceduralMemory, Undone
from .procedures import ProcedureVersion, source_origin
from .writing import Draft

_ID = re.compile(r"[0-9a-f]{8,32}")
_WHOLE = 32
_BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation:
    """The result of a retraction."""

    record_id: str
    """The record that was named; empty where all that a source had stated was taken back."""
    reason: str
    at: datetime
    records: tuple[str, ...] = ()
    """Ids of the records that were removed: it and what was concluded from it."""
    source: str | None = None
    """Whose statements were taken back, if not everybody's."""
    lowered: tuple[str, ...] = ()
    """Records that others state too and that stay, and what was concluded from them: without that
    source, and trusted no more than their other origins."""
    restored: tuple[str, ...] = ()
    """Records that they had superseded and that hold again."""
    cleared: tuple[str, ...] = ()
    """Records that no longer name them, as contradicting or in a chain."""
    procedures: tuple[tuple[str, ProcedureVersion], ...] = ()
    """Procedures that were rolled back, with the version that now holds."""
    dropped: tuple[str, ...] = ()
    """Ids of waiting rewrites that were dropped."""

    def written(self, cycle: int = 0) -> tuple[Written, ...]:
        """The records of the trace: what was revoked, then each procedure's version."""
        content = {
            "reason": self.reason,
            "records": list(self.records),
            "restored": list(self.restored),
            "cleared": list(self.cleared),
            "procedures": {name: version.version for name, version in self.procedures},
            "dropped": list(self.dropped),
        }
        if self.source is not None:
            content |= {"source": self.source, "lowered": list(self.lowered)}
        line = Written(at=self.at, cycle=cycle, what="revoked", id=self.record_id, content=content)
        return (line, *(version.written(name) for name, version in self.procedures))


# ---- What a retraction would change, as a plan ----


@dataclass(frozen=True, slots=True)
class _Links:
    derived_from: tuple[str, ...]
    contradicts: tuple[str, ...]
    supersedes: str | None
    superseded_by: str | None
    begin: datetime

    @classmethod
    def of(cls, record: Record) -> _Links:
        derived_from, contradicts = record.lineage.derived_from, record.lineage.contradicts
        chain = record.supersedes, record.superseded_by
        return cls(derived_from, contradicts, *chain, begin_of(record))

    def others(self) -> Iterator[str]:
        """What a link leads to that is no derivation."""
        yield from self.contradicts
        yield from filter(None, (self.supersedes, self.superseded_by))


class _RetractionPlan:
    def __init__(self, store: RecordStore, links: dict[str, _Links]) -> None:
        self._store = store
        self._links = links
        self.changed: dict[str, Record] = {}
        """The records that stay and change, as they would be."""
        self.levels: list[list[str]] = []
        """The ids of those that would go, what the others depend on first."""
        self.restored: list[str] = []
        """Ids of those that would hold again."""
        self.lowered: list[str] = []
        """Ids of those that would lose an origin, or trust."""
        self._roots: set[str] = set()
        """Those of `lowered` that have the source itself among their origins."""

    @classmethod
    async def over(cls, store: RecordStore, scopes: Sequence[str]) -> _RetractionPlan:
        """An empty plan; reads all records of some scopes once and keeps their links."""
        links: dict[str, _Links] = {}
        async for records in store.scan(scopes=scopes, batch=_BATCH):
            every = ((record.id, _Links.of(record)) for record in records)
            links.update((n, one) for n, one in every if one.derived_from or any(one.others()))
        return cls(store, links)

    @property
    def gone(self) -> set[str]:
        """The ids of all that would go."""
        return {one for level in self.levels for one in level}

    async def fetched(self, ids: Iterable[str]) -> list[Record]:
        """Those of these records that there would be, as they would be."""
        found = [one for some in slices(ids, _BATCH) for one in await self._store.get(some)]
        gone = self.gone
        return [self.changed.get(one.id, one) for one in found if one.id not in gone]

    async def remove(self, roots: Sequence[str], *, dependents: bool = True) -> None:
        """Records go and, unless `dependents` is false, all that is derived from them.

        What stays no longer names them, and what only they had superseded holds again.
        """
        self.levels = self._derived(roots) if dependents else [list(roots)]
        gone, links = self.gone, self._links.items()
        naming = [n for n, one in links if n not in gone and not gone.isdisjoint(one.others())]
        pairs = [(one.supersedes, n) for n, one in links if one.supersedes is not None]
        before_them = {old: n for old, n in pairs if n in gone and old not in gone}
        """What stays, by what goes and took its place or was to take it."""
        after_them = {old: n for old, n in pairs if n not in gone and old in gone}
        before = await self.fetched((*naming, *before_them))
        after: dict[str, Record] = {}
        for one in before:
            by = before_them.get(one.id) if one.superseded_by is None else one.superseded_by
            after[one.id] = self._healed(one, gone, by if by in gone else None, after_them)
        self.restored = [
            one.id for one in before if one.superseded_by and not after[one.id].superseded_by
        ]
        known = {one.id: one for one in before}
        held = [after[name] for name in self.restored]
        draft = Draft(self._store)
        for record in held:
            rivals = {
                one.id: one
                for one in held
                if one.scope == record.scope and one_matter(one.fact, record.fact)
            }
            rivals[record.id] = record
            for other in await draft.on_matter(record):
                if other.id not in gone:
                    known.setdefault(other.id, other)
                    rivals.setdefault(other.id, other)
            current = [after.get(name, rival) for name, rival in rivals.items()]
            after.update({other.id: other for other in marked_contradictions(current)})
        self._change(record for record in after.values() if record != known[record.id])

    def _derived(self, roots: Iterable[str]) -> list[list[str]]:
        return derived_levels(roots, {name: one.derived_from for name, one in self._links.items()})

    def _healed(
        self, record: Record, gone: Set[str], by: str | None, after_them: Mapping[str, str]
    ) -> Record:
        """A record that stays as if those that go had never been.

        `by` is what goes, and took the record's place or was to take it; `after_them` is what
        stays, by what goes and was to be superseded by it.
        """
        against = tuple(one for one in record.lineage.contradicts if one not in gone)
        if against != record.lineage.contradicts:
            record = with_lineage(record, contradicts=against)
        if record.supersedes in gone:
            before = self._beyond(record.supersedes, gone, "supersedes")
            before = None if before == record.id else before
            record = record.model_copy(update={"supersedes": before})
        if by is None:
            return record
        links = self._links
        ended_by_it = by in links and end_of(record) == links[by].begin
        if record.superseded_by is None and not ended_by_it:
            return record
        heir = self._beyond(by, gone, "superseded_by")
        heir = None if heir == record.id else heir
        after = heir or after_them.get(by)
        if ended_by_it:
            record = unbounded(record)
            if after is not None and after in links and links[after].begin > begin_of(record):
                record = bounded(record, links[after].begin)
        return record.model_copy(update={"superseded_by": heir})

    def _beyond(self, name: str | None, gone: Set[str], attribute: str) -> str | None:
        """The first record along a chain that stays."""
        seen: set[str] = set()
        while name is not None and name in gone:
            if name not in self._links or name in seen:
                return None
            seen.add(name)
            name = getattr(self._links[name], attribute)
        return name

    async def remove_source(self, roots: Sequence[Record], source: str) -> None:
        """Records lose a source; what is derived from them is trusted no more than they are then.

        What these records had superseded, and is trusted more than they are then, holds again.
        """
        self._roots = {one.id for one in roots}
        levels = self._derived([one.id for one in roots])
        dependents = await self.fetched(name for level in levels[1:] for name in level)
        lowered = _lowered(roots, dependents, source)
        self.lowered = list(lowered)
        self._change(lowered.values())
        before = [(n, one.superseded_by) for n, one in self._links.items()]
        taken = {name: by for name, by in before if by is not None and by in lowered}
        for one in await self.fetched(taken):
            record, old = self.changed[taken[one.id]], self.changed.get(one.id, one)
            if not at_least(trust_of(record), trust_of(old)):
                record, old = self._apart(record, old)
                self._change((record, old))
                if old.superseded_by is None:
                    self.restored.append(old.id)

    def _apart(self, record: Record, old: Record) -> tuple[Record, Record]:
        """A record and one that it may no longer supersede, side by side."""
        heir = record.superseded_by
        if end_of(old) == begin_of(record):
            old = unbounded(old)
            if heir is not None and heir in self._links:
                old = bounded(old, self._links[heir].begin)
        old = old.model_copy(update={"superseded_by": heir})
        if record.supersedes == old.id:
            record = record.model_copy(update={"supersedes": None})
        if heir is None:
            old, record = contradicting(old, [record.id]), contradicting(record, [old.id])
        return record, old

    def _change(self, records: Iterable[Record]) -> None:
        for record in records:
            self.changed[record.id] = record
            self._links[record.id] = _Links.of(record)

    async def carry_out(self, *, dry_run: bool = False) -> list[str]:
        """Stores what changes and removes what goes; gives the ids of what was there, roots first.

        A dry run only gives them.
        """
        roots = [one for name, one in self.changed.items() if name in self._roots]
        others = [one for name, one in self.changed.items() if name not in self._roots]
        for some in (others, roots):  # as long as a root has the source, all is done once more
            if some and not dry_run:
                await self._store.update(some)
        removed: list[str] = []
        for level in reversed(self.levels):
            for ids in slices(level, _BATCH):
                if dry_run:
                    removed += [one.id for one in await self._store.get(ids)]
                else:
                    removed += await self._store.delete(ids)
        return removed[::-1]


def _lowered(
    roots: Iterable[Record], dependents: Iterable[Record], source: str
) -> dict[str, Record]:
    every = {one.id: one for one in (*dependents, *roots)}
    without = {root.id: without_source(root, source) for root in roots}
    lowered = {name: rest for name, rest in without.items() if rest is not None}
    waiting = [n for n, rest in lowered.items() if trust_of(rest) is not trust_of(every[n])]
    on: dict[str, list[str]] = {}
    for one in every.values():
        for name in one.lineage.derived_from:
            on.setdefault(name, []).append(one.id)
    while waiting:
        name = waiting.pop()
        for one in on.get(name, ()):
            record = lowered.get(one, every[one])
            less = trusted_at_most(record, trust_of(lowered[name]))
            if less != record:
                lowered[one] = less
                waiting.append(one)
    return lowered


# ---- Retracting a record, or what a source stated ----


async def retracted(
    store: RecordStore,
    scopes: Sequence[str],
    name: str | None,
    source: str | None,
    reason: str,
    *,
    at: datetime,
    procedures: ProceduralMemory | None = None,
    mode: Literal["do", "dry_run", "repeat"] = "do",
) -> tuple[Revocation, tuple[Record, ...]]:
    """Takes back records; gives what that did, and the records that it left behind changed.

    A record is named, or all that a source stated is meant. A `dry_run` makes the plan only and
    looks at no procedures; `repeat` passes over what the source did not state or is not there.

    Raises:
        ValueError: If the reason is empty, neither a record nor a source is named, the name is no
            id, the record is another scope's, or the source is none of its origins, or stated
            nothing.
    """
    if not reason.strip():
        raise ValueError("The reason is empty; say why it is taken back.")
    dry_run, repeated = mode == "dry_run", mode == "repeat"
    whole, stay = list[str](), list[str]()
    if name is not None:
        name = await _full_id(store, scopes, name)
    if source is not None:
        for one in await _stated(store, scopes, name, source, repeated=repeated):
            (whole if without_source(one, source) is None else stay).append(one.id)
    elif name is not None:
        await _own_record(store, scopes, name)
        whole = [name]
    else:
        raise ValueError("Name a record, or the source whose statements are taken back.")
    plan = await _RetractionPlan.over(store, scopes)
    await plan.remove(whole)
    await plan.remove_source(await plan.fetched(stay), source or "")
    undone, gone = Undone(), plan.gone
    if source is not None and name is None:
        gone.add(source_origin(source))
    if gone and procedures is not None and not dry_run:
        undone = procedures.revoke(gone, reason=reason)
    if not (whole or stay or undone.versions or undone.dropped or repeated):
        raise ValueError(f"Nothing in {_one_of(scopes)} stems from {source!r}.")
    removed = await plan.carry_out(dry_run=dry_run)
    revocation = Revocation(
        record_id=name or "",
        reason=reason,
        at=at,
        source=source,
        records=tuple(removed),
        lowered=tuple(plan.lowered),
        restored=tuple(dict.fromkeys(plan.restored)),
        cleared=tuple(n for n in plan.changed if n not in {*plan.lowered, *plan.restored}),
        procedures=undone.versions,
        dropped=tuple(one.id for one in undone.dropped),
    )
    return revocation, tuple(plan.changed.values())


async def forgotten(store: RecordStore, scopes: Sequence[str], name: str) -> bool:
    """Removes one record; its neighbours in its chain are linked.

    What it alone had superseded holds again.
    """
    name = await _full_id(store, scopes, name)
    record = await _own_record(store, scopes, name)
    if record is None:
        return False
    plan = await _RetractionPlan.over(store, [record.scope])
    await plan.remove([name], dependents=False)
    return bool(await plan.carry_out())


async def _stated(
    store: RecordStore, scopes: Sequence[str], name: str | None, source: str, *, repeated: bool
) -> list[Record]:
    """The records that a source stated, superseded ones too, or the one that is named."""
    if name is None or repeated:
        scan = store.scan(scopes=scopes, batch=_BATCH)
        every = [one async for some in scan for one in some if source in _sources(one)]
        return [one for one in every if name in (None, one.id)]
    record = await _record(store, name)
    if record is None or record.scope not in scopes:
        raise ValueError(f"There is no record {name!r} in {_one_of(scopes)}.")
    if source not in _sources(record):
        raise ValueError(f"Record {name!r} stems from {_sources(record)}, not from {source!r}.")
    return [record]


def _sources(record: Record) -> list[str]:
    named = (name for one in origins(record) for name in (one.source, *one.shown))
    return list(dict.fromkeys(named))


# ---- Which record is meant, and the chain that it is part of ----


async def _full_id(store: RecordStore, scopes: Sequence[str], name: str) -> str:
    """The whole id that is meant; a whole id is taken as it is, whether there is such a record."""
    if not _ID.fullmatch(name):
        raise ValueError(
            f"{name!r} is no id of a record: that is 32 hexadecimal digits in lower case, of "
            "which the first 8 or more will do."
        )
    if len(name) == _WHOLE:
        return name
    meant = [one.id for one in await found_by_id(store, tuple(scopes), tuple(MemoryKind), name)]
    if len(meant) == 1:
        return meant[0]
    fits = ", ".join(meant) if meant else f"no record of {_one_of(scopes)}"
    raise ValueError(f"The short id {name!r} fits {fits}. Give the whole id of 32 digits.")


async def _own_record(store: RecordStore, scopes: Sequence[str], name: str) -> Record | None:
    record = await _record(store, name)
    if record is not None and record.scope not in scopes:
        raise ValueError(f"Record {name!r} is of another scope, not of {_one_of(scopes)}.")
    return record


async def chain_of(store: RecordStore, scopes: Sequence[str], name: str) -> tuple[Record, ...]:
    """What a record superseded and what superseded it or is to, oldest first, each once."""
    name = await _full_id(store, scopes, name)
    start = await _record(store, name)
    if start is None or start.scope not in scopes:
        return ()
    chain, seen = deque([start]), {start.id}
    for step, put in ((_next_in_chain, chain.append), (_previous_in_chain, chain.appendleft)):
        found = await step(store, start)
        while found is not None and found.id not in seen and found.scope == start.scope:
            seen.add(found.id)
            put(found)
            found = await step(store, found)
    return tuple(chain)


async def _record(store: RecordStore, name: str) -> Record | None:
    return next(iter(await store.get([name])), None)


async def _previous_in_chain(store: RecordStore, record: Record) -> Record | None:
    return await _record(store, record.supersedes or "")


async def _next_in_chain(store: RecordStore, record: Record) -> Record | None:
    """What superseded a record, or is to when its time comes."""
    if record.superseded_by is not None or end_of(record) is None:
        return await _record(store, record.superseded_by or "")
    others = await Draft(store).all_on_matter(record)
    return next((one for one in others if one.supersedes == record.id), None)


def _one_of(scopes: Sequence[str]) -> str:
    return " or ".join(map(repr, scopes))
