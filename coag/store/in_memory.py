"""A store in this process's memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from coag.errors import RecordStoreError
from coag.schema import MemoryKind, RecalledRecord, Record

from .embedders import Embedder, QueryVectors, VectorTable, text_vectors
from .hybrid import Hybrid, told_apart
from .lexicon import Lexicon, leaf_of
from .named_embedders import embedder_of
from .search import (
    AllOf,
    Condition,
    Fields,
    Ranking,
    Search,
    best_with_ties,
    checked_update,
    condition_of,
    flat_fields,
    listed,
    ranked,
    scanned,
    superseded_pair,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class InMemoryStore:
    """Records in memory, searched exactly; gone with the process.

    Args:
        embedder: None for `WordLlamaEmbedder`; it may be given by its name, see `embedder_of`.

    Raises:
        ConfigurationError: If there is no embedder of that name.
    """

    def __init__(self, embedder: Embedder | str | None = None) -> None:
        self.embedder: Embedder = embedder_of(embedder)
        self._queries = QueryVectors(self.embedder)
        self._shelves: dict[MemoryKind, _Shelf] = {}
        self._lexicon: Lexicon | None = None
        self._closed = False

    @property
    def empty(self) -> bool:
        """Whether it is open and holds nothing, so that no search can find anything."""
        return not self._closed and not any(shelf.records for shelf in self._shelves.values())

    async def add(self, records: Sequence[Record]) -> list[str]:
        """See `RecordStore.add`."""
        self._check_open()
        first: dict[str, Record] = {}
        for record in records:
            first.setdefault(record.id, record)
        new = [record for record in first.values() if self._find(record.id) is None]
        fields = [flat_fields(record) for record in new]
        if not new:
            return []
        vectors = await asyncio.to_thread(text_vectors, self.embedder, [r.text for r in new])
        stored: list[str] = []
        for record, flat, vector in zip(new, fields, vectors, strict=True):
            if self._find(record.id) is None:  # not added twice here, nor while we embedded
                self._shelf(record.kind).append(record, flat, vector)
                stored.append(record.id)
        self._index(stored)
        return stored

    async def supersede(self, old_id: str, new: Record) -> Record:
        """See `RecordStore.supersede`."""
        self._check_open()
        flat_fields(new)  # refuses it before anything is stored
        superseded_pair(old_id, self._find(old_id), new, self._find(new.id))
        await self.add([new])
        old, current = superseded_pair(old_id, self._find(old_id), new, self._find(new.id))
        self._shelf(old.kind).replace(old)
        self._shelf(current.kind).replace(current)
        self._index([old.id, current.id])
        return current

    async def update(self, records: Sequence[Record]) -> list[Record]:
        """See `RecordStore.update`."""
        self._check_open()
        stored = {record.id: record for record in await self.get([one.id for one in records])}
        updated = checked_update(records, stored)
        for record in updated.values():
            self._shelf(record.kind).replace(record)
        self._index(list(updated))
        return [updated[record.id] for record in records]

    async def get(self, ids: Sequence[str]) -> list[Record]:
        """See `RecordStore.get`."""
        self._check_open()
        found = (self._find(record_id) for record_id in ids)
        return [record for record in found if record is not None]

    async def search(self, search: Search) -> list[RecalledRecord]:
        """See `RecordStore.search`."""
        self._check_open()
        condition = condition_of(search)
        shelf = self._shelves.get(search.kind)
        if shelf is None or search.is_empty:
            return []
        if search.text is None:
            return listed(shelf.matching(condition), search.k)
        if search.ranking is not None:
            return await self._hybrid(search, search.ranking, condition, shelf)
        query = await self._vector(search.text)
        if query is None:
            return []
        minimum = search.min_score
        if minimum is None:
            minimum = self.embedder.minimum_similarity
        hits = shelf.similar(condition, query, minimum)
        return ranked(best_with_ties(hits, search.k), search.k)

    async def _hybrid(
        self, search: Search, ranking: Ranking, condition: Condition, shelf: _Shelf
    ) -> list[RecalledRecord]:
        hybrid = Hybrid(self._words())
        question = hybrid.question(search)
        vector = await self._vector(question.text)
        self._check_open()

        def nearest(passing: bool) -> dict[str, float]:
            wanted = condition if passing else AllOf(parts=())
            if vector is None:
                return {}
            hits = shelf.similar(wanted, vector, -1.0)
            return {hit.record.id: hit.score for hit in islice(hits, ranking.pool)}

        found = hybrid.ranked(
            question, search, condition, nearest, self.embedder.minimum_similarity
        )
        told, _ = told_apart(found, self._records, search.k, ranking.alike)
        return told

    def _records(self, ids: Sequence[str]) -> dict[str, Record]:
        found = (self._find(record_id) for record_id in ids)
        return {record.id: record for record in found if record is not None}

    async def _vector(self, text: str) -> NDArray[np.float32] | None:
        if self._queries.knows(text):
            return self._queries.of(text)
        return await asyncio.to_thread(self._queries.of, text)

    def _words(self) -> Lexicon:
        """The words of all records; made at the first recall that asks for them."""
        if self._lexicon is None:
            self._lexicon = Lexicon()
            self._index([r.id for shelf in self._shelves.values() for r in shelf.records])
        return self._lexicon

    def _index(self, ids: Sequence[str]) -> None:
        if self._lexicon is not None:
            found = (self._find(record_id) for record_id in ids)
            records = [record for record in found if record is not None]
            self._lexicon.put(leaf_of(record, flat_fields(record)) for record in records)

    async def count(self, kind: MemoryKind) -> int:
        """See `RecordStore.count`."""
        self._check_open()
        shelf = self._shelves.get(kind)
        return 0 if shelf is None else len(shelf.records)

    async def scan(
        self,
        *,
        kind: MemoryKind | None = None,
        scopes: Sequence[str] | None = None,
        batch: int = 500,
    ) -> AsyncIterator[list[Record]]:
        """See `RecordStore.scan`."""
        self._check_open()
        kinds, condition = scanned(kind, scopes, batch)
        ids = [one.id for kind in kinds for one in self._shelf(kind).matching(condition)]
        for start in range(0, len(ids), batch):
            if records := await self.get(ids[start : start + batch]):
                yield records

    async def delete(self, ids: Sequence[str]) -> list[str]:
        """See `RecordStore.delete`."""
        self._check_open()
        gone = [one for one in dict.fromkeys(ids) if self._find(one) is not None]
        if self._lexicon is not None:
            self._lexicon.drop(gone)
        self._shelves = {kind: shelf.without(gone) for kind, shelf in self._shelves.items()}
        return gone

    async def forget(self, scope: str) -> int:
        """See `RecordStore.forget`."""
        held = (record for shelf in self._shelves.values() for record in shelf.records)
        return len(await self.delete([record.id for record in held if record.scope == scope]))

    async def close(self) -> None:
        """Refuses everything from now on."""
        self._closed = True
        if self._lexicon is not None:
            self._lexicon.close()
            self._lexicon = None

    def _check_open(self) -> None:
        if self._closed:
            raise RecordStoreError("This store was closed.")

    def _shelf(self, kind: MemoryKind) -> _Shelf:
        if kind not in self._shelves:
            self._shelves[kind] = _Shelf(self.embedder.dimension)
        return self._shelves[kind]

    def _find(self, record_id: str) -> Record | None:
        found = (shelf.find(record_id) for shelf in self._shelves.values())
        return next((record for record in found if record is not None), None)


class _Shelf:
    """The records of one kind, row by row, with their fields and vectors."""

    def __init__(self, dimension: int) -> None:
        self.records: list[Record] = []
        self.vectors = VectorTable(dimension)
        self._fields: list[Fields] = []
        self._rows: dict[str, int] = {}

    def append(self, record: Record, fields: Fields, vector: NDArray[np.float32]) -> None:
        self._rows[record.id] = len(self.records)
        self.records.append(record)
        self._fields.append(fields)
        self.vectors.append(vector)

    def replace(self, record: Record) -> None:
        row = self._rows[record.id]
        self.records[row], self._fields[row] = record, flat_fields(record)

    def without(self, ids: Collection[str]) -> _Shelf:
        """A shelf with the other records."""
        if self._rows.keys().isdisjoint(ids):
            return self
        gone = frozenset(ids)
        left = _Shelf(self.vectors.dimension)
        for row, record in enumerate(self.records):
            if record.id not in gone:
                left.append(record, self._fields[row], self.vectors.row(row))
        return left

    def find(self, record_id: str) -> Record | None:
        row = self._rows.get(record_id)
        return None if row is None else self.records[row]

    def matching(self, condition: Condition) -> Iterator[Record]:
        for record, fields in zip(self.records, self._fields, strict=True):
            if condition.matches(fields):
                yield record

    def similar(
        self, condition: Condition, query: NDArray[np.float32], minimum: float
    ) -> Iterator[RecalledRecord]:
        for row, score in self.vectors.best_first(query):
            if score < minimum:
                return
            if condition.matches(self._fields[row]):
                yield RecalledRecord(record=self.records[row], score=score)
