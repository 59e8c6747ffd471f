"""Many writes drafted over what is stored, then carried out at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from coag.schema import Record
from coag.store import RecordStore, Search, superseded_pair

from ._records import EVERYTHING, Matter, StoredRecords, matter_asked, matter_of

_MATTERS = 100
"""So many matters are asked for at once."""


class Draft:
    """The records as they will stand; nothing is stored before `carry_out`.

    Whatever is asked for and was not looked up before is looked up then.

    Args:
        store: Where the records rest.
    """

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._stored: dict[str, Record] = {}
        self._now: dict[str, Record | None] = {}
        """Each record that was looked up or written; None for one that is not there."""
        self._asked: set[Matter] = set()
        """The matters on which all current records are known."""
        self._on: dict[Matter, dict[str, None]] = {}
        """Ids of the records that are known, by their matter."""

    async def look_up(self, ids: Iterable[str]) -> None:
        """Learns which of these records there are, in one question."""
        wanted = [one for one in dict.fromkeys(ids) if one not in self._now]
        if not wanted:
            return
        found = {record.id: record for record in await self._store.get(wanted)}
        for one in wanted:
            self._now[one] = None
            if one in found:
                self._learn(found[one])

    async def look_up_matters(self, records: Iterable[Record]) -> None:
        """Learns what holds on the matters of these records, in few questions."""
        asked = {matter for record in records if (matter := matter_asked(record)) is not None}
        for some in _together(asked - self._asked):
            kind, scope, _, _ = some[0]
            search = Search(
                text=None,
                kind=kind,
                k=EVERYTHING,
                scopes=(scope,),
                where={
                    "subject": {"$in": sorted({subject for _, _, subject, _ in some})},
                    "attribute": {"$in": sorted({attribute for *_, attribute in some})},
                },
            )
            hits = await self._store.search(search)
            for hit in hits:
                self._learn(hit.record)
            self._asked.update(some)

    async def get(self, ids: Sequence[str]) -> list[Record]:
        """See `Records.get`."""
        await self.look_up(ids)
        found = (self._now[one] for one in ids)
        return [record for record in found if record is not None]

    async def add(self, records: Sequence[Record]) -> None:
        """See `Records.add`."""
        await self.look_up(record.id for record in records)
        for record in records:
            if self._now[record.id] is None:
                self._put(record)

    async def supersede(self, old_id: str, new: Record) -> Record:
        """See `Records.supersede`."""
        await self.look_up((old_id, new.id))
        pair = superseded_pair(old_id, self._now[old_id], new, self._now[new.id])
        for record in pair:
            self._put(record)
        return pair[1]

    async def update(self, records: Sequence[Record]) -> None:
        """See `Records.update`."""
        for record in records:
            self._put(record)

    async def on_matter(self, record: Record) -> list[Record]:
        """See `Records.on_matter`."""
        matter = matter_asked(record)
        if matter is None:
            return []
        await self.look_up_matters([record])
        found = (self._now[name] for name in self._on.get(matter, {}) if name != record.id)
        return [one for one in found if one is not None and one.superseded_by is None]

    async def all_on_matter(self, record: Record) -> list[Record]:
        """See `Records.all_on_matter`."""
        matter = matter_asked(record)
        if matter is None:
            return []
        for one in await StoredRecords(self._store).all_on_matter(record):
            self._learn(one)
        found = (self._now[name] for name in self._on.get(matter, {}) if name != record.id)
        return [one for one in found if one is not None]

    async def nearest(self, record: Record) -> list[Record]:
        """None: in a draft, records are not compared by their likeness."""
        del record
        return []

    async def carry_out(self) -> None:
        """Stores what is new, then what changed of what was there.

        Raises:
            RecordStoreError: If the store refuses or cannot be reached; a part may be stored.
        """
        held = [record for record in self._now.values() if record is not None]
        new = [record for record in held if record.id not in self._stored]
        changed = [r for r in held if r.id in self._stored and r != self._stored[r.id]]
        if new:
            await self._store.add(new)
        if changed:
            await self._store.update(changed)

    def _learn(self, record: Record) -> None:
        """Takes in a record as it is stored, unless it was changed here."""
        self._stored.setdefault(record.id, record)
        if self._now.get(record.id) is None:
            self._put(record)

    def _put(self, record: Record) -> None:
        if record.id in self._now and self._now[record.id] is None:
            del self._now[record.id]  # in the order in which they came
        self._now[record.id] = record
        matter = matter_of(record)
        if matter is not None:
            self._on.setdefault(matter, {})[record.id] = None


def _together(matters: Iterable[Matter]) -> Iterator[list[Matter]]:
    """Matters of one kind and scope, those of one attribute beside each other."""
    ordered = sorted(matters, key=lambda one: (one[0], one[1], one[3], one[2]))
    for _, group in groupby(ordered, key=lambda one: one[:2]):
        same = list(group)
        for start in range(0, len(same), _MATTERS):
            yield same[start : start + _MATTERS]
