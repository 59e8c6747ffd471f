"""The words of records as rows of SQLite."""

from __future__ import annotations

import hashlib
import json
import math
import re
import sqlite3
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from coag.errors import RecordStoreError
from coag.schema import MemoryKind, Record, Trust

# ---- Which words of a record are looked through, and which words of a query count ----


_WORD = re.compile(r"[^\W_]+")
_LONGEST_WORD = 64
_MOST_WORDS = 64
"""Of a query: a longer one is a text of its own, and its first words tell what it is about."""

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
"""English words that stand in any text; they find nothing."""


def indexed_text(record: Record) -> str:
    """What of a record is looked through: its text, its textual metadata, its date in words."""
    event, fact = record.event, record.fact
    parts = [record.text, *(str(v) for v in record.metadata.values() if isinstance(v, str))]
    if event is not None:
        parts += [event.situation, event.action, event.outcome, event.place]
        if event.at is not None:
            parts.append(f"{event.at.day} {event.at:%B %Y}")
    if fact is not None:
        parts += [part for part in (fact.subject, fact.attribute, fact.value) if part]
    return " ".join(part for part in parts if part)


def query_words(text: str) -> tuple[str, ...]:
    """The words of a query that can find something, each once, in their order."""
    words = (word for word in _WORD.findall(text.casefold().replace("'s", " ")))
    telling = (word for word in words if word not in _EMPTY_WORDS and len(word) <= _LONGEST_WORD)
    return tuple(dict.fromkeys(telling))[:_MOST_WORDS]


def without_names(text: str, names: Iterable[str]) -> str:
    """A query without the names of sources: in a text, a name mostly marks somebody else."""
    for name in names:
        text = re.sub(
            rf"(?<!\w){re.escape(name)}(?:['\u2019]s)?(?!\w)", " ", text, flags=re.IGNORECASE
        )
    return text


# ---- What the lexicon keeps of each record besides its words ----


_LAST_PLACE = 2**62
"""SQLite keeps numbers of 64 bits; records of a later place share this one."""

Fields = Mapping[str, str | float | bool]


class Entry(NamedTuple):
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


class Leaf(NamedTuple):
    """All that the lexicon holds of one record."""

    entry: Entry
    words: str
    """The text in which it is found."""
    text: str = ""
    """Its own text; empty where records are fetched from elsewhere."""
    rest: str = ""
    """Everything else of it, in the form in which it was given."""


def shelf_of(kind: MemoryKind, scope: str) -> str:
    """One word for a kind and a scope, beginning with the kind's first letter."""
    return (
        kind.value[0]
        + hashlib.blake2b(f"{kind.value}\x1f{scope}".encode(), digest_size=10).hexdigest()
    )


def leaf_of(record: Record, flat: Fields, rest: str = "") -> Leaf:
    """The leaf of a record, of which filters see `flat`.

    Its entry's place is -1 where the record leaves it to the order of arrival. With the rest of
    the record it is kept whole.
    """
    event = record.event
    order = None if event is None else event.order
    shelf = shelf_of(record.kind, record.scope)
    entry = Entry(
        id=record.id,
        shelf=shelf,
        scope=record.scope,
        episode=_episode_number(shelf, _episode(record)),
        place=-1 if order is None else max(-1, min(order, _LAST_PLACE)),
        source=record.provenance.source,
        created=record.happened_at.timestamp(),
        importance=record.dynamics.importance,
        length=len(record.text.split()),
        asks=record.text.rstrip().endswith(("?", "\uff1f", "\u061f")),
        trusted=record.provenance.trust is not Trust.UNTRUSTED,
        fields=json.dumps(flat),
    )
    return Leaf(entry, indexed_text(record), record.text if rest else "", rest)


def same_entry(new: Entry, known: Entry) -> bool:
    """Whether nothing is to be taken in; a place left to the order of arrival stays as it is."""
    placed = new._replace(place=known.place) if new.place < 0 else new
    return placed == known


def _episode(record: Record) -> str:
    """The named episode, or the events that one activity of one run remembered."""
    if record.event is not None and record.event.episode:
        return f"episode {record.event.episode}"
    origin = record.provenance
    if record.kind is not MemoryKind.EPISODIC or not origin.run:
        return ""
    return f"run {origin.run} {origin.activity}"


def _episode_number(shelf: str, name: str) -> int:
    """A number of 62 bits, so that SQLite keeps it as one; 0 for no episode."""
    if not name:
        return 0
    digest = hashlib.blake2b(f"{shelf} {name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 2 or 1


# ---- The tables of the lexicon ----


FORMAT = "3"
"""Another format is thrown away and made anew: the lexicon holds nothing of its own."""

_WORDS = "porter unicode61 remove_diacritics 2"
"""How a text is taken apart into words."""

MARKED = f"""
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT);
INSERT OR IGNORE INTO meta VALUES ('format', '{FORMAT}');
"""
"""Done first: it tells the format of a file before anything else of it is touched."""

TABLES = f"""
CREATE TABLE IF NOT EXISTS pending (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS shelves (shelf TEXT PRIMARY KEY, size INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sources (
    shelf TEXT, source TEXT, size INTEGER, PRIMARY KEY (shelf, source)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS entries (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    shelf TEXT NOT NULL,
    scope TEXT NOT NULL,
    episode INTEGER NOT NULL,
    place INTEGER NOT NULL,
    source TEXT NOT NULL,
    created REAL NOT NULL,
    importance REAL NOT NULL,
    length INTEGER NOT NULL,
    asks INTEGER NOT NULL,
    trusted INTEGER NOT NULL,
    fields TEXT NOT NULL,
    text TEXT NOT NULL,
    rest TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS entries_by_place ON entries (episode, place);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
    shelf, body, tokenize = '{_WORDS}'
);
"""

FEW = f"""
CREATE VIRTUAL TABLE IF NOT EXISTS temp.few USING fts5 (
    body, content = '', columnsize = 0, tokenize = '{_WORDS}'
);
"""
"""A few rows, indexed by themselves for one query."""


# ---- What goes wrong with the file of the lexicon ----


_PRIMARY_CODE = 0xFF
"""The part of SQLite's codes that tells the sort of failure."""

_NOT_ITS_FAULT = frozenset(
    (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_AUTH,
        sqlite3.SQLITE_TOOBIG,
        sqlite3.SQLITE_INTERRUPT,
    )
)
"""Failures of the disk, of rights, of others who write: the file itself may be sound."""


class LexiconError(RecordStoreError):
    """The index cannot be read or written."""

    def __init__(self, message: str, *, broken: bool) -> None:
        super().__init__(message)
        self.broken = broken
        """Whether the index itself is at fault, so that it should be made anew."""


@contextmanager
def lexicon_errors(path: Path | None) -> Generator[None]:
    """Turns what SQLite raises into our error."""
    try:
        yield
    except sqlite3.Error as error:
        where = "" if path is None else f" at {path}"
        code = getattr(error, "sqlite_errorcode", None)
        broken = code is not None and code & _PRIMARY_CODE not in _NOT_ITS_FAULT
        raise LexiconError(f"The index of words{where} failed: {error}.", broken=broken) from error


# ---- Statements on single rows, and the language of FTS5 ----


_MOST = 400
"""Rows of a word that are looked at, the newest; how many a common one has is estimated."""

_UNKNOWN = 0.5
"""What a word that no record has counts, as a part of its rarity: it tells none of them apart."""

_COLUMNS = Entry._fields
READ = ", ".join(_COLUMNS)
"""The columns that `entry` reads, in their order."""


def read_entry(row: Any) -> Entry:
    """The entry that a row of `READ` columns stands for."""
    return Entry._make(row)


def each_once(leaves: Iterable[Leaf]) -> Iterator[dict[str, Leaf]]:
    """The leaves by id, in as many turns as an id is given again."""
    turn: dict[str, Leaf] = {}
    for leaf in leaves:
        if leaf.entry.id in turn:
            yield turn
            turn = {}
        turn[leaf.entry.id] = leaf
    yield turn


def insert_leaves(db: sqlite3.Connection, leaves: Sequence[Leaf]) -> None:
    """Writes what there is of records, within one transaction; their ids must be new."""
    rows = list(enumerate(leaves, start=newest_row(db) + 1))
    marks = ",".join("?" * (len(_COLUMNS) + 3))
    db.executemany(
        f"INSERT INTO entries (n, {READ}, text, rest) VALUES ({marks})",
        [(n, *leaf.entry, leaf.text, leaf.rest) for n, leaf in rows],
    )
    db.executemany(
        "INSERT INTO words (rowid, shelf, body) VALUES (?, ?, ?)",
        [(n, leaf.entry.shelf, leaf.words) for n, leaf in rows],
    )
    entries = (leaf.entry for leaf in leaves)
    count_sources(db, ((entry.shelf, entry.source, entry.trusted) for entry in entries), +1)


def count_sources(
    db: sqlite3.Connection, sources: Iterable[tuple[str, str, bool]], change: int
) -> None:
    """Counts records in or out of their shelves and, if they are trusted, of their sources.

    A source of which nothing is trusted could call itself by any word of a query.

    Args:
        db: The lexicon.
        sources: Of each record its shelf, its source, and whether it is trusted.
        change: 1 or -1 for each.
    """
    counted = Counter((shelf, source, bool(trusted)) for shelf, source, trusted in sources)
    shelves: Counter[str] = Counter()
    for (shelf, _, _), count in counted.items():
        shelves[shelf] += count
    db.executemany(
        "INSERT INTO shelves VALUES (?1, ?2) ON CONFLICT DO UPDATE SET size = size + ?2",
        [(shelf, change * count) for shelf, count in shelves.items()],
    )
    db.executemany(
        "INSERT INTO sources VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET size = size + ?3",
        [
            (shelf, source, change * count)
            for (shelf, source, trusted), count in counted.items()
            if trusted
        ],
    )


def places_of(db: sqlite3.Connection, ids: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Episode and place of those of these records that are known."""
    rows = db.execute(
        "SELECT id, episode, place FROM entries WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )
    return {one: (episode, place) for one, episode, place in rows}


def placed(
    db: sqlite3.Connection, leaves: Iterable[Leaf], known: Mapping[str, tuple[int, int]]
) -> list[Leaf]:
    """The leaves with their places: what is left to the order of arrival stays or comes last.

    Args:
        db: The lexicon.
        leaves: What is to be taken in.
        known: Where those stood that were taken in before.
    """
    last: dict[int, int] = {}
    found: list[Leaf] = []
    for leaf in leaves:
        entry = leaf.entry
        if entry.episode not in last:
            last[entry.episode] = _last_place(db, entry.episode)
        episode, place = known.get(entry.id, (None, 0))
        if entry.place >= 0:
            place = entry.place
        elif episode != entry.episode:
            place = last[entry.episode] + 1
        last[entry.episode] = max(place, last[entry.episode])
        found.append(leaf._replace(entry=entry._replace(place=place)))
    return found


def _last_place(db: sqlite3.Connection, episode: int) -> int:
    row = db.execute("SELECT max(place) FROM entries WHERE episode = ?", (episode,)).fetchone()
    return -1 if row[0] is None else row[0]


def shelf_sizes(db: sqlite3.Connection) -> dict[str, int]:
    """How many records each shelf holds."""
    return dict(db.execute("SELECT shelf, size FROM shelves"))


def rows_with(db: sqlite3.Connection, word: str, shelves: Sequence[str]) -> list[int]:
    """The numbers of the rows in which a word stands, newest first, up to a bound.

    Args:
        db: The lexicon.
        word: Of letters and digits only.
        shelves: Where to look, of letters and digits only; none for everywhere.
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


def rows_among(
    db: sqlite3.Connection, words: Sequence[str], numbers: Sequence[int]
) -> dict[str, list[int]]:
    """In which of a few rows each word stands.

    To look for a common word in a few rows only, these are indexed by themselves, in RAM.
    """
    if not words or not numbers:
        return {}
    db.execute(FEW)
    db.execute("INSERT INTO temp.few (few) VALUES ('delete-all')")
    db.execute(
        "INSERT INTO temp.few (rowid, body) SELECT rowid, body FROM main.words WHERE rowid IN "
        "(SELECT value FROM json_each(?))",
        (json.dumps(list(numbers)),),
    )
    found: dict[str, list[int]] = {}
    for word in words:
        rows = db.execute("SELECT rowid FROM temp.few WHERE few MATCH ?", (f'"{word}"',))
        found[word] = [row[0] for row in rows]
    return found


def is_common(rows: Sequence[int]) -> bool:
    """Whether a word stands in so many rows that not all were looked at."""
    return len(rows) >= _MOST


def how_many(rows: Sequence[int], newest: int) -> int:
    """In about how many rows a common word stands.

    How far back the bounded number of rows reaches tells how dense the word stands.

    Args:
        rows: What `rows_with` gave.
        newest: The number of the newest row.
    """
    return max(len(rows), len(rows) * newest // (newest - rows[-1] + 1))


def numbered(
    db: sqlite3.Connection, column: Literal["id", "n"], values: Sequence[str] | Sequence[int]
) -> dict[int, Entry]:
    """The entries that have one of these values in a column, by the numbers of their rows."""
    rows = db.execute(
        f"SELECT n, {READ} FROM entries WHERE {column} IN (SELECT value FROM json_each(?))",
        (json.dumps(list(values)),),
    )
    return {n: read_entry(row) for n, *row in rows}


def newest_row(db: sqlite3.Connection) -> int:
    """The number of the newest row; 0 if there is none."""
    return db.execute("SELECT coalesce(max(n), 0) FROM entries").fetchone()[0]


def rarity(rows: int, total: int) -> float:
    """How much a word tells: the idf of BM25, in the form that is never negative.

    Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009, section 3.
    """
    weight = math.log(1.0 + (max(total, rows) - rows + 0.5) / (rows + 0.5))
    return weight if rows else _UNKNOWN * weight


def stretches_around(entries: Iterable[Entry], reach: int) -> list[tuple[int, int, int]]:
    """Where the neighbours of these stand: episodes, first places, and those after the last."""
    wanted: dict[int, set[int]] = {}
    for entry in entries:
        if entry.episode:
            places = wanted.setdefault(entry.episode, set())
            places.update(range(entry.place - reach, entry.place + reach + 1))
    return [
        (episode, first, end)
        for episode, places in wanted.items()
        for first, end in _stretches(places)
    ]


def _stretches(places: Iterable[int]) -> list[tuple[int, int]]:
    """Numbers as stretches without gaps: the first of each and the one after its last."""
    stretches: list[tuple[int, int]] = []
    for place in sorted(places):
        if stretches and stretches[-1][1] == place:
            stretches[-1] = (stretches[-1][0], place + 1)
        else:
            stretches.append((place, place + 1))
    return stretches
