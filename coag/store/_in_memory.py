"""A store in this process's memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from coag.errors import RecordStoreError
from coag.schema import MemoryKind, RecalledRecord, Record

from ._embedders import Embedder
from ._fields import flat_fields
from ._filters import Condition, Fields, condition_of
from ._order import best_with_ties, listed, ranked
from ._search import Search
from ._supersession import superseded_pair
from ._vectors import QueryVectors, VectorTable, text_vectors
from ._wordllama import WordLlamaEmbedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class InMemoryStore:
    """Records in memory, searched exactly; gone with the process.

    Args:
        embedder: None for `WordLlamaEmbedder`.
    """

    def __init__(self, embedder: Embedder | None = None) -> None:
        self.embedder: Embedder = embedder or WordLlamaEmbedder()
        self._queries = QueryVectors(self.embedder)
        self._shelves: dict[MemoryKind, _Shelf] = {}
        self._closed = False

    async def add(self, records: Sequence[Record]) -> list[str]:
        """See `RecordStore.add`."""
        self._check_open()
        new = [record for record in records if self._find(record.id) is None]
        fields = [flat_fields(record) for record in new]
        if not new:
            return []
        vectors = await asyncio.to_thread(text_vectors, self.embedder, [r.text for r in new])
        stored: list[str] = []
        for record, flat, vector in zip(new, fields, vectors, strict=True):
            if self._find(record.id) is None:  # not added twice here, nor while we embedded
                self._shelf(record.kind).append(record, flat, vector)
                stored.append(record.id)
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
        return current

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
        known = self._queries.knows(search.text)
        query = (
            self._queries.of(search.text)
            if known
            else await asyncio.to_thread(self._queries.of, search.text)
        )
        if query is None:
            return []
        minimum = search.min_score
        if minimum is None:
            minimum = self.embedder.minimum_similarity
        hits = shelf.similar(condition, query, minimum)
        return ranked(best_with_ties(hits, search.k), search.k)

    async def count(self, kind: MemoryKind) -> int:
        """See `RecordStore.count`."""
        self._check_open()
        shelf = self._shelves.get(kind)
        return 0 if shelf is None else len(shelf.records)

    async def forget(self, scope: str) -> int:
        """See `RecordStore.forget`."""
        self._check_open()
        before = sum(len(shelf.records) for shelf in self._shelves.values())
        self._shelves = {kind: shelf.without(scope) for kind, shelf in self._shelves.items()}
        return before - sum(len(shelf.records) for shelf in self._shelves.values())

    async def close(self) -> None:
        """Forgets nothing, but refuses everything from now on."""
        self._closed = True

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

    def without(self, scope: str) -> _Shelf:
        """A shelf with the records of other scopes."""
        left = _Shelf(self.vectors.dimension)
        for row, record in enumerate(self.records):
            if record.scope != scope:
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
