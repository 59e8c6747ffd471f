"""Many records written together: few questions to the store, and one write a batch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence

from coag.errors import RecordStoreError
from coag.schema import Record
from coag.store import RecordStore

from ._draft import Draft
from ._lineage import concludes
from ._records import Matter, StoredRecords, in_other_memory, matter_asked
from ._results import Remembered
from ._scopes import Scopes
from ._telling import ToRemember
from ._writing import Writer

_BREATH = 50
"""After so many records other tasks of the loop have their turn."""


Told = tuple[Record, ToRemember]
"""A record as it is by itself, and what it was made of."""


def together(told: Iterable[Told], most: int) -> Iterator[list[Told]]:
    """What can be written at once: at most so many, and no two that change one another's place.

    So every batch can be repeated after it was broken off: of all that is said on one matter,
    at most one word was said in it.
    """
    batch: list[Told] = []
    taken: set[Matter | str] = set()
    for one in told:
        record, given = one
        keys = {matter_asked(record), given.supersedes} - {None}
        if keys & taken:
            yield batch
            batch, taken = [], set()
        batch.append(one)
        taken.update(key for key in (*keys, record.id) if key is not None)
        if len(batch) == most:
            yield batch
            batch, taken = [], set()
    if batch:
        yield batch


async def written_together(
    store: RecordStore, batch: Sequence[Told], scopes: Scopes
) -> tuple[Remembered, ...]:
    """Writes a batch by the rules of a single write, without looking for near duplicates.

    Args:
        store: Where they go.
        batch: What there is to say, see `together`.
        scopes: From whose records something may be derived.

    Raises:
        ValueError: If what one is derived from is not there; nothing of the batch is written then.
        RecordStoreError: If the store refuses or cannot be reached.
    """
    draft = Draft(store)
    await _look_up(draft, batch)
    writer = Writer(draft, scopes.readable)
    told: list[Remembered] = []
    for place, (record, given) in enumerate(batch):
        told.append(await writer.write(record, given))
        if place % _BREATH == _BREATH - 1:
            await asyncio.sleep(0)
    await draft.carry_out()
    return tuple(told)


async def written_singly(
    store: RecordStore, batch: Sequence[Told], scopes: Scopes
) -> tuple[Remembered, ...]:
    """Writes a batch one by one, near duplicates being looked for; see `written_together`.

    Raises:
        ValueError: If what one is derived from is not there; those before it are written then.
        RecordStoreError: If the store refuses or cannot be reached.
    """
    writer = Writer(StoredRecords(store), scopes.readable)
    return tuple([await writer.write(record, given) for record, given in batch])


def broken_off(done: int, batch: int, error: RecordStoreError) -> RecordStoreError:
    """What to tell when the store fails in the middle."""
    return RecordStoreError(
        f"{done} text(s) were remembered before this; of the next {batch} a part may be. Go on "
        f"with these: what is there already stays as it is. {error}"
    )


async def _look_up(draft: Draft, batch: Sequence[Told]) -> None:
    """Learns in few questions all that the rules will ask for."""
    records = [record for record, _ in batch]
    named = {one for _, given in batch for one in (given.supersedes, *given.derived_from) if one}
    named.update(in_other_memory(record) for record in records if concludes(record))
    await draft.look_up([*(record.id for record in records), *sorted(named)])
    known = await draft.get([record.id for record in records])
    await draft.look_up_matters([*known, *records])
