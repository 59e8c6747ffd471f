"""Making hold again what is superseded by something that is gone."""

from __future__ import annotations

from coag.memory import holding_again
from coag.store import RecordStore

_BATCH = 500


async def mend_chains(store: RecordStore) -> tuple[str, ...]:
    """Makes every record hold again that is superseded by one that is gone; gives their ids.

    The end of such a record's fact goes, too, since what set it is gone.

    Raises:
        RecordStoreError: If the store cannot be reached or written.
    """
    by: dict[str, str] = {}
    there: set[str] = set()
    async for records in store.scan(batch=_BATCH):
        there.update(record.id for record in records)
        by.update({one.id: one.superseded_by for one in records if one.superseded_by is not None})
    hidden = [name for name, other in by.items() if other not in there]
    for start in range(0, len(hidden), _BATCH):
        found = await store.get(hidden[start : start + _BATCH])
        current = [record.model_copy(update={"superseded_by": None}) for record in found]
        await store.update([holding_again(record) for record in current])
    return tuple(hidden)
