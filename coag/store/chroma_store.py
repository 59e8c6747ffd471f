"""Records in Chroma, with an index of their words."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from coag.errors import RecordStoreError
from coag.schema import MemoryKind, RecalledRecord, Record

from .chroma import WRITTEN, ChromaCollections, chroma_where
from .embedders import Embedder
from .hybrid import Hybrid, told_apart
from .lexicon import Leaf, Lexicon, LexiconError, leaf_of, same_entry, throw_away
from .location import parse_location
from .named_embedders import embedder_of
from .search import (
    Condition,
    InRange,
    OneOf,
    Ranking,
    Row,
    Search,
    checked_update,
    condition_of,
    flat_fields,
    from_json,
    listed,
    ranked,
    row_of,
    scanned,
    superseded_pair,
)

# ---- The lexicon of a Chroma: opened, kept in line with the records, mended and made anew ----


_LOG = logging.getLogger(__name__)

_BATCH = 1000
_LOOK_AGAIN = 1.0
"""Seconds after which a server is asked for what other processes wrote."""
_CLOCKS_APART = 10.0
"""Seconds by which the clocks of processes at one server may differ."""


class KeptLexicon:
    """The words of the records in a Chroma. Its callers hold `chroma.writing`; it may block.

    Args:
        chroma: The records.
        path: The file of the lexicon; None keeps it in RAM, made from the records when it is
            first asked for.
        shared: Whether other processes write too, as at a server.
    """

    def __init__(self, chroma: ChromaCollections, path: Path | None, *, shared: bool) -> None:
        self._chroma = chroma
        self._path = path
        self._shared = shared
        self._lexicon: Lexicon | None = None
        self._behind = False
        """Whether Chroma may hold what the lexicon does not know of."""
        self._looked = 0.0
        """When, by a clock that never goes back, news were last asked for."""
        self._news_since = 0.0
        """The same in seconds since 1970, as records are marked with it."""

    def connect(self) -> None:
        """Opens the lexicon if it is a file, and mends what an interrupted write left."""
        if self._path is not None:
            self._open()

    def close(self) -> None:
        """Lets go of the file."""
        if self._lexicon is not None:
            self._lexicon.close()
            self._lexicon = None

    @property
    def has_all(self) -> bool:
        """Whether it holds the records whole, as they stand in Chroma."""
        return not self._shared and not self._behind

    def leaf(self, row: Row) -> Leaf:
        """What it takes in of a record.

        Of a store that others write to it holds no whole records: these may be old.
        """
        return leaf_of(row.record, row.flat, "" if self._shared else row.rest)

    @contextmanager
    def noted(self, ids: Sequence[str]) -> Generator[None]:
        """Around a write in Chroma: if it cannot be noted, nothing is written.

        If the write fails, Chroma may hold a part of it: that is looked at before the next recall.
        """
        if self._lexicon is not None:
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

    def put(self, leaves: Sequence[Leaf]) -> None:
        """Takes in what was written; if that fails, at the next recall."""
        if self._lexicon is not None:
            try:
                self._lexicon.put(leaves)
            except LexiconError as error:
                self._fell_behind(error)

    def drop(self, ids: Sequence[str]) -> None:
        """Forgets what was removed; if that fails, at the next recall."""
        if self._lexicon is not None:
            try:
                self._lexicon.drop(ids)
            except LexiconError as error:
                self._fell_behind(error)

    def _fell_behind(self, error: LexiconError) -> None:
        """The records are stored, their words are not: they are taken in at the next recall."""
        _LOG.warning("Records are stored, but not yet found by their words. %s", error)
        self._behind = True

    def up_to_date(self) -> Lexicon:
        """The lexicon, with all that was written here, and by others about a second ago."""
        lexicon = self._open()
        if self._behind:
            try:
                self._mend(lexicon)
                self._behind = False
            except LexiconError as error:
                if error.broken:
                    raise
                _LOG.warning("The last records are not yet found by their words. %s", error)
        if self._shared and time.monotonic() - self._looked > _LOOK_AGAIN:
            self._take_in_news(lexicon)
        return lexicon

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
            self._check_not_emptied(lexicon)
            self._mend(lexicon)
        except RecordStoreError:
            lexicon.close()
            raise
        self._news_since, self._looked = began, looked
        return lexicon

    def remake(self, error: LexiconError) -> Lexicon:
        """Throws a broken lexicon away and makes it anew: Chroma has all that was in it."""
        _LOG.warning("%s It is made anew from the records.", error)
        if self._lexicon is not None:
            self._lexicon.close()
            self._lexicon = None
        if self._path is not None:
            throw_away(self._path)
        self._lexicon = self._made()
        self._behind = False
        return self._lexicon

    def _check_not_emptied(self, lexicon: Lexicon) -> None:
        """Refuses to follow a Chroma whose files were removed: the words tell what is missing."""
        known = lexicon.count()
        if known > len(lexicon.pending()) and not any(map(self._chroma.count, MemoryKind)):
            raise RecordStoreError(
                f"The index of words at {self._path} knows {known} record(s), but Chroma has none: "
                "its files were removed or emptied. Bring them back from a copy; to begin anew, "
                "remove the index, too."
            )

    def _mend(self, lexicon: Lexicon) -> None:
        """Brings the lexicon to what Chroma holds."""
        pending = lexicon.pending()
        if pending:
            _LOG.warning("Looking again at %d record(s) of an interrupted write.", len(pending))
            self._look_at(lexicon, pending)
        held = sum(self._chroma.count(kind) for kind in MemoryKind)
        known = lexicon.count()
        if known != held:
            level = logging.INFO if self._path is None else logging.WARNING
            message = "The index of words has %d record(s), Chroma has %d: it is made anew."
            _LOG.log(level, message, known, held)
            ids = self._ids()
            lexicon.drop(lexicon.other_than(ids))
            self._look_at(lexicon, ids)

    def drop_gone(self) -> None:
        """Forgets what Chroma does not have any more."""
        lexicon = self._open()
        lexicon.drop(lexicon.other_than(self._ids()))

    def _ids(self) -> list[str]:
        return [one for kind in MemoryKind for one in self._chroma.ids(kind)]

    def _take_in_news(self, lexicon: Lexicon) -> None:
        """What other processes wrote since the last look."""
        recent = InRange(field=WRITTEN, operator="$gte", bound=self._news_since - _CLOCKS_APART)
        began, looked = time.time(), time.monotonic()
        for kind in MemoryKind:
            ids = self._chroma.ids(kind, recent)
            known = lexicon.entries(ids)
            records = self._chroma.get(ids).values()
            news = [self.leaf(row_of(record)) for record in records]
            lexicon.put(
                one
                for one in news
                if one.entry.id not in known or not same_entry(one.entry, known[one.entry.id])
            )
        self._news_since, self._looked = began, looked

    def _look_at(self, lexicon: Lexicon, ids: Sequence[str]) -> None:
        for start in range(0, len(ids), _BATCH):
            some = ids[start : start + _BATCH]
            records = self._chroma.get(some)
            there = [records[one] for one in some if one in records]
            lexicon.put(self.leaf(row_of(record)) for record in there)
            lexicon.drop([one for one in some if one not in records])


#
# Chroma holds the records; the lexicon is derived from it. A write is noted in the lexicon's
# journal, done in Chroma, and then taken into the lexicon: wherever it is broken off, the journal
# tells at the next opening which records to look at again.
class IndexedChroma:
    """Records in Chroma, found by meaning and by words. Every method blocks.

    Args:
        chroma: The records.
        words: The file of the lexicon; None keeps it in RAM, made from the records at the first
            recall that needs it.
        shared: Whether other processes write too, as at a server.
    """

    def __init__(self, chroma: ChromaCollections, words: Path | None, *, shared: bool) -> None:
        self.chroma = chroma
        self._words = KeptLexicon(chroma, words, shared=shared)

    def connect(self) -> None:
        """Opens Chroma and, if it is a file, the lexicon; mends what an interrupted write left."""
        self.chroma.connect()
        with self.chroma.writing:
            self._words.connect()

    def add(self, records: Sequence[Record]) -> list[str]:
        """Stores the records that are not there yet; gives their ids.

        Raises:
            ValueError: If one of them cannot be kept exactly; none is stored then.
        """
        given: dict[str, Record] = {}
        for record in records:
            given.setdefault(record.id, record)
        rows = [row_of(record) for record in given.values()]
        self.connect()
        with self.chroma.writing:
            known = self.chroma.known(list(given))
            new = {row.record.id: row for row in rows if row.record.id not in known}
            if new:
                leaves = [self._words.leaf(row) for row in new.values()]
                with self._words.noted(list(new)):
                    self.chroma.add(list(new.values()))
                self._words.put(leaves)
        return list(new)

    def supersede(self, old_id: str, new: Record) -> Record:
        """See `RecordStore.supersede`."""
        self.connect()
        with self.chroma.writing:
            known = self.chroma.get([old_id, new.id])
            pair = superseded_pair(old_id, known.get(old_id), new, known.get(new.id))
            if pair != (known.get(old_id), known.get(new.id)):
                rows = [row_of(record) for record in pair]
                leaves = [self._words.leaf(row) for row in rows]
                with self._words.noted([record.id for record in pair]):
                    self.chroma.upsert(rows)
                self._words.put(leaves)
        return pair[1]

    def update(self, records: Sequence[Record]) -> list[Record]:
        """See `RecordStore.update`."""
        self.connect()
        with self.chroma.writing:
            stored = self.chroma.get([record.id for record in records])
            updated = checked_update(records, stored)
            changed = [record for one, record in updated.items() if record != stored[one]]
            if changed:
                rows = [row_of(record) for record in changed]
                leaves = [self._words.leaf(row) for row in rows]
                with self._words.noted([record.id for record in changed]):
                    self.chroma.update(rows, stored)
                self._words.put(leaves)
        return [updated[record.id] for record in records]

    def delete(self, ids: Sequence[str]) -> list[str]:
        """See `RecordStore.delete`."""
        self.connect()
        with self.chroma.writing:
            known = self.chroma.known(ids)
            gone = [one for one in dict.fromkeys(ids) if one in known]
            if gone:
                with self._words.noted(gone):
                    self.chroma.delete(gone)
                self._words.drop(gone)
        return gone

    def forget(self, scope: str) -> int:
        """Removes the records of a scope from everywhere."""
        self.connect()
        of_scope = OneOf(field="scope", values=(scope,))
        with self.chroma.writing:
            ids = [one for kind in MemoryKind for one in self.chroma.ids(kind, of_scope)]
            return len(self.delete(ids))

    def recall(
        self, search: Search, ranking: Ranking, condition: Condition, minimum: float
    ) -> list[RecalledRecord]:
        """The records that answer a search by meaning and by words, best first."""
        self.connect()
        try:
            return self._recalled(search, ranking, condition, minimum)
        except LexiconError as error:
            if not error.broken:
                raise
            with self.chroma.writing:
                self._words.remake(error)
        return self._recalled(search, ranking, condition, minimum)

    def _recalled(
        self, search: Search, ranking: Ranking, condition: Condition, minimum: float
    ) -> list[RecalledRecord]:
        with self.chroma.writing:
            hybrid = Hybrid(self._words.up_to_date())
        question = hybrid.question(search)

        def nearest(passing: bool) -> dict[str, float]:
            wanted = condition if passing else None
            return self.chroma.nearest(search.kind, question.text, ranking.pool, wanted)

        def fetched(ids: Sequence[str]) -> dict[str, Record]:
            if self._words.has_all:  # and is ten times as fast
                kept = hybrid.lexicon.kept(ids)
                return {one: from_json(text, rest) for one, (text, rest) in kept.items()}
            return self.chroma.get(ids, search.kind)

        while True:
            found = hybrid.ranked(question, search, condition, nearest, minimum)
            told, gone = told_apart(found, fetched, search.k, ranking.alike)
            if not gone:
                return told
            hybrid.lexicon.drop(gone)  # another process removed them
            if len(told) == search.k:
                return told
            with self.chroma.writing:
                self._words.drop_gone()

    def close(self) -> None:
        """Closes both."""
        with self.chroma.writing:
            self._words.close()
            self.chroma.close()


# ---- The face of records in Chroma: async, over calls that block ----


_T = TypeVar("_T")


class ChromaStore:
    """Records in two collections of one Chroma, episodic and semantic.

    Opens itself at its first use; `await ChromaStore.open(...)` opens at once, so that errors
    come early. The same folder may be opened several times within one process; between
    processes use a server.

    Args:
        location: A folder, made if it is missing, or the address of a Chroma server
            (`http://host:port`).
        embedder: None for `WordLlamaEmbedder`; it may be given by its name, see `embedder_of`.
            Its name and dimension are kept with the collections and compared at opening.
        collection: Beginning of the collections' names.
        timeout: Seconds after which an operation is given up.

    Raises:
        ConfigurationError: If the location is an address, but not of an HTTP server, or there is
            no embedder of that name.
    """

    def __init__(
        self,
        location: Path | str,
        embedder: Embedder | str | None = None,
        *,
        collection: str = "coag",
        timeout: float = 60.0,
    ) -> None:
        self.given_location = location
        """The folder or address as it was given."""
        self.collection = collection
        self.timeout = timeout
        self.embedder: Embedder = embedder_of(embedder)
        self._location = parse_location(location)
        chroma = ChromaCollections(self._location, self.embedder, collection)
        words = self.words_file
        self._indexed = IndexedChroma(chroma, words, shared=words is None)

    @property
    def words_file(self) -> Path | None:
        """The file of the index of words; None for a server, whose words are kept in RAM."""
        if isinstance(self._location, Path):
            return self._location / f"{self.collection}-words.sqlite3"
        return None

    @property
    def location(self) -> str:
        """Where it is, the same however it was given: an absolute path or an address."""
        return str(self._location)

    @classmethod
    async def open(
        cls,
        location: Path | str,
        embedder: Embedder | str | None = None,
        *,
        collection: str = "coag",
    ) -> ChromaStore:
        """Opens the store now.

        Raises:
            ConfigurationError: As for the class.
            EmbedderMismatchError: If its collections were made with another embedder.
            RecordStoreError: If it cannot be opened.
        """
        store = cls(location, embedder, collection=collection)
        await store._in_thread(store._indexed.connect)
        return store

    async def add(self, records: Sequence[Record]) -> list[str]:
        """See `RecordStore.add`."""
        return await self._in_thread(self._indexed.add, list(records))

    async def supersede(self, old_id: str, new: Record) -> Record:
        """See `RecordStore.supersede`."""
        flat_fields(new)
        return await self._in_thread(self._indexed.supersede, old_id, new)

    async def update(self, records: Sequence[Record]) -> list[Record]:
        """See `RecordStore.update`."""
        return await self._in_thread(self._indexed.update, list(records))

    async def get(self, ids: Sequence[str]) -> list[Record]:
        """See `RecordStore.get`."""
        found = await self._in_thread(self._indexed.chroma.get, list(ids))
        return [found[record_id] for record_id in ids if record_id in found]

    async def search(self, search: Search) -> list[RecalledRecord]:
        """See `RecordStore.search`."""
        condition = condition_of(search)
        if search.is_empty:
            return []
        if search.text is None:
            where = chroma_where(condition)
            return listed(
                await self._in_thread(self._indexed.chroma.all, search.kind, where), search.k
            )
        if search.ranking is not None:
            least = self.embedder.minimum_similarity
            return await self._in_thread(
                self._indexed.recall, search, search.ranking, condition, least
            )
        hits = await self._in_thread(
            self._indexed.chroma.similar, search, condition, self._minimum(search)
        )
        return ranked(hits, search.k)

    async def count(self, kind: MemoryKind) -> int:
        """See `RecordStore.count`."""
        return await self._in_thread(self._indexed.chroma.count, kind)

    async def scan(
        self,
        *,
        kind: MemoryKind | None = None,
        scopes: Sequence[str] | None = None,
        batch: int = 500,
    ) -> AsyncIterator[list[Record]]:
        """See `RecordStore.scan`."""
        kinds, condition = scanned(kind, scopes, batch)
        for one in kinds:
            ids = await self._in_thread(self._indexed.chroma.ids, one, condition)
            for start in range(0, len(ids), batch):
                if records := await self.get(ids[start : start + batch]):
                    yield records

    async def delete(self, ids: Sequence[str]) -> list[str]:
        """See `RecordStore.delete`."""
        return await self._in_thread(self._indexed.delete, list(ids))

    async def forget(self, scope: str) -> int:
        """See `RecordStore.forget`."""
        return await self._in_thread(self._indexed.forget, scope)

    async def close(self) -> None:
        """See `RecordStore.close`."""
        await self._in_thread(self._indexed.close)

    def _minimum(self, search: Search) -> float:
        if search.min_score is None:
            return self.embedder.minimum_similarity
        return search.min_score

    async def _in_thread(self, work: Callable[..., _T], *arguments: Any) -> _T:
        try:
            async with asyncio.timeout(self.timeout):
                return await asyncio.to_thread(work, *arguments)
        except TimeoutError as error:
            raise RecordStoreError(
                f"Chroma at {self._location} did not answer within {self.timeout:g} s."
            ) from error
