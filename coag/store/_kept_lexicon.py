"""The lexicon of a Chroma: opened, kept in line with the records, mended and made anew."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from coag.errors import RecordStoreError
from coag.schema import MemoryKind

from ._chroma_types import WRITTEN
from ._fields import Row, row_of
from ._filters import InRange
from .chroma import ChromaCollections
from .lexicon import Leaf, Lexicon, LexiconError, leaf_of, same_entry, throw_away

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
