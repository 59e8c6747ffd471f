"""What the lexicon keeps of each record besides its words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import NamedTuple

from coag.schema import MemoryKind, Record, Trust

from ._words import indexed_text

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
