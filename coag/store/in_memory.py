"""A store in this process's memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from coag.errors import RecordStoreError
from coag.schema import MemoryKind, RecalledRecord, Record

from .embedders import Embedder, QueryVectors, score_of, text_vectors
from .filters import EVERYTHING, Condition
from .indexed import IndexedStore, Vectors
from .named_embedders import embedder_of
from .records import Fields, StoredRow
from .search import Search, best_with_ties

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
        self._memory = MemoryTable(embedder_of(embedder))
        super().__init__(self._memory)

    @property
    def empty(self) -> bool:
        """Whether it is open and holds nothing, so that no search can find anything."""
        return not self._memory.closed and not any(map(self._memory.count, MemoryKind))

    async def _run(self, work: Callable[..., _T], *arguments: Any, embeds: bool = False) -> _T:
        """Only an embedder may take its time."""
        if embeds:
            self._memory.connect()
            return await asyncio.to_thread(work, *arguments)
        return work(*arguments)

    def _asks_embedder(self, search: Search) -> bool:
        known = search.text is None or self._memory.queries.knows(search.text)
        return not known and self._memory.count(search.kind) > 0


class MemoryTable:
    """Records and vectors in memory, one matrix for each kind."""

    shared = False

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.queries = QueryVectors(embedder)
        self.closed = False
        self.writing = threading.RLock()
        self._kinds: dict[MemoryKind, _Rows] = {}

    def connect(self) -> None:
        """Refuses everything once it was closed."""
        if self.closed:
            raise RecordStoreError("This store was closed.")

    def vectors(self, rows: Sequence[StoredRow]) -> Vectors:
        """The vectors of those records that are not known yet."""
        known = self.known([row.record.id for row in rows])
        new = [row.record for row in rows if row.record.id not in known]
        made = text_vectors(self.embedder, [record.text for record in new]) if new else ()
        return {record.id: vector for record, vector in zip(new, made, strict=True)}

    def known(self, ids: Sequence[str]) -> set[str]:
        """Those of these ids of which there are records."""
        return {one for one in ids for rows in list(self._kinds.values()) if one in rows.places}

    def add(self, rows: Sequence[StoredRow], vectors: Vectors) -> None:
        """Stores records whose ids are new."""
        missing = [row for row in rows if row.record.id not in vectors]
        made = {**vectors, **self.vectors(missing)}
        for row in rows:
            self._of(row.record.kind).append(row.record, row.flat, made[row.record.id])

    def upsert(self, rows: Sequence[StoredRow], vectors: Vectors) -> None:
        """Writes records, whether their ids are new or not."""
        known = self.known([row.record.id for row in rows])
        self.add([row for row in rows if row.record.id not in known], vectors)
        self.update([row for row in rows if row.record.id in known], {})

    def update(self, rows: Sequence[StoredRow], stored: Mapping[str, Record]) -> None:
        """Writes over all of records but their vectors."""
        for row in rows:
            kind = self._of(row.record.kind)
            place = kind.places[row.record.id]
            kind.records[place], kind.fields[place] = row.record, row.flat

    def get(self, ids: Sequence[str], kind: MemoryKind | None = None) -> dict[str, Record]:
        """The records with these ids, by id."""
        found: dict[str, Record] = {}
        for rows in list(self._kinds.values()):
            found |= {one: rows.records[rows.places[one]] for one in ids if one in rows.places}
        return found

    def all(self, kind: MemoryKind, condition: Condition) -> list[Record]:
        """Every record that passes."""
        rows = self._of(kind)
        pairs = zip(rows.records, rows.fields, strict=False)  # one may be on its way
        return [record for record, fields in pairs if condition.matches(fields)]

    def ids(self, kind: MemoryKind, condition: Condition | None = None) -> list[str]:
        """The ids of all records that pass."""
        return [record.id for record in self.all(kind, condition or EVERYTHING)]

    def similar(self, search: Search, condition: Condition, minimum: float) -> list[RecalledRecord]:
        """The k nearest records that pass, and those that tie with the last of them."""
        hits = self._hits(search.kind, search.text or "", condition, minimum)
        return best_with_ties(hits, search.k)

    def nearest(
        self, kind: MemoryKind, text: str, count: int, condition: Condition | None = None
    ) -> dict[str, float]:
        """The ids of the records nearest in meaning, of those that pass, with their scores."""
        hits = self._hits(kind, text, condition or EVERYTHING, -1.0)
        return {hit.record.id: hit.score for hit in islice(hits, count)}

    def count(self, kind: MemoryKind) -> int:
        """How many records of this kind there are."""
        return len(self._kinds[kind].records) if kind in self._kinds else 0

    def delete(self, ids: Sequence[str]) -> None:
        """Removes records for good, known or not."""
        for kind, rows in list(self._kinds.items()):
            if not rows.places.keys().isdisjoint(ids):
                self._kinds[kind] = rows.without(frozenset(ids))

    def close(self) -> None:
        """Refuses everything from now on."""
        self.closed = True

    def _of(self, kind: MemoryKind) -> _Rows:
        if kind not in self._kinds:
            self._kinds[kind] = _Rows(self.embedder.dimension)
        return self._kinds[kind]

    def _hits(
        self, kind: MemoryKind, text: str, condition: Condition, minimum: float
    ) -> Iterator[RecalledRecord]:
        """The records that pass, best first, down to a score."""
        if not self.count(kind) or (query := self.queries.of(text)) is None:
            return
        rows = self._of(kind)
        for place, score in rows.best_first(query):
            if score < minimum:
                return
            if condition.matches(rows.fields[place]):
                yield RecalledRecord(record=rows.records[place], score=score)


class _Rows:
    """The records of one kind with their fields and vectors, in the order in which they came."""

    def __init__(self, dimension: int) -> None:
        import numpy as np

        self.records: list[Record] = []
        self.fields: list[Fields] = []
        self.places: dict[str, int] = {}
        self._vectors: NDArray[np.float32] = np.zeros((64, dimension), dtype=np.float32)

    def append(self, record: Record, fields: Fields, vector: NDArray[np.float32]) -> None:
        import numpy as np

        place = len(self.records)
        if place == len(self._vectors):
            self._vectors = np.concatenate([self._vectors, np.zeros_like(self._vectors)])
        self._vectors[place] = vector
        self.fields.append(fields)  # before the record: a reader in another thread finds both
        self.records.append(record)
        self.places[record.id] = place

    def without(self, ids: frozenset[str]) -> _Rows:
        """The other records."""
        left = _Rows(self._vectors.shape[1])
        for place, record in enumerate(self.records):
            if record.id not in ids:
                left.append(record, self.fields[place], self._vectors[place])
        return left

    def best_first(self, query: NDArray[np.float32]) -> Iterator[tuple[int, float]]:
        """Every row's place and score for a query vector, best first."""
        import numpy as np

        scores = self._vectors[: len(self.records)] @ query
        for place in np.argsort(-scores, kind="stable"):
            yield int(place), score_of(scores.item(int(place)))
