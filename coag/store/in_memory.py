"""A store in this process's memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from coag.errors import RecordStoreError
from coag.schema import MemoryKind, RecalledRecord, Record

from .embedders import Embedder, QueryVectors, row_products, score_of, text_vectors
from .embedders_by_name import embedder_of
from .filters import EVERYTHING, Condition
from .indexed import IndexedStore, Vectors
from .records import Fields, StoredRow
from .search import Search

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_T = TypeVar("_T")


class InMemoryStore(IndexedStore):
    """Records in memory, searched exactly; gone with the process.

    Args:
        embedder: None for `WordLlamaEmbedder`; it may be given by its name, see `embedder_of`.

    Raises:
        ConfigurationError: If there is no embedder of that name.
    """

    def __init__(self, embedder: Embedder | str | None = None) -> None:
        self._memory = _MemoryTable(embedder_of(embedder))
        super().__init__(self._memory)

    @property
    def empty(self) -> bool:
        """Whether it is open and holds nothing, so that no search can find anything."""
        return not self._memory.closed and not any(map(self._memory.count, MemoryKind))

    def vectors_of(self, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The unit vectors of those of these records that are here, by id."""
        return self._memory.vectors_of(ids)

    async def _run(self, work: Callable[[], _T], *, embeds: bool = False) -> _T:
        """Only an embedder may take its time."""
        return await asyncio.to_thread(work) if embeds else work()

    def _search(self, search: Search, condition: Condition) -> list[RecalledRecord]:
        if not self._memory.count(search.kind):
            return []  # without waiting until a search in another thread has ended
        return super()._search(search, condition)

    def _asks_embedder(self, search: Search) -> bool:
        known = search.text is None or self._memory.queries.knows(search.text)
        return not known and self._memory.count(search.kind) > 0


class _MemoryTable:
    """Records and vectors in memory, one matrix for each kind; as `IndexedStore` wants it."""

    shared = False

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.queries = QueryVectors(embedder)
        self.closed = False
        self.writing = threading.RLock()
        self._kinds = {kind: _Rows() for kind in MemoryKind}

    def connect(self) -> None:
        if self.closed:
            raise RecordStoreError("This store was closed.")

    def vectors(self, rows: Sequence[StoredRow]) -> Vectors:
        known = self.known([row.record.id for row in rows])
        new = [row.record for row in rows if row.record.id not in known]
        made = text_vectors(self.embedder, [record.text for record in new]) if new else ()
        return {record.id: vector for record, vector in zip(new, made, strict=True)}

    def vectors_of(self, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        found: dict[str, NDArray[np.float32]] = {}
        for rows in self._kinds.values():
            found |= {one: rows.vector(one) for one in ids if one in rows.places}
        return found

    def known(self, ids: Sequence[str]) -> set[str]:
        return {one for one in ids if any(one in rows.places for rows in self._kinds.values())}

    def add(self, rows: Sequence[StoredRow], vectors: Vectors) -> None:
        missing = [row for row in rows if row.record.id not in vectors]
        made = {**vectors, **self.vectors(missing)}
        for row in rows:
            self._kinds[row.record.kind].append(row.record, row.flat, made[row.record.id])

    def upsert(self, rows: Sequence[StoredRow], vectors: Vectors) -> None:
        known = self.known([row.record.id for row in rows])
        self.add([row for row in rows if row.record.id not in known], vectors)
        self.update([row for row in rows if row.record.id in known], {})

    def update(self, rows: Sequence[StoredRow], stored: Mapping[str, Record]) -> None:
        for row in rows:
            kind = self._kinds[row.record.kind]
            place = kind.places[row.record.id]
            kind.records[place], kind.fields[place] = row.record, row.flat

    def get(self, ids: Sequence[str], kind: MemoryKind | None = None) -> dict[str, Record]:
        found: dict[str, Record] = {}
        for rows in self._kinds.values():
            found |= {one: rows.records[rows.places[one]] for one in ids if one in rows.places}
        return found

    def all(self, kind: MemoryKind, condition: Condition) -> list[Record]:
        rows = self._kinds[kind]
        pairs = zip(rows.records, rows.fields, strict=False)  # one may be on its way
        return [record for record, fields in pairs if condition.matches(fields)]

    def ids(self, kind: MemoryKind, condition: Condition = EVERYTHING) -> list[str]:
        return [record.id for record in self.all(kind, condition)]

    def similar(self, search: Search, condition: Condition, minimum: float) -> list[RecalledRecord]:
        """The k nearest, and those that tie with the last of them."""
        kept: list[RecalledRecord] = []
        for hit in self._hits(search.kind, search.text or "", condition, minimum):
            if len(kept) >= search.k and hit.score < kept[-1].score:
                break
            kept.append(hit)
        return kept

    def nearest(
        self, kind: MemoryKind, text: str, count: int, condition: Condition = EVERYTHING
    ) -> dict[str, float]:
        hits = self._hits(kind, text, condition, -1.0)
        return {hit.record.id: hit.score for hit in islice(hits, count)}

    def count(self, kind: MemoryKind) -> int:
        return len(self._kinds[kind].records)

    def delete(self, ids: Sequence[str]) -> None:
        for kind, rows in self._kinds.items():
            if not rows.places.keys().isdisjoint(ids):
                self._kinds[kind] = rows.without(frozenset(ids))

    def close(self) -> None:
        self.closed = True

    def _hits(
        self, kind: MemoryKind, text: str, condition: Condition, minimum: float
    ) -> Iterator[RecalledRecord]:
        """The records that pass, best first, down to a score."""
        if not self.count(kind) or (query := self.queries.of(text)) is None:
            return
        rows = self._kinds[kind]
        for place, score in rows.best_first(query):
            if score < minimum:
                return
            if condition.matches(rows.fields[place]):
                yield RecalledRecord(record=rows.records[place], score=score)


class _Rows:
    """The records of one kind with their fields and vectors, in the order in which they came."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.fields: list[Fields] = []
        self.places: dict[str, int] = {}
        self._vectors: NDArray[np.float32] | None = None
        """Room for the vectors of these and of more to come; made for the first."""

    def append(self, record: Record, fields: Fields, vector: NDArray[np.float32]) -> None:
        import numpy as np

        place = len(self.records)
        if self._vectors is None:
            self._vectors = np.zeros((64, len(vector)), dtype=np.float32)
        elif place == len(self._vectors):
            self._vectors = np.concatenate([self._vectors, np.zeros_like(self._vectors)])
        self._vectors[place] = vector
        self.fields.append(fields)  # before the record: a reader in another thread finds both
        self.records.append(record)
        self.places[record.id] = place

    def vector(self, record: str) -> NDArray[np.float32]:
        assert self._vectors is not None  # there is this record
        return self._vectors[self.places[record]]

    def without(self, ids: frozenset[str]) -> _Rows:
        left = _Rows()
        for place, record in enumerate(self.records):
            if record.id not in ids and self._vectors is not None:
                left.append(record, self.fields[place], self._vectors[place])
        return left

    def best_first(self, query: NDArray[np.float32]) -> Iterator[tuple[int, float]]:
        """Every row's place and score for a query vector, best first."""
        import numpy as np

        assert self._vectors is not None  # there are records
        rows = self._vectors[: len(self.records)]
        scores = row_products(rows, query)
        for place in np.argsort(-scores, kind="stable"):
            yield int(place), score_of(scores.item(int(place)))
