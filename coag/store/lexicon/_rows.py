"""Statements on single rows, and the language of FTS5."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ._entries import Entry, Leaf
from ._tables import FEW

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


def insert_leaf(db: sqlite3.Connection, leaf: Leaf) -> None:
    """Writes what there is of a record; the id must be new."""
    entry = leaf.entry
    marks = ",".join("?" * (len(entry) + 2))
    cursor = db.execute(
        f"INSERT INTO entries ({READ}, text, rest) VALUES ({marks})",
        (*entry, leaf.text, leaf.rest),
    )
    db.execute(
        "INSERT INTO words (rowid, shelf, body) VALUES (?, ?, ?)",
        (cursor.lastrowid, entry.shelf, leaf.words),
    )
    count_source(db, entry.shelf, entry.source, entry.trusted, +1)


def count_source(
    db: sqlite3.Connection, shelf: str, source: str, trusted: bool, change: int
) -> None:
    """Counts a record in or out of its shelf and, if it is trusted, of its source.

    A source of which nothing is trusted could call itself by any word of a query.
    """
    db.execute(
        "INSERT INTO shelves VALUES (?1, ?2) ON CONFLICT DO UPDATE SET size = size + ?2",
        (shelf, change),
    )
    if not trusted:
        return
    db.execute(
        "INSERT INTO sources VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET size = size + ?3",
        (shelf, source, change),
    )


def next_place(db: sqlite3.Connection, entry: Entry, last: dict[int, int]) -> int:
    """The place after the last one of the episode; `last` remembers it within one call."""
    if entry.episode not in last:
        row = db.execute(
            "SELECT max(place) FROM entries WHERE episode = ?", (entry.episode,)
        ).fetchone()
        last[entry.episode] = -1 if row[0] is None else row[0]
    last[entry.episode] += 1
    return last[entry.episode]


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
    rows = db.execute(
        "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?",
        (expression, _MOST),
    )
    return [row[0] for row in rows]


def rows_among(
    db: sqlite3.Connection, words: Sequence[str], numbers: Sequence[int]
) -> dict[str, list[int]]:
    """In which of a few rows each word stands.

    To look for a common word in a few rows only, these are indexed by themselves, in RAM.
    """
    if not words or not numbers:
        return {}
    db.execute(FEW)
    db.execute("DELETE FROM temp.few")
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


def how_many(rows: Sequence[int], newest: int) -> int:
    """In how many rows a word stands; of a common one about so many.

    How far back the bounded number of rows reaches tells how dense the word stands.

    Args:
        rows: What `rows_with` gave.
        newest: The number of the newest row.
    """
    if len(rows) < _MOST:
        return len(rows)
    return max(len(rows), len(rows) * newest // (newest - rows[-1] + 1))


def numbers_of(db: sqlite3.Connection, ids: Collection[str]) -> list[int]:
    """The numbers of the rows of these records; unknown ones are left out."""
    rows = db.execute(
        "SELECT n FROM entries WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )
    return [row[0] for row in rows]


def names_of(db: sqlite3.Connection, numbers: Collection[int]) -> dict[int, str]:
    """The ids of the records in these rows."""
    rows = db.execute(
        "SELECT n, id FROM entries WHERE n IN (SELECT value FROM json_each(?))",
        (json.dumps(list(numbers)),),
    )
    return dict(rows.fetchall())


def newest_row(db: sqlite3.Connection) -> int:
    """The number of the newest row; 0 if there is none."""
    return db.execute("SELECT coalesce(max(n), 0) FROM entries").fetchone()[0]


def split(rows: Mapping[str, Sequence[int]]) -> tuple[list[str], list[str]]:
    """The words of which all rows were seen, and the common ones; without any, one of these."""
    common = [word for word, seen in rows.items() if len(seen) >= _MOST]
    rare = [word for word, seen in rows.items() if 0 < len(seen) < _MOST]
    return rare or common[:1], common


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
