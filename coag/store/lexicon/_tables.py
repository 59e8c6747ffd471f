"""The tables of the lexicon."""

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
