"""The words of the records, so that they are found by what they say.

A `Lexicon` is an index derived from the records: full text in SQLite (FTS5) and,
for each record, the few things that ranking needs besides: its episode and place in it, its
source, its fields. It can be thrown away at any time and made anew from the records; what is
written is journalled, so that an interrupted write is found and mended at the next opening.
"""

from .lexicon import LexicalHit, Lexicon, throw_away
from .rows import (
    Entry,
    Leaf,
    LexiconError,
    indexed_text,
    leaf_of,
    query_words,
    same_entry,
    shelf_of,
    without_names,
)

__all__ = [
    "Lexicon",
    "LexiconError",
    "LexicalHit",
    "Entry",
    "Leaf",
    "leaf_of",
    "same_entry",
    "throw_away",
    "shelf_of",
    "indexed_text",
    "query_words",
    "without_names",
]
