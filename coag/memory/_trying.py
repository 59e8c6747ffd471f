"""Finding out what a revocation would take back, without taking back anything."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from coag.errors import RecordStoreError
from coag.schema import MemoryKind, RecalledRecord, Record
from coag.store import RecordStore, Search, WrappedStore

from ._disowning import revoke_origin
from ._long_term import LongTermMemory
from ._records import EVERYTHING
from ._revoking import Revocation

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
