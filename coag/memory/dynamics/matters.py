"""Which record yields to which: of two that disagree, to the later or better trusted one.

A record that yields stays as it is. Where the record that it yields to is removed, it yields to
the one that that one yielded to, or is valid again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from coag.memory.facts import at_least, rank_of, trust_of
from coag.schema import Record, Trust
from coag.store import RecordStore

from .file import DynamicsFile
from .interference import matter_of, may_yield, say_otherwise

_MATTERS = """
CREATE TABLE IF NOT EXISTS matters (
  owner TEXT NOT NULL, record TEXT NOT NULL, matter TEXT NOT NULL, said_at REAL NOT NULL,
  yields_to TEXT NOT NULL DEFAULT '', PRIMARY KEY (record, owner)
);
CREATE INDEX IF NOT EXISTS standing ON matters (owner, matter, said_at) WHERE yields_to = '';
CREATE INDEX IF NOT EXISTS yielding ON matters (yields_to) WHERE yields_to != ''
"""
_MOST = 16
"""Standing records of one matter, the latest, that a new one is compared with."""
_BATCH = 500
_NOTES = "SELECT record, matter, said_at, yields_to FROM matters WHERE owner = ?"


@dataclass(frozen=True, slots=True)
class SaidRecord:
    """A record that is said, for the first time or again."""

    record: Record
    trust: Trust
    """Of who says it."""
    at: float
    """When, in POSIX seconds."""


class MatterNote(NamedTuple):
    """What is kept of a record."""

    record: str
    matter: str
    """What it is about; see `matter_of`."""
    said_at: float
    yields_to: str
    """Empty where it yields to none."""


Standing = Mapping[str, Mapping[str, float]]
"""By matter the ids of records that yield to none, with the time at which each was said."""


class Matters:
    """What one owner knows of records that say otherwise."""

    def __init__(self, file: DynamicsFile, owner: str) -> None:
        self.file = file
        self.owner = owner
        file.create(_MATTERS, records=("matters.record",))

    def standing(self, records: Iterable[Record]) -> Standing:
        """The valid records on the matters of these; of many on one matter the latest."""
        query = (
            "SELECT record, said_at FROM matters WHERE owner = ? AND matter = ? "
            "AND yields_to = '' ORDER BY said_at DESC LIMIT ?"
        )
        matters = {matter for one in records if (matter := matter_of(one)) is not None}
        return {
            one: {
                row["record"]: row["said_at"]
                for row in self.file.rows(query, self.owner, one, _MOST)
            }
            for one in matters
        }

    def say(
        self, statements: Sequence[SaidRecord], standing: Standing, known: Mapping[str, Record]
    ) -> None:
        """Notes statements, in their order: of two that say otherwise one yields.

        That is the earlier one, unless it is trusted more.
        """
        known = {**known, **{one.record.id: one.record for one in statements}}
        heads = {matter: dict(times) for matter, times in standing.items()}
        rows: dict[str, tuple[str, float, str]] = {}
        for one in statements:
            if (matter := matter_of(one.record)) is None:
                continue
            here = heads.setdefault(matter, {})
            here.pop(one.record.id, None)
            yields_to = ""
            for head, at in list(here.items()):
                other = known.get(head)
                if other is None or not say_otherwise(other.text, one.record.text):
                    continue
                if _gives_way(other, at, one):
                    rows[head] = (matter, at, one.record.id)
                    del here[head]
                else:
                    yields_to = head
            rows[one.record.id] = (matter, one.at, yields_to)
            if not yields_to:
                here[one.record.id] = one.at
        self.put(MatterNote(name, *row) for name, row in rows.items())

    def put(self, notes: Iterable[MatterNote]) -> None:
        """Keeps notes, in place of what was kept of their records."""
        self.file.write(
            "INSERT OR REPLACE INTO matters (owner, record, matter, said_at, yields_to) "
            "VALUES (?, ?, ?, ?, ?)",
            [(self.owner, *one) for one in notes],
        )

    def get(self, ids: Sequence[str]) -> dict[str, MatterNote]:
        """What is kept of these records, by id."""
        rows = self.file.rows_of(f"{_NOTES} AND record IN ({{}})", ids, self.owner)
        return {row["record"]: MatterNote(*row) for row in rows}

    def scan(self, *, batch: int = _BATCH) -> Iterator[list[MatterNote]]:
        """All that is kept, in the order of the ids, some at a time."""
        query, after = f"{_NOTES} AND record > ? ORDER BY record LIMIT ?", ""
        while rows := self.file.rows(query, self.owner, after, batch):
            yield [MatterNote(*row) for row in rows]
            after = rows[-1]["record"]

    async def compared(
        self, said: Iterable[tuple[Record, Trust, float]], store: RecordStore
    ) -> Callable[[], None]:
        """Looks up what was said before of the same; what it gives notes what yields.

        Of each record comes the trust of who says it, and when, in POSIX seconds, in order.
        """
        statements = [
            SaidRecord(record, min(trust, trust_of(record), key=rank_of), at)
            for record, trust, at in said
            if record.superseded_by is None and may_yield(record)
        ]
        standing = self.standing(one.record for one in statements)
        heads = list({one for times in standing.values() for one in times})
        known = {one.id: one for one in await store.get(heads)} if heads else {}
        return lambda: self.say(statements, standing, known)

    def yielding(self, ids: Sequence[str]) -> dict[str, str]:
        """What these records, and those that they yield to, yield to; by id."""
        if not ids:
            return {}
        marks = ",".join("?" * len(ids))
        query = (
            "WITH RECURSIVE chain (record, yields_to) AS (SELECT record, yields_to FROM matters "
            f"WHERE owner = ? AND record IN ({marks}) AND yields_to != '' UNION "
            "SELECT m.record, m.yields_to FROM chain JOIN matters m ON m.record = chain.yields_to "
            "AND m.owner = ? AND m.yields_to != '') SELECT record, yields_to FROM chain"
        )
        rows = self.file.rows(query, self.owner, *ids, self.owner)
        return {row["record"]: row["yields_to"] for row in rows}

    def removed(self, ids: Iterable[str]) -> None:
        """Lets what yields to records that will be removed yield to what these yield to."""
        self.file.write(
            "UPDATE matters SET yields_to = COALESCE((SELECT gone.yields_to FROM matters gone "
            "WHERE gone.record = ? AND gone.owner = matters.owner), '') WHERE yields_to = ?",
            [(one, one) for one in ids],
        )


def _gives_way(other: Record, at: float, statement: SaidRecord) -> bool:
    if statement.at >= at:
        return at_least(statement.trust, trust_of(other))
    return not at_least(trust_of(other), statement.trust)
