"""Statements on single rows, and the language of FTS5."""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

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
