"""What a record has to do with others, looked up for a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coag.memory import LongTermMemory, derived_levels
from coag.schema import Provenance, Record
from coag.store import RecordStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A record among those that it has to do with."""

    record: Record
    chain: tuple[Record, ...]
    """What stood in its place before and since, oldest first, with the record itself."""
    sources: tuple[Record, ...]
    """What it was concluded from, as far as it is there."""
    lost: tuple[str, ...]
    """Ids of what it was concluded from and is gone."""
    derived: tuple[Record, ...]
    """What was concluded from it, directly."""
    contradicts: tuple[Record, ...]
    """What says otherwise."""
    origins: tuple[Provenance, ...]
    """Where its text came from, the first one first."""


async def family_of(store: RecordStore, record: Record) -> Family:
    """A record among those that it has to do with; reads the whole store once.

    Raises:
        RecordStoreError: If the store cannot be reached.
    """
    lineage = record.lineage
    sources = await store.get(list(lineage.derived_from))
    there = {source.id for source in sources}
    derived: list[Record] = []
    async for records in store.scan():
        derived += [one for one in records if record.id in one.lineage.derived_from]
    chain = await LongTermMemory(store, scope=record.scope).history(record.id)
    return Family(
        record=record,
        chain=chain,
        sources=tuple(sources),
        lost=tuple(name for name in lineage.derived_from if name not in there),
        derived=tuple(derived),
        contradicts=tuple(await store.get(list(lineage.contradicts))),
        origins=(record.provenance, *lineage.also_from),
    )


async def resting_on(
    store: RecordStore, name: str, *, scopes: Sequence[str] | None = None
) -> tuple[Record, ...]:
    """All that was concluded from a record and from what was: what goes if it is revoked.

    Reads the whole store once, and keeps the links of what was concluded from something.

    Args:
        store: Where they rest.
        name: Id of the record; it is not part of the answer.
        scopes: Whose records; None for everyone's.

    Raises:
        RecordStoreError: If the store cannot be reached.
    """
    sources: dict[str, tuple[str, ...]] = {}
    async for records in store.scan(scopes=scopes):
        concluded = (record for record in records if record.lineage.derived_from)
        sources.update({record.id: record.lineage.derived_from for record in concluded})
    _, *levels = derived_levels(name, sources)
    return tuple(await store.get([one for level in levels for one in level]))
