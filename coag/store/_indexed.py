"""Chroma and the words of its records, kept together: the one way in which records are written.

Chroma holds the records; the lexicon is derived from it. A write is noted in the lexicon's
journal, done in Chroma, and then taken into the lexicon: wherever it is broken off, the journal
tells at the next opening which records to look at again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from coag.schema import MemoryKind, RecalledRecord, Record

from ._changes import checked_update
from ._fields import from_json, row_of
from ._filters import Condition, OneOf
from ._hybrid import Hybrid, told_apart
from ._kept_lexicon import KeptLexicon
from ._ranking import Ranking
from ._search import Search
from ._supersession import superseded_pair
from .chroma import ChromaCollections
from .lexicon import LexiconError


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
