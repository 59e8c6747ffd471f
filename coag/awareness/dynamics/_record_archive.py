"""An archive whose items are records of long-term memory, in any store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError

from coag.awareness.state import folded
from coag.errors import AwarenessError
from coag.schema import (
    Clock,
    Event,
    Fact,
    MemoryKind,
    Moment,
    Provenance,
    RecalledRecord,
    Record,
    SystemClock,
    Trust,
    record_id,
)
from coag.store import RecordStore, Search

from ._archive import (
    ArchivedGoal,
    ArchivedItem,
    FoundBy,
    FoundItem,
    ItemKind,
    name_forms,
)

_ITEM = "awareness_item"
"""Metadata key under which a record has the whole item as JSON; filters tell by the next one."""
_IS_ITEM = "is_awareness_item"
_NAMED = "awareness_named "
"""Begins the metadata keys that say how an item is called."""
_MEMORIES: Mapping[ItemKind, MemoryKind] = {
    "goal": MemoryKind.EPISODIC,
    "entity": MemoryKind.SEMANTIC,
}
_READS: TypeAdapter[ArchivedItem] = TypeAdapter(ArchivedItem)


class RecordArchive:
    """Keeps goals as episodic records (what was tried, and how it ended) and things as semantic.

    What `put` gave back rests in the store; whoever reads the store finds it there as any record.

    Args:
        store: Where.
        scope: Whose records.
        run: What the records are said to stem from.
        trust: How far their text may steer the agent; what others said is untrusted.
        clock: Tells when a record is made.
    """

    def __init__(
        self,
        store: RecordStore,
        *,
        scope: str = "awareness",
        run: str = "",
        trust: Trust = Trust.UNTRUSTED,
        clock: Clock | None = None,
    ) -> None:
        self._store = store
        self._scope = scope
        self._run = run
        self._trust = trust
        self._clock = clock or SystemClock()

    def within(self, scope: str) -> RecordArchive:
        """See `ApartArchive.within`."""
        one = copy(self)
        one._scope = f"{self._scope} of {scope}"
        return one

    async def put(self, items: Sequence[ArchivedItem]) -> None:
        """See `Archive.put`.

        Raises:
            RecordStoreError: The store cannot be reached.
        """
        if not items:
            return
        now = self._clock.now()
        records = {record.id: record for record in (self._record(one, now) for one in items)}
        known = {record.id: record for record in await self._store.get(list(records))}
        await self._store.add([one for id, one in records.items() if id not in known])
        again = [
            one
            for id, one in records.items()
            if id in known and _left_at(one) >= _left_at(known[id])
        ]
        if again:
            await self._store.update(again)

    async def find(self, text: str, k: int, kind: ItemKind | None = None) -> Sequence[FoundItem]:
        """See `Archive.find`.

        Raises:
            AwarenessError: A record has been changed, so that it is no item any more.
            RecordStoreError: The store cannot be reached.
        """
        if not text.strip() or k < 1:
            return ()
        names = name_forms(text) | {folded(text)}
        named = [{f"{_NAMED}{form}": True} for form in sorted(names)]
        where = named[0] if len(named) == 1 else {"$or": named}
        by_name = await self._search(None, k, kind, where)
        found = [FoundItem(item=_item_of(one.record), by=FoundBy.NAME) for one in by_name[:k]]
        if len(found) < k:
            told = {one.record.id for one in by_name}
            similar = await self._search(text, k + len(told), kind, {_IS_ITEM: True})
            found += [
                FoundItem(item=_item_of(one.record), by=FoundBy.SCORE, score=one.score)
                for one in similar
                if one.record.id not in told
            ]
        return tuple(found[:k])

    async def _search(
        self, text: str | None, k: int, kind: ItemKind | None, where: Mapping[str, Any]
    ) -> list[RecalledRecord]:
        """What the memory of these items has, or both have, best first."""
        found: list[RecalledRecord] = []
        for memory in _MEMORIES.values() if kind is None else (_MEMORIES[kind],):
            asked = Search(text=text, kind=memory, k=k, scopes=(self._scope,), where=where)
            found += await self._store.search(asked)
        return sorted(found, key=lambda one: -one.score)

    def _record(self, item: ArchivedItem, now: Moment) -> Record:
        kind = _MEMORIES[item.kind]
        fact, event = _fact_of(item), None
        if isinstance(item, ArchivedGoal):
            event = Event(order=item.step, outcome=item.goal.status.value)
        return Record(
            id=record_id(kind, self._scope, item.name, fact),
            kind=kind,
            text=item.name,
            scope=self._scope,
            created_at=now,
            provenance=Provenance(
                run=self._run,
                activity="",
                cycle=item.step,
                source="awareness",
                source_kind="agent",
                trust=self._trust,
            ),
            type=item.kind,
            metadata={
                _ITEM: item.model_dump_json(),
                _IS_ITEM: True,
                **{f"{_NAMED}{name}": True for name in sorted(item.names)},
            },
            event=event,
            fact=fact,
        )


def _fact_of(item: ArchivedItem) -> Fact:
    """What makes two items of one text two records: the goal's id, or the thing's name."""
    if isinstance(item, ArchivedGoal):
        return Fact(subject=f"goal {item.goal.id}", attribute="status", value=item.goal.status)
    return Fact(subject=item.entity.name, attribute="type", value=item.entity.type)


def _left_at(record: Record) -> datetime:
    """When what a record holds left; the beginning of time where that is not known."""
    try:
        left = _item_of(record).at
    except AwarenessError:  # a changed record is no item any more: any item may take its place
        left = None
    return left or datetime.min.replace(tzinfo=UTC)


def _item_of(record: Record) -> ArchivedItem:
    try:
        return _READS.validate_json(str(record.metadata.get(_ITEM, "")))
    except ValidationError as error:
        raise AwarenessError(
            f"Record {record.id!r} is marked as an archived item, but its {_ITEM!r} cannot be "
            "read: it was changed, or written by another version. Remove the record by its id."
        ) from error
