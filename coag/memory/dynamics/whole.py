"""A store and its archive as one: what has faded is still found by its id, and can be taken back.

Recall asks the store alone. All that goes by ids and links - chains, revocation, forgetting - works
on both, so that nothing refers to what cannot be had.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence

from coag.memory.facts import marked_contradictions, trust_of
from coag.memory.writing import Draft
from coag.schema import MemoryKind, RecalledRecord, Record, Trust
from coag.store import RecordStore, Search, WrappedStore, condition_of, flat_fields, ranked, slices

from .archive import MemoryArchive

_BATCH = 500


class StoreWithArchive(WrappedStore):
    """A store and its archive.

    Args:
        store: The records that recall finds.
        archive: Those that have faded.
        returned: Called with the ids of those that are put back, so that they fade no more.
        removing: Called with the ids of records before they are removed; an error keeps them.
        distrusted: Called with the ids of those that are updated and untrusted.
    """

    def __init__(
        self,
        store: RecordStore,
        archive: MemoryArchive,
        returned: Callable[[Sequence[str]], None] = lambda _: None,
        removing: Callable[[Sequence[str]], None] = lambda _: None,
        distrusted: Callable[[Sequence[str]], None] = lambda _: None,
    ) -> None:
        super().__init__(store)
        self.archive = archive
        self._returned = returned
        self._removing = removing
        self._distrusted = distrusted

    async def add(self, records: Sequence[Record]) -> list[str]:
        """See `RecordStore.add`; one that has faded comes back as it was."""
        await self.bring_back(record.id for record in records)
        return await self.store.add(records)

    async def supersede(self, old_id: str, new: Record) -> Record:
        """See `RecordStore.supersede`; what has faded comes back first."""
        await self.bring_back([old_id, new.id])
        return await self.store.supersede(old_id, new)

    async def update(self, records: Sequence[Record]) -> list[Record]:
        """See `RecordStore.update`; what has faded stays where it is."""
        ids = [record.id for record in records]
        self._distrusted([one.id for one in records if trust_of(one) is Trust.UNTRUSTED])
        here = {one.id for one in await self.store.get(ids)}
        away = self.archive.has(one for one in ids if one not in here)
        updated = await self.store.update([one for one in records if one.id not in away])
        done = {one.id: one for one in updated}
        done |= {
            one.id: one for one in self.archive.rewrite([one for one in records if one.id in away])
        }
        return [done[one] for one in ids]

    async def get(self, ids: Sequence[str]) -> list[Record]:
        """See `RecordStore.get`."""
        found = {record.id: record for record in await self.store.get(ids)}
        found |= self.archive.peek(one for one in ids if one not in found)
        return [found[one] for one in ids if one in found]

    async def search(self, search: Search) -> list[RecalledRecord]:
        """See `RecordStore.search`; one without a text finds what has faded, too."""
        hits = await self.store.search(search)
        if search.text is not None:
            return hits
        condition = condition_of(search)
        beginning = (search.where or {}).get("short_id", "")
        away = self.archive.scan(
            kind=search.kind,
            scopes=search.scopes,
            beginning=beginning if isinstance(beginning, str) else "",
        )
        found = {hit.record.id: hit for hit in hits}
        for records in away:
            for record in records:
                if record.id not in found and condition.matches(flat_fields(record)):
                    found[record.id] = RecalledRecord(record=record, score=1.0)
        return ranked(found.values(), search.k)

    async def scan(
        self,
        *,
        kind: MemoryKind | None = None,
        scopes: Sequence[str] | None = None,
        batch: int = _BATCH,
    ) -> AsyncIterator[list[Record]]:
        """See `RecordStore.scan`; of each kind, what has faded comes last, by its ids."""
        for one in MemoryKind if kind is None else (kind,):
            async for records in self.store.scan(kind=one, scopes=scopes, batch=batch):
                yield records
            for records in self.archive.scan(kind=one, scopes=scopes, batch=batch):
                here = {got.id for got in await self.store.get([one.id for one in records])}
                if away := [record for record in records if record.id not in here]:
                    yield away

    async def count(self, kind: MemoryKind) -> int:
        """See `RecordStore.count`."""
        return await self.store.count(kind) + self.archive.count(kind)

    async def delete(self, ids: Sequence[str]) -> list[str]:
        """See `RecordStore.delete`."""
        away = self.archive.has(ids)
        self._removing(ids)
        gone = {*await self.store.delete(ids), *away}
        self.archive.drop(away)
        return [one for one in dict.fromkeys(ids) if one in gone]

    async def forget(self, scope: str) -> int:
        """See `RecordStore.forget`."""
        async for records in self.store.scan(scopes=[scope], batch=_BATCH):
            self._removing([record.id for record in records])
        for ids in slices(self.archive.ids_of(scope), _BATCH):
            self._removing(ids)
        self.archive.file.forget(scope)
        here = await self.store.forget(scope)
        return here + self.archive.forget(scope)

    async def bring_back(self, ids: Iterable[str]) -> list[Record]:
        """Puts archived records back into the store, as they were, and takes them out of here.

        A fact of which another value was stated meanwhile holds beside that one, and each names
        the other. Interrupted, a record is in both, and the same call completes it.

        Returns:
            Those that were in the archive.
        """
        back: list[Record] = []
        for some in slices(ids, _BATCH):
            records = list(self.archive.peek(some).values())
            if records:
                names = [record.id for record in records]
                self.archive.finish(names, finished=False)
                await self.store.add(records)
                await self._mark_contradictions(records)
                with self.archive.file.transaction():
                    self.archive.drop(names)
                    self._returned(names)
                back += records
        return back

    async def bring_back_for(self, statements: Sequence[Record], also: Iterable[str] = ()) -> None:
        """Puts back what new statements say again or may replace, before they are written."""
        if not self.archive.empty:
            ids = [record.id for record in statements]
            await self.bring_back([*ids, *also, *self.archive.current_on(statements)])

    async def _mark_contradictions(self, records: Sequence[Record]) -> None:
        draft, changed = Draft(self.store), dict[str, Record]()
        for record in records:
            if record.fact is None or record.superseded_by is not None:
                continue
            others = await draft.on_matter(record)
            rivals = [changed.get(one.id, one) for one in (record, *others)]
            changed |= {one.id: one for one in marked_contradictions(rivals)}
        if changed:
            await self.store.update(list(changed.values()))
