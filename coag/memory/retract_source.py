"""Taking back all that came from one source, also as a dry run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace

from coag.errors import RecordStoreError
from coag.schema import MemoryKind, RecalledRecord, Record, Written
from coag.store import RecordStore, Search, WrappedStore

from .facts import (
    at_least,
    begin_of,
    bounded,
    contradicting,
    derived_levels,
    end_of,
    holding_again,
    origins,
    trust_of,
    trusted_at_most,
    without_source,
)
from .long_term import LongTermMemory
from .procedural import ProceduralMemory
from .procedures import Undone, source_origin
from .records import EVERYTHING, lock_of
from .retraction import Link, Revocation, fetched, full_id, links_of, taken_back

# ---- Taking back what one source stated, where others stated the same ----


async def revoke_origin(
    memory: LongTermMemory,
    name: str | None,
    source: str,
    reason: str,
    *,
    procedures: ProceduralMemory | None = None,
) -> Revocation:
    """Takes back what a source stated; what nobody else stated is revoked.

    What an agent concluded after it was shown the source's text counts as stated by it, and with
    `None` so do the rules. What others state too is trusted as they are, and what was concluded
    from it no more than that. What these records had superseded, and is trusted more than they
    are now, holds again beside them. Repeated after it was interrupted, it completes. It reads the
    whole scope twice.

    Args:
        memory: It writes the records' scopes.
        name: Id or unique short id of the record; None for all that the source stated.
        source: Whose word is taken back (`Provenance.source`), in whatever run it was said.
        reason: Why, in one sentence.
        procedures: The memory of procedures that rest on what is revoked whole.

    Raises:
        ValueError: If the reason is empty, the source is none of the record's or stated nothing
            that may be written, or the name is no id of a record that may be.
        RecordStoreError: If the store or the file of procedures cannot be reached.
    """
    if not reason.strip():
        raise ValueError("The reason is empty; say why the word is taken back.")
    store, scopes = memory.store, memory.scopes.writable
    async with lock_of(store):
        undone = Undone()
        if name is None:
            said = await _said_by(store, scopes, source)
            if procedures is not None:
                undone = procedures.revoke({source_origin(source)}, reason=reason)
            if not (said or undone.versions or undone.dropped):
                raise ValueError(f"Nothing in {_one_of(scopes)} stems from {source!r}.")
        else:
            said = [await _said_in(store, scopes, source, name)]
        done = await _disowned(memory, said, source, reason, procedures)
    return replace(
        done,
        record_id="" if name is None else said[0].id,
        procedures=(*undone.versions, *done.procedures),
        dropped=(*(one.id for one in undone.dropped), *done.dropped),
    )


async def revoke_again(memory: LongTermMemory, line: Written) -> None:
    """Takes back once more what a line of a trace says was; what is not there is passed over.

    Procedures are left alone: their versions have lines of their own.

    Args:
        memory: It writes the records' scopes.
        line: What `Revocation.written` gave.

    Raises:
        LookupError: If the line holds no revocation.
        ValueError: As for the revocation.
        RecordStoreError: If the store cannot be reached.
    """
    reason, source = line.content["reason"], line.content.get("source")
    if source is None:
        await memory.revoke(line.id, reason)
        return
    store, scopes = memory.store, memory.scopes.writable
    async with lock_of(store):
        found = await (store.get([line.id]) if line.id else _said_by(store, scopes, source))
        said = [one for one in found if source in _sources(one) and one.scope in scopes]
        await _disowned(memory, said, source, reason, None)


async def _disowned(
    memory: LongTermMemory,
    said: Sequence[Record],
    source: str,
    reason: str,
    procedures: ProceduralMemory | None,
) -> Revocation:
    """Takes a source's word out of records, those of nobody else first; holds no lock itself."""
    store, scopes = memory.store, memory.scopes.writable
    whole = [one.id for one in said if without_source(one, source) is None]
    done = Revocation(record_id="", reason=reason, at=memory.clock.now())
    if whole:
        done = await taken_back(store, scopes, whole, reason, at=done.at, procedures=procedures)
    stay = await fetched(store, [one.id for one in said if one.id not in set(whole)])
    lowered, restored, other = await _less_trusted(store, scopes, stay, source)
    again = tuple(dict.fromkeys((*done.restored, *restored)))
    cleared = dict.fromkeys((*done.cleared, *other))
    return replace(
        done,
        record_id="",
        source=source,
        restored=again,
        lowered=lowered,
        cleared=tuple(one for one in cleared if one not in {*lowered, *again}),
    )


async def _said_by(store: RecordStore, scopes: Sequence[str], source: str) -> list[Record]:
    """All that a source stated, superseded words too."""
    said: list[Record] = []
    async for records in store.scan(scopes=scopes):
        said += [one for one in records if source in _sources(one)]
    return said


async def _said_in(store: RecordStore, scopes: Sequence[str], source: str, name: str) -> Record:
    """The record that is meant, which the source stated."""
    name = await full_id(store, scopes, name)
    record = next(iter(await store.get([name])), None)
    if record is None or record.scope not in scopes:
        raise ValueError(f"There is no record {name!r} in {_one_of(scopes)}.")
    if source not in _sources(record):
        raise ValueError(f"Record {name!r} stems from {_sources(record)}, not from {source!r}.")
    return record


def _one_of(scopes: Sequence[str]) -> str:
    return " or ".join(map(repr, scopes))


def _sources(record: Record) -> list[str]:
    named = (name for one in origins(record) for name in (one.source, *one.shown))
    return list(dict.fromkeys(named))


async def _less_trusted(
    store: RecordStore, scopes: Sequence[str], roots: Sequence[Record], source: str
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Takes a source's word out of records.

    Gives the ids of what stays with less, of what holds again, and of what else changed.
    """
    if not roots:
        return (), (), ()
    links = await links_of(store, scopes)
    sources = {one: link.derived_from for one, link in links.items()}
    levels = derived_levels([one.id for one in roots], sources)
    resting = await fetched(store, [name for level in levels[1:] for name in level])
    lowered = _lowered(roots, resting, source)
    after, restored = dict(lowered), dict[str, None]()
    before: dict[str, list[str]] = {}
    for one, link in links.items():
        if link.superseded_by in lowered:
            before.setdefault(link.superseded_by, []).append(one)
    for name, olds in before.items():
        for old in await fetched(store, olds):
            if not at_least(trust_of(after[name]), trust_of(after.get(old.id, old))):
                after |= _apart(after[name], after.get(old.id, old), links)
                restored |= {old.id: None} if after[old.id].superseded_by is None else {}
    await store.update(list(after.values()))
    return tuple(lowered), tuple(restored), tuple(after)


def _lowered(roots: Iterable[Record], resting: Iterable[Record], source: str) -> dict[str, Record]:
    """The roots without a source, and of what rests on them all that is trusted less now, by id."""
    every = {one.id: one for one in (*resting, *roots)}
    lowered: dict[str, Record] = {}
    waiting: list[str] = []
    for root in roots:
        left = without_source(root, source)
        if left is not None:
            lowered[root.id] = left
            waiting += [root.id] if trust_of(left) is not trust_of(root) else []
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


# ---- Finding out what a revocation would take back, without taking back anything ----


_TRIED = "This is a trial."


async def would_revoke(
    memory: LongTermMemory, name: str | None, *, source: str | None = None
) -> tuple[Revocation, tuple[Record, ...]]:
    """What a revocation would do to records; nothing is changed.

    What it would do to procedures is not told. What would be removed is read once, what would
    change is held in memory.

    Args:
        memory: As for the revocation.
        name: As for `LongTermMemory.revoke`; None, with a source, as for `revoke_origin`.
        source: Whose word would be taken back; None for everybody's, which is a revocation.

    Returns:
        The revocation that would be, and the records that it would leave behind changed.

    Raises:
        ValueError: As for the revocation; or neither a record nor a source is named.
        RecordStoreError: If the store cannot be reached.
    """
    trial = _Trial(memory.store)
    tried = LongTermMemory(trial, scope=memory.scopes, clock=memory.clock)
    if source is not None:
        done = await revoke_origin(tried, name, source, _TRIED)
    elif name is not None:
        done = await tried.revoke(name, _TRIED)
    else:
        raise ValueError("Name a record, or the source whose word would be taken back.")
    return done, tuple(one for one in trial.changed.values() if one is not None)


class _Trial(WrappedStore):
    """Another store as it would be: what is changed here never reaches it.

    Only as much of a store as a revocation needs: nothing is added, and nothing recalled.
    """

    def __init__(self, store: RecordStore) -> None:
        super().__init__(store)
        self.changed: dict[str, Record | None] = {}
        """Records as they would be by their ids; None for those that would be gone."""

    async def add(self, records: Sequence[Record]) -> list[str]:
        """Refuses."""
        raise _refused("adds nothing", len(records))

    async def supersede(self, old_id: str, new: Record) -> Record:
        """Refuses."""
        raise _refused("adds nothing", new.id)

    async def forget(self, scope: str) -> int:
        """Refuses."""
        raise _refused("forgets no scope", scope)

    async def update(self, records: Sequence[Record]) -> list[Record]:
        """See `RecordStore.update`."""
        self.changed |= {one.id: one for one in records}
        return list(records)

    async def delete(self, ids: Sequence[str]) -> list[str]:
        """See `RecordStore.delete`."""
        there = [one.id for one in await self.get(ids)]
        self.changed |= dict.fromkeys(there)
        return there

    async def get(self, ids: Sequence[str]) -> list[Record]:
        """See `RecordStore.get`."""
        return self._as_they_would_be(await self.store.get(ids))

    async def search(self, search: Search) -> list[RecalledRecord]:
        """See `RecordStore.search`; without a text, and filters are asked of what was before."""
        if search.text is not None:
            raise _refused("recalls nothing", search.text)
        hits = await self.store.search(replace(search, k=EVERYTHING, include_superseded=True))
        found = self._as_they_would_be([hit.record for hit in hits])
        score = {hit.record.id: hit.score for hit in hits}
        return [
            RecalledRecord(record=one, score=score[one.id])
            for one in found
            if search.include_superseded or one.superseded_by is None
        ][: search.k]

    async def scan(
        self,
        *,
        kind: MemoryKind | None = None,
        scopes: Sequence[str] | None = None,
        batch: int = 500,
    ) -> AsyncIterator[list[Record]]:
        """See `RecordStore.scan`."""
        async for records in self.store.scan(kind=kind, scopes=scopes, batch=batch):
            yield self._as_they_would_be(records)

    def _as_they_would_be(self, records: Sequence[Record]) -> list[Record]:
        found = [self.changed.get(one.id, one) for one in records]
        return [one for one in found if one is not None]


def _refused(what: str, given: object) -> RecordStoreError:
    return RecordStoreError(f"A trial {what}: {given!r}. It only tells what a revocation would do.")
