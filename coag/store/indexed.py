"""A store over a table of records with vectors and an index of their words.

The table holds the records; the lexicon is derived from it. A write is noted in the lexicon's
journal, done in the table, and then taken into the lexicon: wherever it is interrupted, the
journal shows at the next opening which records to look at again. RAM and Chroma are two tables.
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from coag.errors import RecordStoreError
from coag.schema import MemoryKind, RecalledRecord, Record

from .embedders import Embedder
from .filters import EVERYTHING, Condition, in_range, one_of
from .hybrid import hybrid_hits, without_repeats
from .lexical import IndexedRecord, Lexicon, LexiconError, indexed, same_entry, throw_away
from .records import StoredRow, checked_update, from_json, row_of, slices, superseded_pair
from .search import DEFAULT_RANKING, Search, check_scopes, condition_of, ranked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")

WRITTEN = "written"
"""Field of a shared table with the time of writing, in seconds since 1970."""
_BATCH = 1000
_LOOK_AGAIN = 1.0
"""Seconds after which a shared table is asked for what other processes wrote."""
_CLOCKS_APART = 10.0
"""Seconds by which the clocks of processes at one server may differ."""

Vectors = Mapping[str, "NDArray[np.float32]"]


class _RecordTable(Protocol):
    """Records with their vectors, in two collections by kind. Every method blocks.

    `connect` opens it unless it is open, and raises `RecordStoreError` once it was closed;
    `vectors` makes those that can be made before the table is locked. `add` takes records whose
    ids are new; `upsert` writes a few of one kind, all or none, new or not; `update` all of
    records but texts and vectors, `stored` being what there is. `ids` come in the order in which
    they were stored; `similar` are at least the k nearest that pass, `nearest` the ids of these
    with their scores.
    """

    embedder: Embedder
    shared: bool
    """Whether other processes write to it as well."""
    writing: threading.RLock
    """Held while something is written."""

    def connect(self) -> object: ...
    def vectors(self, rows: Sequence[StoredRow]) -> Vectors: ...
    def known(self, ids: Sequence[str]) -> set[str]: ...
    def add(self, rows: Sequence[StoredRow], vectors: Vectors) -> None: ...
    def upsert(self, rows: Sequence[StoredRow], vectors: Vectors) -> None: ...
    def update(self, rows: Sequence[StoredRow], stored: Mapping[str, Record]) -> None: ...
    def get(self, ids: Sequence[str], kind: MemoryKind | None = None) -> dict[str, Record]: ...
    def all(self, kind: MemoryKind, condition: Condition) -> list[Record]: ...
    def ids(self, kind: MemoryKind, condition: Condition = EVERYTHING) -> list[str]: ...
    def similar(
        self, search: Search, condition: Condition, minimum: float
    ) -> list[RecalledRecord]: ...
    def nearest(
        self, kind: MemoryKind, text: str, count: int, condition: Condition
    ) -> dict[str, float]: ...
    def count(self, kind: MemoryKind) -> int: ...
    def delete(self, ids: Sequence[str]) -> None: ...
    def close(self) -> None: ...


class _LexiconKeeper:
    """Opens the lexicon of a table, keeps it in line with the records, and makes it again.

    Its callers hold `table.writing`; it may block.

    Args:
        table: The records.
        path: The file of the lexicon, which then holds the records whole; None keeps it in RAM,
            made from the records when it is first asked for.
    """

    def __init__(self, table: _RecordTable, path: Path | None) -> None:
        self._table = table
        self._path = path
        self._lexicon: Lexicon | None = None
        self._behind = False
        """Whether the table may hold what the lexicon does not know of."""
        self._looked = 0.0
        """When, by a clock that never goes back, news were last asked for."""
        self._news_since = 0.0
        """The same in seconds since 1970, as records are marked with it."""

    def connect(self) -> None:
        """Opens the lexicon if it is a file, and repairs what an interrupted write left."""
        if self._path is not None:
            self._open()

    def close(self) -> None:
        """Releases the file."""
        if self._lexicon is not None:
            self._lexicon.close()
            self._lexicon = None

    @property
    def has_all(self) -> bool:
        """Whether it holds the records whole, as they are in the table."""
        return self._path is not None and not self._behind

    @contextmanager
    def following(self, ids: Sequence[str], rows: Sequence[StoredRow] = ()) -> Generator[None]:
        """Around a write of rows in the table, or a removal; if it cannot be noted, none is made.

        If the write fails, the table may hold a part of it; if the lexicon cannot follow, it is
        behind. Both are looked at before the next recall. In RAM it is made from all the records
        when it is first asked for, and need not follow before.
        """
        if self._lexicon is None:
            yield
            return
        entries = list(map(self._entry, rows))
        try:
            self._lexicon.begin(ids)
        except LexiconError as error:
            if not error.broken:
                raise
            self.remake(error).begin(ids)
        try:
            yield
        except BaseException:
            self._behind = True
            raise
        try:
            if rows:
                self._lexicon.put(entries)
            else:
                self._lexicon.drop(ids)
        except LexiconError as error:
            _LOG.warning("Records are stored, but not yet found by their words. %s", error)
            self._behind = True

    def up_to_date(self) -> Lexicon:
        """The lexicon, with all that was written here, and by others about a second ago."""
        lexicon = self._open()
        if self._behind:
            try:
                self._repair(lexicon)
                self._behind = False
            except LexiconError as error:
                if error.broken:
                    raise
                _LOG.warning("The last records are not yet found by their words. %s", error)
        if self._table.shared and time.monotonic() - self._looked > _LOOK_AGAIN:
            self._take_in_news(lexicon)
        return lexicon

    def remake(self, error: LexiconError) -> Lexicon:
        """Throws a broken lexicon away and makes it again: the table has all that was in it."""
        _LOG.warning("%s It is rebuilt from the records.", error)
        self.close()
        if self._path is not None:
            throw_away(self._path)
        self._lexicon = self._made()
        self._behind = False
        return self._lexicon

    def drop_gone(self) -> None:
        """Forgets what the table does not have any more."""
        lexicon = self._open()
        lexicon.drop(lexicon.other_than(self._ids()))

    def _entry(self, row: StoredRow) -> IndexedRecord:
        return indexed(row.record, row.flat, "" if self._path is None else row.rest)

    def _open(self) -> Lexicon:
        if self._lexicon is None:
            try:
                self._lexicon = self._made()
            except LexiconError as error:
                if not error.broken:
                    raise
                return self.remake(error)
        return self._lexicon

    def _made(self) -> Lexicon:
        lexicon = Lexicon(self._path)
        began, looked = time.time(), time.monotonic()
        try:
            known = lexicon.count()
            if known > len(lexicon.pending()) and not any(map(self._table.count, MemoryKind)):
                raise RecordStoreError(
                    f"The index of words at {self._path} knows {known} record(s), but Chroma has "
                    "none: its files were removed or emptied. Bring them back from a copy; to "
                    "start again, remove the index, too."
                )
            self._repair(lexicon)
        except RecordStoreError:
            lexicon.close()
            raise
        self._news_since, self._looked = began, looked
        return lexicon

    def _repair(self, lexicon: Lexicon) -> None:
        """Brings the lexicon to what the table holds."""
        pending = lexicon.pending()
        if pending:
            _LOG.warning("Looking again at %d record(s) of an interrupted write.", len(pending))
            self._look_at(lexicon, pending)
        known, held = lexicon.count(), sum(map(self._table.count, MemoryKind))
        if known != held:
            level = logging.INFO if self._path is None else logging.WARNING
            message = "The index of words has %d record(s), Chroma has %d: it is rebuilt."
            _LOG.log(level, message, known, held)
            ids = self._ids()
            lexicon.drop(lexicon.other_than(ids))
            self._look_at(lexicon, ids)

    def _ids(self) -> list[str]:
        return [one for kind in MemoryKind for one in self._table.ids(kind)]

    def _take_in_news(self, lexicon: Lexicon) -> None:
        """What other processes wrote since the last look."""
        recent = in_range(WRITTEN, "$gte", self._news_since - _CLOCKS_APART)
        began, looked = time.time(), time.monotonic()
        for kind in MemoryKind:
            ids = self._table.ids(kind, recent)
            known = lexicon.entries(ids)
            news = [self._entry(row_of(record)) for record in self._table.get(ids).values()]
            lexicon.put(
                one
                for one in news
                if one.entry.id not in known or not same_entry(one.entry, known[one.entry.id])
            )
        self._news_since, self._looked = began, looked

    def _look_at(self, lexicon: Lexicon, ids: Sequence[str]) -> None:
        for some in slices(ids, _BATCH):
            records = self._table.get(some)
            there = [records[one] for one in some if one in records]
            lexicon.put([self._entry(row_of(record)) for record in there])
            lexicon.drop([one for one in some if one not in records])


class IndexedStore(ABC):
    """A `RecordStore` over a table and its lexicon; only where its work runs is left open."""

    def __init__(self, table: _RecordTable, words: Path | None = None) -> None:
        self.embedder: Embedder = table.embedder
        self._table = table
        self._words = _LexiconKeeper(table, words)

    @abstractmethod
    async def _run(self, work: Callable[[], _T], *, embeds: bool = False) -> _T:
        """Does work that blocks; `embeds` says that the embedder is asked."""

    async def _do(self, work: Callable[..., _T], *arguments: object, embeds: bool = False) -> _T:
        """Does work on the table once that is open."""

        def connected() -> _T:
            self._table.connect()
            return work(*arguments)

        return await self._run(connected, embeds=embeds)

    async def add(self, records: Sequence[Record]) -> list[str]:
        """See `RecordStore.add`."""
        return await self._do(self._add, list(records), embeds=True)

    async def supersede(self, old_id: str, new: Record) -> Record:
        """See `RecordStore.supersede`."""
        row = row_of(new)  # refuses it before anything is stored
        return await self._do(self._supersede, old_id, row, embeds=True)

    async def update(self, records: Sequence[Record]) -> list[Record]:
        """See `RecordStore.update`."""
        return await self._do(self._update, list(records))

    async def get(self, ids: Sequence[str]) -> list[Record]:
        """See `RecordStore.get`."""
        found = await self._do(self._table.get, list(ids))
        return [found[record_id] for record_id in ids if record_id in found]

    async def search(self, search: Search) -> list[RecalledRecord]:
        """See `RecordStore.search`."""
        condition = condition_of(search)
        if search.is_empty:
            return []
        return await self._do(self._search, search, condition, embeds=self._asks_embedder(search))

    async def count(self, kind: MemoryKind) -> int:
        """See `RecordStore.count`."""
        return await self._do(self._table.count, kind)

    async def scan(
        self,
        *,
        kind: MemoryKind | None = None,
        scopes: Sequence[str] | None = None,
        batch: int = 500,
    ) -> AsyncIterator[list[Record]]:
        """See `RecordStore.scan`."""
        if batch < 1:
            raise ValueError(f"batch must be at least 1, not {batch!r}.")
        check_scopes(scopes)
        condition = EVERYTHING if scopes is None else one_of("scope", scopes)
        for one in MemoryKind if kind is None else (kind,):
            for some in slices(await self._do(self._table.ids, one, condition), batch):
                if records := await self.get(some):
                    yield records

    async def delete(self, ids: Sequence[str]) -> list[str]:
        """See `RecordStore.delete`."""
        return await self._do(self._delete, list(ids))

    async def forget(self, scope: str) -> int:
        """See `RecordStore.forget`."""
        return await self._do(self._forget, scope)

    async def close(self) -> None:
        """See `RecordStore.close`."""
        await self._run(self._close)

    def _asks_embedder(self, search: Search) -> bool:
        return search.text is not None

    def _open_words(self) -> None:
        """Opens the lexicon if it is a file, and repairs an interrupted write."""
        with self._table.writing:
            self._words.connect()

    def _add(self, records: Sequence[Record]) -> list[str]:
        by_id: dict[str, Record] = {}
        for record in records:
            by_id.setdefault(record.id, record)
        rows = list(map(row_of, by_id.values()))
        self._open_words()
        vectors = self._table.vectors(rows)
        with self._table.writing:
            known = self._table.known(list(by_id))
            new = [row for row in rows if row.record.id not in known]
            if new:
                with self._following(new):
                    self._table.add(new, vectors)
        return [row.record.id for row in new]

    def _supersede(self, old_id: str, row: StoredRow) -> Record:
        self._open_words()
        vectors = self._table.vectors([row])
        new = row.record
        with self._table.writing:
            known = self._table.get([old_id, new.id])
            pair = superseded_pair(old_id, known.get(old_id), new, known.get(new.id))
            if pair != (known.get(old_id), known.get(new.id)):
                rows = [row_of(record) for record in pair]
                with self._following(rows):
                    self._table.upsert(rows, vectors)
        return pair[1]

    def _update(self, records: Sequence[Record]) -> list[Record]:
        self._open_words()
        with self._table.writing:
            stored = self._table.get([record.id for record in records])
            updated = checked_update(records, stored)
            rows = [row_of(record) for one, record in updated.items() if record != stored[one]]
            if rows:
                with self._following(rows):
                    self._table.update(rows, stored)
        return [updated[record.id] for record in records]

    def _following(self, rows: Sequence[StoredRow]) -> AbstractContextManager[None]:
        return self._words.following([row.record.id for row in rows], rows)

    def _delete(self, ids: Sequence[str]) -> list[str]:
        self._open_words()
        with self._table.writing:
            known = self._table.known(ids)
            gone = [one for one in dict.fromkeys(ids) if one in known]
            if gone:
                with self._words.following(gone):
                    self._table.delete(gone)
        return gone

    def _forget(self, scope: str) -> int:
        of_scope = one_of("scope", (scope,))
        with self._table.writing:
            ids = [one for kind in MemoryKind for one in self._table.ids(kind, of_scope)]
            return len(self._delete(ids))

    def _close(self) -> None:
        with self._table.writing:
            self._words.close()
            self._table.close()

    def _search(self, search: Search, condition: Condition) -> list[RecalledRecord]:
        if search.text is None:
            found = self._table.all(search.kind, condition)
            return ranked((RecalledRecord(record=one, score=1.0) for one in found), search.k)
        if search.ranking is None:
            least = search.min_score
            least = self.embedder.minimum_similarity if least is None else least
            return ranked(self._table.similar(search, condition, least), search.k)
        self._open_words()
        try:
            return self._recalled(search, condition)
        except LexiconError as error:
            if not error.broken:
                raise
            with self._table.writing:
                self._words.remake(error)
        return self._recalled(search, condition)

    def _recalled(self, search: Search, condition: Condition) -> list[RecalledRecord]:
        """The records that answer a search by meaning and by words, best first."""
        with self._table.writing:
            lexicon = self._words.up_to_date()
        minimum = self.embedder.minimum_similarity
        alike = (search.ranking or DEFAULT_RANKING).alike

        def fetched(ids: Sequence[str]) -> dict[str, Record]:
            if self._words.has_all:  # and is ten times as fast
                kept = lexicon.kept(ids)
                return {one: from_json(text, rest) for one, (text, rest) in kept.items()}
            return self._table.get(ids, search.kind)

        while True:
            found = hybrid_hits(lexicon, search, condition, self._table.nearest, minimum)
            best, gone = without_repeats(found, fetched, search.k, alike)
            if not gone:
                return best
            lexicon.drop(gone)  # another process removed them
            if len(best) == search.k:
                return best
            with self._table.writing:
                self._words.drop_gone()
