"""Retraction: taking records back, with all that was concluded from them.

A record, or all that one source stated, is taken back in two steps: a plan is made from one pass
over the links of all records, and then it is carried out. Records that depend on others are
removed first, the named record last, so an interrupted retraction can be repeated and completes. A
dry run makes the plan only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from coag.schema import MemoryKind, Record, Written
from coag.store import RecordStore

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
from .gate import Undone
from .procedural import ProceduralMemory
from .procedures import ProcedureVersion, source_origin
from .recall import found_by_id
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
        """The records of the trace: what was revoked, then each procedure's version.

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


# ---- What a retraction would change, as a plan ----


@dataclass(frozen=True, slots=True)
class _Links:
    """How a record is linked to others."""

    derived_from: tuple[str, ...]
    contradicts: tuple[str, ...]
    supersedes: str | None
    superseded_by: str | None
    begin: datetime

    @classmethod
    def of(cls, record: Record) -> _Links:
        lineage = record.lineage
        return cls(
            lineage.derived_from,
            lineage.contradicts,
            record.supersedes,
            record.superseded_by,
            begin_of(record),
        )

    @property
    def any(self) -> bool:
        return bool(self.derived_from or self.contradicts or self.supersedes or self.superseded_by)

    def name(self, gone: Set[str]) -> bool:
        """Whether a link, other than a derivation, leads to one of these records."""
        others = (*self.contradicts, self.supersedes, self.superseded_by)
        return not gone.isdisjoint(one for one in others if one is not None)


class RetractionPlan:
    """What a retraction would change.

    Args:
        store: Where the records are.
        scopes: Whose records may be changed.
        links: The links of all their records that have any, by id.
    """

    def __init__(self, store: RecordStore, scopes: Sequence[str], links: dict[str, _Links]) -> None:
        self._store = store
        self._scopes = scopes
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
    async def over(cls, store: RecordStore, scopes: Sequence[str]) -> RetractionPlan:
        """An empty plan; reads all records once and keeps their links.

        Raises:
            RecordStoreError: If the store cannot be reached.
        """
        links: dict[str, _Links] = {}
        async for records in store.scan(scopes=scopes, batch=_BATCH):
            for record in records:
                one = _Links.of(record)
                if one.any:
                    links[record.id] = one
        return cls(store, scopes, links)

    @property
    def gone(self) -> set[str]:
        """The ids of all that would go."""
        return {one for level in self.levels for one in level}

    async def fetched(self, ids: Iterable[str]) -> list[Record]:
        """Those of these records that there would be, as they would be."""
        names, found = list(dict.fromkeys(ids)), list[Record]()
        for start in range(0, len(names), _BATCH):
            found += await self._store.get(names[start : start + _BATCH])
        gone = self.gone
        return [self.changed.get(one.id, one) for one in found if one.id not in gone]

    async def remove(self, roots: Sequence[str], *, dependents: bool = True) -> None:
        """Records go and, unless `dependents` is false, all that is derived from them.

        What stays no longer names them, and what only they had superseded holds again.
        """
        sources = {one: link.derived_from for one, link in self._links.items()}
        self.levels = derived_levels(roots, sources) if dependents else [list(roots)]
        gone = self.gone
        naming = [n for n, link in self._links.items() if n not in gone and link.name(gone)]
        before_them = {
            old: name
            for name, link in self._links.items()
            if name in gone and (old := link.supersedes) is not None and old not in gone
        }
        """What stays, by what goes and took its place or was to take it."""
        after_them = {
            old: name
            for name, link in self._links.items()
            if name not in gone and (old := link.supersedes) is not None and old in gone
        }
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
            rivals = {other.id: other for other in held if _rivals(other, record)}
            rivals[record.id] = record
            for other in await draft.on_matter(record):
                if other.id not in gone:
                    known.setdefault(other.id, other)
                    rivals.setdefault(other.id, other)
            current = [after.get(name, rival) for name, rival in rivals.items()]
            after.update({other.id: other for other in marked_contradictions(current)})
        self._change(record for record in after.values() if record != known[record.id])

    def _healed(
        self, record: Record, gone: Set[str], by: str | None, after_them: Mapping[str, str]
    ) -> Record:
        """A record as if those that go had never been.

        Args:
            record: One that stays.
            gone: What goes.
            by: What goes, and took the record's place or was to take it.
            after_them: What stays, by what goes and was to be superseded by it.
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
            link = self._links.get(name)
            if link is None or name in seen:
                return None
            seen.add(name)
            name = getattr(link, attribute)
        return name

    async def remove_source(self, roots: Sequence[Record], source: str) -> None:
        """Records lose a source; what is derived from them is trusted no more than they are then.

        What these records had superseded, and is trusted more than they are then, holds again.
        """
        if not roots:
            return
        sources = {one: link.derived_from for one, link in self._links.items()}
        self._roots = {one.id for one in roots}
        levels = derived_levels([one.id for one in roots], sources)
        dependents = await self.fetched(name for level in levels[1:] for name in level)
        lowered = _lowered(roots, dependents, source)
        self.lowered = list(lowered)
        self._change(lowered.values())
        superseded: dict[str, list[str]] = {}
        for name, link in self._links.items():
            if link.superseded_by in lowered:
                superseded.setdefault(link.superseded_by, []).append(name)
        for name, olds in superseded.items():
            for old in await self.fetched(olds):
                if not at_least(trust_of(self.changed[name]), trust_of(old)):
                    now, again = self._apart(self.changed[name], old)
                    self._change((now, again))
                    if again.superseded_by is None:
                        self.restored.append(again.id)

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

    async def carry_out(self) -> list[str]:
        """Stores what changes and removes what goes; gives the ids of what was there, roots first.

        Raises:
            RecordStoreError: If the store cannot be reached; repeated, it completes.
        """
        roots = [one for name, one in self.changed.items() if name in self._roots]
        others = [one for name, one in self.changed.items() if name not in self._roots]
        for some in (others, roots):  # as long as a root has the source, all is done once more
            if some:
                await self._store.update(some)
        removed: list[str] = []
        for level in reversed(self.levels):
            for start in range(0, len(level), _BATCH):
                removed += await self._store.delete(level[start : start + _BATCH])
        return removed[::-1]

    def result(
        self, what: Retraction, name: str, removed: Sequence[str], undone: Undone, at: datetime
    ) -> Revocation:
        """What came of it once it was carried out."""
        other = {*self.lowered, *self.restored}
        return Revocation(
            record_id=name,
            reason=what.reason,
            at=at,
            source=what.source,
            records=tuple(removed),
            lowered=tuple(self.lowered),
            restored=tuple(dict.fromkeys(self.restored)),
            cleared=tuple(one for one in self.changed if one not in other),
            procedures=undone.versions,
            dropped=tuple(one.id for one in undone.dropped),
        )

    async def would_remove(self) -> list[str]:
        """The ids that `carry_out` would give."""
        removed: list[str] = []
        for level in reversed(self.levels):
            for start in range(0, len(level), _BATCH):
                there = await self._store.get(level[start : start + _BATCH])
                removed += [one.id for one in there]
        return removed[::-1]


def _rivals(one: Record, other: Record) -> bool:
    return one.scope == other.scope and one_matter(one.fact, other.fact)


def _lowered(
    roots: Iterable[Record], dependents: Iterable[Record], source: str
) -> dict[str, Record]:
    """The roots without a source, and those that depend on them and are trusted less now, by id."""
    every = {one.id: one for one in (*dependents, *roots)}
    lowered: dict[str, Record] = {}
    waiting: list[str] = []
    for root in roots:
        rest = without_source(root, source)
        if rest is not None:
            lowered[root.id] = rest
            waiting += [root.id] if trust_of(rest) is not trust_of(root) else []
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Retraction:
    """What is to be taken back.

    Raises:
        ValueError: If the reason is empty, or neither a record nor a source is named.
    """

    name: str | None
    """Id or unique short id of a record; None for all that a source stated."""
    source: str | None
    """Whose statements; None for everybody's."""
    reason: str

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise ValueError("The reason is empty; say why it is taken back.")
        if self.name is None and self.source is None:
            raise ValueError("Name a record, or the source whose statements are taken back.")


async def retracted(
    store: RecordStore,
    scopes: Sequence[str],
    what: Retraction,
    *,
    at: datetime,
    procedures: ProceduralMemory | None = None,
    known: Sequence[Record] | None = None,
    dry_run: bool = False,
) -> tuple[Revocation, tuple[Record, ...]]:
    """Takes back records; gives what that did, and the records that it left behind changed.

    Args:
        store: Where they are; nobody else writes meanwhile.
        scopes: Whose records may be changed; what others concluded stays.
        what: What is taken back.
        at: Now.
        procedures: The memory of procedures that may depend on it.
        known: The records that have the source; None to look for them.
        dry_run: Make the plan only; procedures are not looked at.

    Raises:
        ValueError: If the name is no id, the record is another scope's, or the source is none of
            its origins, or stated nothing.
        RecordStoreError: If something cannot be reached or written.
    """
    source, undone = what.source, Undone()
    name = None if what.name is None else await full_id(store, scopes, what.name)
    if source is None:
        await own_record(store, scopes, name or "")
        whole, stay = [name or ""], list[str]()
    else:
        said = known
        if said is None and name is not None:
            said = [await _stated_record(store, scopes, source, name)]
        elif said is None:
            said = await stated_by(store, scopes, source)
            if procedures is not None and not dry_run:
                undone = procedures.revoke({source_origin(source)}, reason=what.reason)
            if not (said or undone.versions or undone.dropped):
                raise ValueError(f"Nothing in {_one_of(scopes)} stems from {source!r}.")
        whole = [one.id for one in said if without_source(one, source) is None]
        stay = [one.id for one in said if one.id not in set(whole)]
    plan = await RetractionPlan.over(store, scopes)
    if whole:
        await plan.remove(whole)
    if source is not None:
        await plan.remove_source(await plan.fetched(stay), source)
    if procedures is not None and whole and not dry_run:
        undone = undone.and_then(procedures.revoke(plan.gone, reason=what.reason))
    removed = await (plan.would_remove() if dry_run else plan.carry_out())
    return plan.result(what, name or "", removed, undone, at), tuple(plan.changed.values())


async def forgotten(store: RecordStore, scopes: Sequence[str], name: str) -> bool:
    """Removes one record; what stood before and behind it in its chain now meet.

    What it alone had superseded holds again.

    Raises:
        ValueError: If the record is another scope's.
        RecordStoreError: If something cannot be reached or written.
    """
    name = await full_id(store, scopes, name)
    record = await own_record(store, scopes, name)
    if record is None:
        return False
    plan = await RetractionPlan.over(store, [record.scope])
    await plan.remove([name], dependents=False)
    return bool(await plan.carry_out())


async def stated_by(store: RecordStore, scopes: Sequence[str], source: str) -> list[Record]:
    """All that a source stated, superseded statements too."""
    said: list[Record] = []
    async for records in store.scan(scopes=scopes, batch=_BATCH):
        said += [one for one in records if source in _sources(one)]
    return said


async def _stated_record(
    store: RecordStore, scopes: Sequence[str], source: str, name: str
) -> Record:
    record = next(iter(await store.get([name])), None)
    if record is None or record.scope not in scopes:
        raise ValueError(f"There is no record {name!r} in {_one_of(scopes)}.")
    if source not in _sources(record):
        raise ValueError(f"Record {name!r} stems from {_sources(record)}, not from {source!r}.")
    return record


def _sources(record: Record) -> list[str]:
    named = (name for one in origins(record) for name in (one.source, *one.shown))
    return list(dict.fromkeys(named))


# ---- Which record is meant, and the chain that it is part of ----


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
    meant = [one.id for one in await found_by_id(store, tuple(scopes), tuple(MemoryKind), name)]
    if len(meant) == 1:
        return meant[0]
    fits = ", ".join(meant) if meant else f"no record of {_one_of(scopes)}"
    raise ValueError(f"The short id {name!r} fits {fits}. Give the whole id of 32 digits.")


async def own_record(store: RecordStore, scopes: Sequence[str], name: str) -> Record | None:
    """The record of an id, if there is one.

    Raises:
        ValueError: If it is of another scope.
    """
    record = next(iter(await store.get([name])), None)
    if record is not None and record.scope not in scopes:
        raise ValueError(f"Record {name!r} is of another scope, not of {_one_of(scopes)}.")
    return record


async def chain_of(store: RecordStore, scopes: Sequence[str], name: str) -> tuple[Record, ...]:
    """What a record superseded and what superseded it or is to, oldest first, each once."""
    name = await full_id(store, scopes, name)
    start = next(iter(await store.get([name])), None)
    if start is None or start.scope not in scopes:
        return ()
    chain, seen = [start], {start.id}
    for step in (_next_in_chain, _previous_in_chain):
        last = start
        while (found := await step(store, last)) is not None:
            if found.id in seen or found.scope != start.scope:
                break
            seen.add(found.id)
            last = found
            chain = [*chain, found] if step is _next_in_chain else [found, *chain]
    return tuple(chain)


async def _previous_in_chain(store: RecordStore, record: Record) -> Record | None:
    """What a record superseded or is to supersede."""
    return next(iter(await store.get([record.supersedes or ""])), None)


async def _next_in_chain(store: RecordStore, record: Record) -> Record | None:
    """What superseded a record, or is to when its time comes."""
    if record.superseded_by is not None or end_of(record) is None:
        return next(iter(await store.get([record.superseded_by or ""])), None)
    others = await Draft(store).all_on_matter(record)
    return next((one for one in others if one.supersedes == record.id), None)


def _one_of(scopes: Sequence[str]) -> str:
    return " or ".join(map(repr, scopes))
