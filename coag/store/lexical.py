"""The index of words: records are found by what they say.

A `Lexicon` is derived from the records: full text in SQLite (FTS5) and, for each record, the few
things that ranking needs besides: its episode and place in it, its source, its fields. It can be
thrown away at any time and made again from the records; what is being written is journalled, so
that an interrupted write is found at the next opening.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sqlite3
import threading
import weakref
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

from coag.errors import RecordStoreError
from coag.schema import MemoryKind, Record, Trust

from .records import Fields, slices

# ---- Which words of a record are indexed, and which words of a query count ----


_WORD = re.compile(r"[^\W_]+")
_LONGEST_WORD = 64
_MOST_WORDS = 64
"""Of a query: a longer one is a text of its own, and its first words say what it is about."""
_ARTICLES_AND_LINKS = (
    "a an the and or nor so if then than of to in on at for with from by as not no too very just"
    " about into over after before up down out off again also here there"
)
_VERBS = (
    "is are was were be been being am do does did doing done have has had having can could will"
    " would shall should may might must"
)
_PRONOUNS = (
    "i you he she it we they me him her us them my mine your yours his hers its our ours their"
    " theirs this that these those what which who whom whose when where why how s t re ve ll d m"
)
_EMPTY_WORDS = frozenset(f"{_ARTICLES_AND_LINKS} {_VERBS} {_PRONOUNS}".split())
"""English words that are in any text; they find nothing."""


def indexed_text(record: Record) -> str:
    """What of a record is indexed: its text, its textual metadata, its date in words."""
    parts = [record.text, *(v for v in record.metadata.values() if isinstance(v, str))]
    if (event := record.event) is not None:
        date = "" if event.at is None else f"{event.at.day} {event.at:%B %Y}"
        parts += [event.situation, event.action, event.outcome, event.place, date]
    if (fact := record.fact) is not None:
        parts += [fact.subject, fact.attribute, fact.value]
    return " ".join(filter(None, parts))


def query_words(text: str) -> tuple[str, ...]:
    """The words of a query that can find something, each once, in their order."""
    words = _WORD.findall(text.casefold().replace("'s", " "))
    useful = (word for word in words if word not in _EMPTY_WORDS and len(word) <= _LONGEST_WORD)
    return tuple(dict.fromkeys(useful))[:_MOST_WORDS]


def without_names(text: str, names: Iterable[str]) -> str:
    """A query without the names of sources: in a text, a name mostly marks somebody else."""
    for name in names:
        text = re.sub(
            rf"(?<!\w){re.escape(name)}(?:['\u2019]s)?(?!\w)", " ", text, flags=re.IGNORECASE
        )
    return text


# ---- What is kept of each record besides its words ----


_LAST_PLACE = 2**62
"""SQLite keeps numbers of 64 bits; records of a later place share this one."""


class IndexEntry(NamedTuple):
    """One record as ranking sees it."""

    id: str
    shelf: str
    """Kind and scope, see `shelf_of`."""
    scope: str
    episode: int
    """Number of the episode; 0 for a record without neighbours."""
    place: int
    """Place within the episode, counting by one."""
    source: str
    created: float
    """Seconds since 1970."""
    importance: float
    length: int
    """How many words its text has."""
    asks: bool
    """Whether it is a question."""
    trusted: bool
    fields: str
    """What filters see, as JSON."""

    def flat(self) -> Fields:
        """What filters see."""
        return json.loads(self.fields)


class IndexedRecord(NamedTuple):
    """All that the lexicon holds of one record."""

    entry: IndexEntry
    words: str
    """The text in which it is found."""
    text: str = ""
    """Its own text; empty where records are fetched from elsewhere."""
    rest: str = ""
    """Everything else of it, in the form in which it was given."""


class LexicalHit(NamedTuple):
    """A record that shares words with a query, or was asked for besides."""

    entry: IndexEntry
    share: float
    """What it has of the query's words, the rare ones counting most, 0..1."""


def shelf_of(kind: MemoryKind, scope: str) -> str:
    """One word for a kind and a scope, beginning with the kind's first letter."""
    digest = hashlib.blake2b(f"{kind.value}\x1f{scope}".encode(), digest_size=10)
    return kind.value[0] + digest.hexdigest()


def indexed(record: Record, flat: Fields, rest: str = "") -> IndexedRecord:
    """What the lexicon takes in of a record, of which filters see `flat`.

    Its entry's place is -1 where the record leaves it to the order of arrival. With the rest of
    the record it is kept whole.
    """
    order = None if record.event is None else record.event.order
    shelf = shelf_of(record.kind, record.scope)
    entry = IndexEntry(
        id=record.id,
        shelf=shelf,
        scope=record.scope,
        episode=_episode_number(shelf, record),
        place=-1 if order is None else max(-1, min(order, _LAST_PLACE)),
        source=record.provenance.source,
        created=record.happened_at.timestamp(),
        importance=record.dynamics.importance,
        length=len(record.text.split()),
        asks=record.text.rstrip().endswith(("?", "\uff1f", "\u061f")),
        trusted=record.provenance.trust is not Trust.UNTRUSTED,
        fields=json.dumps(flat),
    )
    return IndexedRecord(entry, indexed_text(record), record.text if rest else "", rest)


def same_entry(new: IndexEntry, known: IndexEntry) -> bool:
    """Whether nothing is to be taken in; a place left to the order of arrival stays as it is."""
    placed = new._replace(place=known.place) if new.place < 0 else new
    return placed == known


def _episode_number(shelf: str, record: Record) -> int:
    """The named episode, or the events that one activity of one run remembered; 0 for none.

    A number of 62 bits, so that SQLite keeps it as one.
    """
    origin = record.provenance
    if record.event is not None and record.event.episode:
        name = f"episode {record.event.episode}"
    elif record.kind is MemoryKind.EPISODIC and origin.run:
        name = f"run {origin.run} {origin.activity}"
    else:
        return 0
    digest = hashlib.blake2b(f"{shelf} {name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 2 or 1


# ---- The tables, and what goes wrong with their file ----


_FORMAT = "3"
"""A file of another format is thrown away and made again: it holds nothing of its own."""
_TOKENIZER = "porter unicode61 remove_diacritics 2"
_META = f"""
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT);
INSERT OR IGNORE INTO meta VALUES ('format', '{_FORMAT}');
"""
"""Done first: it shows the format of a file before anything else of it is touched."""
_TABLES = f"""
CREATE TABLE IF NOT EXISTS pending (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS shelves (shelf TEXT PRIMARY KEY, size INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sources (
    shelf TEXT, source TEXT, size INTEGER, PRIMARY KEY (shelf, source)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS entries (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
    shelf TEXT NOT NULL, scope TEXT NOT NULL, episode INTEGER NOT NULL, place INTEGER NOT NULL,
    source TEXT NOT NULL, created REAL NOT NULL, importance REAL NOT NULL,
    length INTEGER NOT NULL, asks INTEGER NOT NULL, trusted INTEGER NOT NULL,
    fields TEXT NOT NULL, text TEXT NOT NULL, rest TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS entries_by_place ON entries (episode, place);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (shelf, body, tokenize = '{_TOKENIZER}');
"""
_FEW = f"""
CREATE VIRTUAL TABLE IF NOT EXISTS temp.few USING fts5 (
    body, content = '', columnsize = 0, tokenize = '{_TOKENIZER}'
);
"""
"""A few rows, indexed by themselves for one query."""
_ENTRY = ", ".join(IndexEntry._fields)
_IDS = "(SELECT value FROM json_each(?))"
"""Values that are given as a JSON list."""
_ROWS_AT_ONCE = 500
"""SQLite takes a bounded number of values in one statement."""
_MOST = 400
"""Rows of a word that are looked at, the newest; how many a common one has is estimated."""
_UNKNOWN = 0.5
"""Weight of a word that no record has, as a part of its rarity: it separates none of them."""
_COUNTS_KEPT = 10_000
_CHANGE = 0.02
"""Counts hold while the size of the index has changed by no more than this part."""

_PRIMARY_CODE = 0xFF
"""The part of SQLite's codes that shows the sort of failure."""
_NOT_ITS_FAULT = frozenset(
    getattr(sqlite3, f"SQLITE_{name}")
    for name in (
        *("BUSY", "LOCKED", "READONLY", "FULL", "IOERR", "CANTOPEN", "NOMEM", "PERM", "AUTH"),
        *("TOOBIG", "INTERRUPT"),
    )
)
"""Failures of the disk, of permissions, of other writers: the file itself may be intact."""


class LexiconError(RecordStoreError):
    """The index cannot be read or written."""

    def __init__(self, message: str, *, broken: bool) -> None:
        super().__init__(message)
        self.broken = broken
        """Whether the index itself is at fault, so that it should be made again."""


def throw_away(path: Path) -> None:
    """Removes the files of a lexicon, which must be closed."""
    for ending in ("", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


# ---- The index ----


class Lexicon:
    """The words of all records of one store. Every method blocks; safe for several threads.

    Args:
        path: The file, made if it is missing; None keeps the index in RAM.

    Raises:
        LexiconError: If the file is no index of ours, or broken.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._common: dict[tuple[str, tuple[str, ...]], int] = {}
        """In about how many rows of some shelves common words are: estimating it is most of what
        words cost in a large index, and hardly changes."""
        self._common_of = 0
        """The size of the index for which that holds."""
        with self._errors():
            place = ":memory:" if path is None else path
            self._db = sqlite3.connect(
                place, timeout=30.0, isolation_level=None, check_same_thread=False
            )
        weakref.finalize(self, self._db.close)  # also where nobody closes it
        try:
            with self._errors():
                self._db.executescript(_META)
                (stored,) = self._db.execute("SELECT value FROM meta").fetchone()
                if stored != _FORMAT:
                    said = f"The index of words at {path} is of format {stored!r}, not {_FORMAT!r}."
                    raise LexiconError(said, broken=True)
                self._db.executescript(_TABLES)
        except LexiconError:
            self._db.close()
            raise

    def begin(self, ids: Sequence[str]) -> None:
        """Notes that these records are about to be written or removed."""
        with self._writing() as db:
            db.executemany("INSERT OR IGNORE INTO pending (id) VALUES (?)", [(one,) for one in ids])

    def pending(self) -> list[str]:
        """The records whose writing was begun and not ended, in the order of their beginning."""
        with self._reading() as db:
            return [row[0] for row in db.execute("SELECT id FROM pending ORDER BY n")]

    def put(self, records: Iterable[IndexedRecord]) -> None:
        """Takes in records, in place of what was known of them; this ends their writing."""
        with self._writing() as db:
            given = {record.entry.id: record for record in records}
            settled = _placed(db, given)
            _remove(db, given)
            _insert(db, settled)

    def drop(self, ids: Sequence[str]) -> None:
        """Forgets records, known or not; this ends their writing."""
        with self._writing() as db:
            _remove(db, ids)

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
            return [shelf for shelf in _sizes(db) if shelf.startswith(kind.value[0])]

    def entries(self, ids: Sequence[str]) -> dict[str, IndexEntry]:
        """What it knows of these records, by id."""
        with self._reading() as db:
            return {entry.id: entry for entry in _numbered(db, "id", ids).values()}

    def kept(self, ids: Sequence[str]) -> dict[str, tuple[str, str]]:
        """The texts of these records and the rest of them, by id."""
        query = f"SELECT id, text, rest FROM entries WHERE id IN {_IDS}"
        with self._reading() as db:
            rows = db.execute(query, (json.dumps(list(ids)),))
            return {one: (text, rest) for one, text, rest in rows}

    def around(self, entries: Iterable[IndexEntry], reach: int) -> dict[str, IndexEntry]:
        """The records up to `reach` places before and after these in their episodes, by id."""
        ranges = _ranges_around(entries, reach)
        found: dict[str, IndexEntry] = {}
        with self._reading() as db:
            for some in slices(ranges, _ROWS_AT_ONCE):
                marks = ",".join(["(?,?,?)"] * len(some))
                rows = db.execute(
                    f"WITH wanted (of, first, last) AS (VALUES {marks}) SELECT {_ENTRY} "
                    "FROM wanted CROSS JOIN entries ON episode = of AND place >= first "
                    "AND place < last",
                    list(chain.from_iterable(some)),
                )
                found.update((entry.id, entry) for entry in map(IndexEntry._make, rows))
        return found

    def sources_named(self, shelves: Sequence[str], words: Sequence[str]) -> list[str]:
        """Those trusted sources of these shelves whose name consists of words of the query.

        A shelf all of whose records are of one source names none: that separates nothing.
        """
        named: dict[str, None] = {}
        query = "SELECT source FROM sources WHERE shelf = ? AND size > 0 LIMIT ?"
        with self._reading() as db:
            for shelf in shelves:
                sources = [one for (one,) in db.execute(query, (shelf, _ROWS_AT_ONCE))]
                parts = ((one, one.casefold().split()) for one in sources if len(sources) > 1)
                named.update((one, None) for one, some in parts if some and set(some) <= set(words))
        return list(named)

    def matches(
        self,
        words: Sequence[str],
        shelves: Sequence[str],
        limit: int,
        besides: Collection[str] = (),
    ) -> list[LexicalHit]:
        """The records that share most with a query, best first, and then others.

        Each word counts by its rarity on these shelves, once for a record, however often it is
        there. Words that are in very many records propose none, if there are others: they would
        weigh least.

        Other shelves have no influence. The records whose ids are in `besides` come with what they
        share, from any shelf, even if it is nothing.
        """
        with self._reading() as db:
            sizes = _sizes(db)
            within, total = sum(sizes.get(shelf, 0) for shelf in shelves), sum(sizes.values())
            known = _numbered(db, "id", list(besides))
            if not within or not words:
                return [LexicalHit(entry, 0.0) for entry in known.values()]
            looked_at = tuple(shelves) if within < total else ()
            proposing, common, counts = self._standing(db, words, looked_at, total)
            weights = {word: _rarity(count, within) for word, count in counts.items()}
            holders = {word: set(rows) for word, rows in proposing.items()}
            for word, among in _rows_among(db, common, list(known)).items():
                holders.setdefault(word, set()).update(among)
            scores: dict[int, float] = {}
            for word, rows in holders.items():
                for n in rows:
                    scores[n] = scores.get(n, 0.0) + weights[word]
            best = sorted(scores, key=lambda n: (-scores[n], n))[:limit]
            known |= _numbered(db, "n", [n for n in best if n not in known])
        every = sum(weights.values())
        wanted = dict.fromkeys((*(n for n in best if n in known), *known))
        return [LexicalHit(known[n], min(1.0, scores.get(n, 0.0) / every)) for n in wanted]

    def close(self) -> None:
        """Releases the file."""
        with self._lock:
            self._db.close()

    def _standing(
        self, db: sqlite3.Connection, words: Sequence[str], shelves: tuple[str, ...], total: int
    ) -> tuple[dict[str, list[int]], list[str], dict[str, int]]:
        """Where words are: those that propose records with their rows, common ones, all counts."""
        if len(self._common) >= _COUNTS_KEPT or abs(total - self._common_of) > (
            _CHANGE * self._common_of
        ):
            self._common, self._common_of = {}, total
        rows = {w: _rows_with(db, w, shelves) for w in words if (w, shelves) not in self._common}
        for word, seen in rows.items():
            if len(seen) >= _MOST:  # how far back these rows reach shows how dense the word is
                newest = _newest_row(db)
                count = max(len(seen), len(seen) * newest // (newest - seen[-1] + 1))
                self._common[word, shelves] = count
        common = [word for word in words if (word, shelves) in self._common]
        proposing = {word: seen for word, seen in rows.items() if seen and word not in common}
        if common and not proposing:
            one = common[0]
            proposing = {one: rows[one] if one in rows else _rows_with(db, one, shelves)}
        counts = {w: self._common[w, shelves] if w in common else len(rows[w]) for w in words}
        return proposing, common, counts

    @contextmanager
    def _errors(self) -> Generator[None]:
        """Turns what SQLite raises into our error."""
        try:
            yield
        except sqlite3.Error as error:
            where = "" if self._path is None else f" at {self._path}"
            code = getattr(error, "sqlite_errorcode", None)
            broken = code is not None and code & _PRIMARY_CODE not in _NOT_ITS_FAULT
            message = f"The index of words{where} failed: {error}."
            raise LexiconError(message, broken=broken) from error

    @contextmanager
    def _reading(self) -> Generator[sqlite3.Connection]:
        with self._lock, self._errors():
            yield self._db

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        """One transaction: all of it, or nothing."""
        with self._lock, self._errors():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # a full disk ends it by itself
                    self._db.execute("ROLLBACK")
                raise


# ---- Statements on rows ----


def _placed(db: sqlite3.Connection, given: Mapping[str, IndexedRecord]) -> list[IndexedRecord]:
    """The records with their places: one left to the order of arrival stays, or comes last."""
    query = f"SELECT id, episode, place FROM entries WHERE id IN {_IDS}"
    rows = db.execute(query, (json.dumps(list(given)),))
    known = {one: (episode, place) for one, episode, place in rows}
    last: dict[int, int] = {}
    found: list[IndexedRecord] = []
    for record in given.values():
        entry = record.entry
        if entry.episode not in last:
            query = "SELECT coalesce(max(place), -1) FROM entries WHERE episode = ?"
            last[entry.episode] = db.execute(query, (entry.episode,)).fetchone()[0]
        episode, place = known.get(entry.id, (None, 0))
        if entry.place >= 0:
            place = entry.place
        elif episode != entry.episode:
            place = last[entry.episode] + 1
        last[entry.episode] = max(place, last[entry.episode])
        found.append(record._replace(entry=entry._replace(place=place)))
    return found


def _remove(db: sqlite3.Connection, ids: Iterable[str]) -> None:
    """Forgets records, and that they were being written."""
    query = f"SELECT n, shelf, source, trusted FROM entries WHERE id IN {_IDS}"
    found = db.execute(query, (json.dumps(list(ids)),)).fetchall()
    numbers = [(row[0],) for row in found]
    db.executemany("DELETE FROM words WHERE rowid = ?", numbers)
    db.executemany("DELETE FROM entries WHERE n = ?", numbers)
    db.executemany("DELETE FROM pending WHERE id = ?", [(one,) for one in ids])
    _count_sources(db, (row[1:] for row in found), -1)


def _insert(db: sqlite3.Connection, records: Sequence[IndexedRecord]) -> None:
    """Writes what there is of records, whose ids must be new."""
    rows = list(enumerate(records, start=_newest_row(db) + 1))
    marks = ",".join("?" * (len(IndexEntry._fields) + 3))
    db.executemany(
        f"INSERT INTO entries (n, {_ENTRY}, text, rest) VALUES ({marks})",
        [(n, *one.entry, one.text, one.rest) for n, one in rows],
    )
    db.executemany(
        "INSERT INTO words (rowid, shelf, body) VALUES (?, ?, ?)",
        [(n, one.entry.shelf, one.words) for n, one in rows],
    )
    entries = (one.entry for one in records)
    _count_sources(db, ((entry.shelf, entry.source, entry.trusted) for entry in entries), +1)


def _count_sources(
    db: sqlite3.Connection, sources: Iterable[tuple[str, str, bool]], change: int
) -> None:
    """Counts records in or out of their shelves and, if they are trusted, of their sources.

    A source of which nothing is trusted could call itself by any word of a query.
    """
    rows = list(sources)
    shelves = Counter(shelf for shelf, _, _ in rows)
    trusted = Counter((shelf, source) for shelf, source, trusted in rows if trusted)
    db.executemany(
        "INSERT INTO shelves VALUES (?,?) ON CONFLICT DO UPDATE SET size = size + excluded.size",
        [(shelf, change * count) for shelf, count in shelves.items()],
    )
    db.executemany(
        "INSERT INTO sources VALUES (?,?,?) ON CONFLICT DO UPDATE SET size = size + excluded.size",
        [(*place, change * count) for place, count in trusted.items()],
    )


def _sizes(db: sqlite3.Connection) -> dict[str, int]:
    """How many records each shelf holds."""
    return dict(db.execute("SELECT shelf, size FROM shelves"))


def _newest_row(db: sqlite3.Connection) -> int:
    return db.execute("SELECT coalesce(max(n), 0) FROM entries").fetchone()[0]


def _numbered(
    db: sqlite3.Connection, column: Literal["id", "n"], values: Sequence[str] | Sequence[int]
) -> dict[int, IndexEntry]:
    """The entries that have one of these values in a column, by the numbers of their rows."""
    query = f"SELECT n, {_ENTRY} FROM entries WHERE {column} IN {_IDS}"
    rows = db.execute(query, (json.dumps(list(values)),))
    return {n: IndexEntry._make(row) for n, *row in rows}


def _rows_with(db: sqlite3.Connection, word: str, shelves: Sequence[str]) -> list[int]:
    """The numbers of the rows that hold a word, newest first, up to a bound; no shelves means all.

    The word and the shelves are of letters and digits only.
    """
    expression = f'body : "{word}"'
    if shelves:
        any_shelf = " OR ".join(f'"{shelf}"' for shelf in shelves)
        expression = f"shelf : ({any_shelf}) AND {expression}"
    (rows,) = db.execute(
        "SELECT json_group_array(rowid) FROM "
        "(SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?)",
        (expression, _MOST),
    ).fetchone()  # one row of JSON is read in half the time of so many rows
    return json.loads(rows)


def _rows_among(
    db: sqlite3.Connection, words: Sequence[str], numbers: Sequence[int]
) -> dict[str, list[int]]:
    """Which of a few rows hold each word.

    To look for a common word in a few rows only, these are indexed by themselves, in RAM.
    """
    if not words or not numbers:
        return {}
    db.execute(_FEW)
    db.execute("INSERT INTO temp.few (few) VALUES ('delete-all')")
    db.execute(
        "INSERT INTO temp.few (rowid, body) "
        f"SELECT rowid, body FROM main.words WHERE rowid IN {_IDS}",
        (json.dumps(list(numbers)),),
    )
    query = "SELECT rowid FROM temp.few WHERE few MATCH ?"
    return {word: [row[0] for row in db.execute(query, (f'"{word}"',))] for word in words}


def _rarity(rows: int, total: int) -> float:
    """How much a word separates records: the idf of BM25, in the form that is never negative.

    Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009, section 3.
    """
    weight = math.log(1.0 + (max(total, rows) - rows + 0.5) / (rows + 0.5))
    return weight if rows else _UNKNOWN * weight


def _ranges_around(entries: Iterable[IndexEntry], reach: int) -> list[tuple[int, int, int]]:
    """Where the neighbours of these are: episodes, first places, and those after the last."""
    wanted: dict[int, set[int]] = {}
    for entry in entries:
        if entry.episode:
            places = wanted.setdefault(entry.episode, set())
            places.update(range(entry.place - reach, entry.place + reach + 1))
    ranges: list[tuple[int, int, int]] = []
    for episode, places in wanted.items():
        for place in sorted(places):
            if ranges and ranges[-1][0] == episode and ranges[-1][2] == place:
                ranges[-1] = (episode, ranges[-1][1], place + 1)
            else:
                ranges.append((episode, place, place + 1))
    return ranges
