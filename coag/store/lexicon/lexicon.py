"""Searching records by words."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from coag.schema import MemoryKind

from .rows import (
    FORMAT,
    MARKED,
    READ,
    TABLES,
    Entry,
    Leaf,
    LexiconError,
    count_sources,
    each_once,
    how_many,
    insert_leaves,
    is_common,
    lexicon_errors,
    newest_row,
    numbered,
    placed,
    places_of,
    rarity,
    read_entry,
    rows_among,
    rows_with,
    shelf_sizes,
    stretches_around,
)

# ---- How common the common words are, remembered from query to query ----


_KEPT = 10_000
"""Words that are remembered; then all are looked up anew."""
_CHANGE = 0.02
"""What is remembered holds while the size of the index has changed by no more than this part."""


class CommonWords:
    """In about how many rows common words stand.

    To estimate this anew for each query is most of what words cost in a large index, and what
    comes out hardly changes: a rarity is the logarithm of a share.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, tuple[str, ...]], int] = {}
        self._size = 0

    def hold_for(self, size: int) -> None:
        """Forgets everything if the index, now of so many records, was another size by much."""
        if len(self._counts) >= _KEPT or abs(size - self._size) > _CHANGE * self._size:
            self._counts.clear()
            self._size = size

    def among(self, words: Sequence[str], shelves: Sequence[str]) -> dict[str, int]:
        """Those of the words that are known to be common on these shelves, with their rows."""
        where = tuple(shelves)
        known = ((word, self._counts.get((word, where))) for word in words)
        return {word: count for word, count in known if count is not None}

    def keep(self, word: str, shelves: Sequence[str], count: int) -> None:
        """Remembers in how many rows of these shelves a common word stands."""
        self._counts[word, tuple(shelves)] = count


class Standing(NamedTuple):
    """Where the words of a query stand."""

    proposing: dict[str, list[int]]
    """The words that propose records, each with its rows."""
    common: list[str]
    """Those that stand in very many rows, of which not all were seen."""
    weights: dict[str, float]
    """How much each word of the query tells."""


def standing(
    db: sqlite3.Connection,
    words: Sequence[str],
    shelves: Sequence[str],
    within: int,
    remembered: CommonWords,
) -> Standing:
    """Where words stand. Common ones propose nothing, if there are others.

    Args:
        db: The lexicon.
        words: Of a query.
        shelves: Where to look; none for everywhere.
        within: How many records there are.
        remembered: What is known of common words; more comes to be known.
    """
    counts = remembered.among(words, shelves)
    rows = {word: rows_with(db, word, shelves) for word in words if word not in counts}
    for word, seen in rows.items():
        if is_common(seen):
            counts[word] = how_many(seen, newest_row(db))
            remembered.keep(word, shelves, counts[word])
    common = [word for word in words if word in counts]
    proposing = {word: seen for word, seen in rows.items() if seen and word not in counts}
    if common and not proposing:
        one = common[0]
        proposing = {one: rows[one] if one in rows else rows_with(db, one, shelves)}
    every = {word: counts[word] if word in counts else len(rows[word]) for word in words}
    weights = {word: rarity(count, within) for word, count in every.items()}
    return Standing(proposing, common, weights)


# ---- The index of words: SQLite's full text search, with a journal of what is being written ----


_ROWS_AT_ONCE = 500
"""SQLite takes a bounded number of values in one statement."""


class LexicalHit(NamedTuple):
    """A record that shares words with a query, or was asked for besides."""

    entry: Entry
    share: float
    """What it has of the query's words, the rare ones counting most, 0..1."""


class Lexicon:
    """The words of all records of one store. Every method blocks; safe for several threads.

    Args:
        path: The file, made if it is missing; None keeps the index in RAM.

    Raises:
        LexiconError: If the file is no index of ours, or broken.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._lock = threading.RLock()
        self._common = CommonWords()
        with lexicon_errors(path):
            self._db = sqlite3.connect(
                ":memory:" if path is None else path,
                isolation_level=None,
                check_same_thread=False,
                timeout=30.0,
            )
        self._path = path
        try:
            self._prepare()
        except LexiconError:
            self._db.close()
            raise

    def _prepare(self) -> None:
        with lexicon_errors(self._path):
            self._db.executescript(MARKED)
            (stored,) = self._db.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
            if stored != FORMAT:
                message = f"The index of words at {self._path} is of format {stored!r}"
                raise LexiconError(f"{message}, not {FORMAT!r}.", broken=True)
            self._db.executescript(TABLES)

    def begin(self, ids: Sequence[str]) -> None:
        """Notes that these records are about to be written or removed."""
        with self._writing() as db:
            db.executemany("INSERT OR IGNORE INTO pending (id) VALUES (?)", [(one,) for one in ids])

    def pending(self) -> list[str]:
        """The records whose writing was begun and not ended, in the order of their beginning."""
        with self._reading() as db:
            return [row[0] for row in db.execute("SELECT id FROM pending ORDER BY n")]

    def put(self, leaves: Iterable[Leaf]) -> None:
        """Takes in records, in place of what was known of them.

        Their writing has ended with that.
        """
        with self._writing() as db:
            for given in each_once(leaves):
                known = places_of(db, given)
                settled = placed(db, given.values(), known)
                self._remove(db, list(known))
                insert_leaves(db, settled)
                self._ended(db, given)

    def drop(self, ids: Sequence[str]) -> None:
        """Forgets records; unknown ones do no harm. Their writing has ended with that."""
        with self._writing() as db:
            self._remove(db, ids)
            self._ended(db, ids)

    def count(self) -> int:
        """How many records it knows."""
        with self._reading() as db:
            return db.execute("SELECT coalesce(sum(size), 0) FROM shelves").fetchone()[0]

    def other_than(self, ids: Collection[str]) -> list[str]:
        """The records it knows besides these."""
        wanted = frozenset(ids)
        with self._reading() as db:
            return [row[0] for row in db.execute("SELECT id FROM entries") if row[0] not in wanted]

    def shelves(self, kind: MemoryKind) -> list[str]:
        """All shelves of a kind."""
        with self._reading() as db:
            return [shelf for shelf in shelf_sizes(db) if shelf.startswith(kind.value[0])]

    def entries(self, ids: Sequence[str]) -> dict[str, Entry]:
        """What it knows of these records, by id."""
        with self._reading() as db:
            rows = db.execute(
                f"SELECT {READ} FROM entries WHERE id IN (SELECT value FROM json_each(?))",
                (json.dumps(list(ids)),),
            )
            return {entry.id: entry for entry in map(read_entry, rows)}

    def kept(self, ids: Sequence[str]) -> dict[str, tuple[str, str]]:
        """The texts of these records and the rest of them, by id."""
        with self._reading() as db:
            rows = db.execute(
                "SELECT id, text, rest FROM entries WHERE id IN (SELECT value FROM json_each(?))",
                (json.dumps(list(ids)),),
            )
            return {one: (text, rest) for one, text, rest in rows}

    def around(self, entries: Iterable[Entry], reach: int) -> dict[str, Entry]:
        """The records up to `reach` places before and after these in their episodes, by id."""
        stretches = stretches_around(entries, reach)
        found: dict[str, Entry] = {}
        with self._reading() as db:
            for start in range(0, len(stretches), _ROWS_AT_ONCE):
                some = stretches[start : start + _ROWS_AT_ONCE]
                marks = ",".join(["(?,?,?)"] * len(some))
                rows = db.execute(
                    f"WITH wanted (of, first, last) AS (VALUES {marks}) SELECT {READ} "
                    "FROM wanted CROSS JOIN entries ON episode = of AND place >= first "
                    "AND place < last",
                    [value for stretch in some for value in stretch],
                )
                found.update((entry.id, entry) for entry in map(read_entry, rows))
        return found

    def sources_named(self, shelves: Sequence[str], words: Sequence[str]) -> list[str]:
        """Those trusted sources of these shelves whose name consists of words of the query.

        A shelf all of whose records stem from one source names none: that tells nothing apart.
        """
        named: dict[str, None] = {}
        with self._reading() as db:
            for shelf in shelves:
                rows = db.execute(
                    "SELECT source FROM sources WHERE shelf = ? AND size > 0 LIMIT ?",
                    (shelf, _ROWS_AT_ONCE),
                ).fetchall()
                if len(rows) > 1:
                    for (source,) in rows:
                        parts = source.casefold().split()
                        if parts and all(part in words for part in parts):
                            named[source] = None
        return list(named)

    def matches(
        self,
        words: Sequence[str],
        shelves: Sequence[str],
        limit: int,
        besides: Collection[str] = (),
    ) -> list[LexicalHit]:
        """The records that share most with a query, best first, and then others.

        Each word counts by its rarity on these shelves, once for a record, however often it
        stands there. Words that stand in very many records propose none, if there are others: they
        would weigh least.

        Args:
            words: See `query_words`.
            shelves: Where to look; what is on others has no say in it.
            limit: At most so many.
            besides: Ids of further records that are wanted, whatever they share; wherever they are.
        """
        with self._reading() as db:
            sizes = shelf_sizes(db)
            within, total = sum(sizes.get(shelf, 0) for shelf in shelves), sum(sizes.values())
            self._common.hold_for(total)
            looked_at = shelves if within < total else ()
            known = numbered(db, "id", list(besides))
            if not within or not words:
                return [LexicalHit(entry, 0.0) for entry in known.values()]
            proposing, common, weights = standing(db, words, looked_at, within, self._common)
            holders = {word: set(rows) for word, rows in proposing.items()}
            for word, among in rows_among(db, common, list(known)).items():
                holders.setdefault(word, set()).update(among)
            scores: dict[int, float] = {}
            for word, holding in holders.items():
                for n in holding:
                    scores[n] = scores.get(n, 0.0) + weights[word]
            best = sorted(scores, key=lambda n: (-scores[n], n))[:limit]
            known |= numbered(db, "n", [n for n in best if n not in known])
        every = sum(weights.values())
        wanted = dict.fromkeys((*(n for n in best if n in known), *known))
        return [LexicalHit(known[n], min(1.0, scores.get(n, 0.0) / every)) for n in wanted]

    def close(self) -> None:
        """Lets go of the file."""
        with self._lock:
            self._db.close()

    def _remove(self, db: sqlite3.Connection, ids: Sequence[str]) -> None:
        found = db.execute(
            "SELECT n, shelf, source, trusted FROM entries "
            "WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(ids)),),
        ).fetchall()
        numbers = [(row[0],) for row in found]
        db.executemany("DELETE FROM words WHERE rowid = ?", numbers)
        db.executemany("DELETE FROM entries WHERE n = ?", numbers)
        count_sources(db, (row[1:] for row in found), -1)

    def _ended(self, db: sqlite3.Connection, ids: Iterable[str]) -> None:
        db.executemany("DELETE FROM pending WHERE id = ?", [(one,) for one in ids])

    @contextmanager
    def _reading(self) -> Generator[sqlite3.Connection]:
        with self._lock, lexicon_errors(self._path):
            yield self._db

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        """One transaction: all of it, or nothing."""
        with self._lock, lexicon_errors(self._path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # a full disk ends it by itself
                    self._db.execute("ROLLBACK")
                raise


def throw_away(path: Path) -> None:
    """Removes the files of a lexicon, which must be closed."""
    for ending in ("", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
