"""The archive: records that have faded, word for word.

A record is written here, in one transaction, before the store loses it. Where a process ends
between the two it is in both, and `unfinished` names it; the next sleep completes that. What is
kept is the record as JSON, compressed, with the SHA-256 of the JSON's bytes, which is compared
whenever it is written and read.
"""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from coag.errors import RecordStoreError
from coag.schema import MemoryKind, Record, folded

from .file import DynamicsFile
from .settings import ArchiveRetention
from .states import DAY

ArchiveReason = Literal["faded", "perspective", "by_hand"]
"""Why a record is here: it fell below the floor, is what several witnesses tell of, or somebody
put it here."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS archive (
  record TEXT PRIMARY KEY, owner TEXT NOT NULL, kind TEXT NOT NULL, scope TEXT NOT NULL,
  subject TEXT, attribute TEXT, supersedes TEXT, superseded_by TEXT, reason TEXT NOT NULL,
  archived_at REAL NOT NULL, finished INTEGER NOT NULL, size INTEGER NOT NULL,
  hash TEXT NOT NULL, content BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS archive_by_age ON archive (archived_at, record);
CREATE INDEX IF NOT EXISTS archive_unfinished ON archive (record) WHERE finished = 0;
CREATE INDEX IF NOT EXISTS archive_by_matter ON archive (scope, subject, attribute);
CREATE INDEX IF NOT EXISTS archive_by_older ON archive (supersedes);
CREATE TABLE IF NOT EXISTS archive_reads (
  record TEXT NOT NULL, owner TEXT NOT NULL, at REAL NOT NULL, why TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS archive_reads_by_record ON archive_reads (record, at)
"""
_COLUMNS = (
    "record, owner, kind, scope, subject, attribute, supersedes, superseded_by, reason, "
    "archived_at, finished, size, hash, content"
)
_MOST = 500
"""Ids in one query."""
_READ = "(SELECT MAX(at) FROM archive_reads WHERE archive_reads.record = archive.record)"
"""When a row was last read."""
_ENTRIES = (
    f"SELECT *, {_READ} AS read_at, (SELECT COUNT(*) FROM archive_reads "
    "WHERE archive_reads.record = archive.record) AS reads FROM archive"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveEntry:
    """What is known of an archived record without unpacking it."""

    record: str
    owner: str
    """Whose dynamics put it here."""
    kind: MemoryKind
    scope: str
    reason: ArchiveReason
    archived_at: float
    """POSIX seconds."""
    size: int
    """Bytes that it takes here."""
    reads: int
    read_at: float | None
    """When it was last read; None for never."""


class MemoryArchive:
    """The archived records of a file, of all owners: a record is the same for each of them.

    The caller checks whether the scopes of the returned records may be read.
    """

    def __init__(self, file: DynamicsFile) -> None:
        self.file = file
        file.create(_SCHEMA)

    def put(
        self,
        records: Iterable[Record],
        *,
        owner: str,
        at: float,
        reason: ArchiveReason = "faded",
        finished: bool = False,
    ) -> None:
        """Writes records down, durably; what is here under the same id is replaced.

        Args:
            records: What to keep.
            owner: Whose dynamics do it.
            at: When, in POSIX seconds.
            reason: Why.
            finished: Whether the store holds none of them; else they are `unfinished`.

        Raises:
            RecordStoreError: A record cannot be read back as it is, or the file fails; none is
                written then.
        """
        rows = [(*_row_of(one, owner, reason, at), finished, *_packed(one)) for one in records]
        marks = ", ".join("?" * len(_COLUMNS.split(", ")))
        with self.file.transaction(durable=True) as db:
            db.executemany(f"INSERT OR REPLACE INTO archive ({_COLUMNS}) VALUES ({marks})", rows)

    def get(self, owner: str, record: str, *, at: float, why: str = "") -> Record | None:
        """What a record said, word for word; notes who read it, why, and when (POSIX seconds).

        Raises:
            RecordStoreError: What is kept is damaged, or the file fails.
        """
        found = self.peek([record]).get(record)
        if found is not None:
            row = (record, owner, at, why)
            self.file.write("INSERT INTO archive_reads VALUES (?, ?, ?, ?)", [row])
        return found

    def peek(self, ids: Iterable[str]) -> dict[str, Record]:
        """The records with these ids, by id; that is not noted, and others are left out.

        Raises:
            RecordStoreError: What is kept is damaged, or the file fails.
        """
        rows = self.file.rows_of("SELECT * FROM archive WHERE record IN ({})", ids)
        return {row["record"]: _unpacked(row) for row in rows}

    @property
    def empty(self) -> bool:
        """Whether nothing is here."""
        return not self.file.rows("SELECT 1 FROM archive LIMIT 1")

    def has(self, ids: Iterable[str]) -> set[str]:
        """Those of these ids that are here."""
        rows = self.file.rows_of("SELECT record FROM archive WHERE record IN ({})", ids)
        return {row["record"] for row in rows}

    def current_on(self, records: Iterable[Record]) -> list[str]:
        """Ids of the current facts here on the same matters as these records."""
        query = (
            "SELECT record FROM archive WHERE scope = ? AND subject = ? AND attribute = ? "
            "AND superseded_by IS NULL"
        )
        matters = {
            (one.scope, folded(one.fact.subject), folded(one.fact.attribute))
            for one in records
            if one.fact is not None and one.fact.attribute.strip()
        }
        return [row["record"] for one in sorted(matters) for row in self.file.rows(query, *one)]

    def scan(
        self,
        *,
        kind: MemoryKind | None = None,
        scopes: Sequence[str] | None = None,
        beginning: str = "",
        batch: int = _MOST,
    ) -> Iterator[list[Record]]:
        """All that is here in the order of the ids, some at a time."""
        conditions, values = (
            ["record > ?", "record >= ?", "record < ?"],
            [beginning, f"{beginning}g"],
        )
        if kind is not None:
            conditions.append("kind = ?")
            values.append(kind.value)
        if scopes is not None:
            conditions.append(f"scope IN ({_marks(scopes)})")
            values += scopes
        query = f"SELECT * FROM archive WHERE {' AND '.join(conditions)} ORDER BY record LIMIT ?"
        after = ""
        while rows := self.file.rows(query, after, *values, batch):
            yield [_unpacked(row) for row in rows]
            after = rows[-1]["record"]

    def entries(
        self, *, scopes: Sequence[str] | None = None, most: int = 100
    ) -> list[ArchiveEntry]:
        """What was archived last, without unpacking it."""
        whose = "" if scopes is None else f"WHERE scope IN ({_marks(scopes)}) "
        query = f"{_ENTRIES} {whose}ORDER BY archived_at DESC, record LIMIT ?"
        return [_entry_of(row) for row in self.file.rows(query, *(scopes or ()), most)]

    def entries_of(self, ids: Iterable[str]) -> list[ArchiveEntry]:
        """What is known of archived records, in the order of their ids."""
        query = f"{_ENTRIES} WHERE record IN ({{}}) ORDER BY record"
        return [*map(_entry_of, self.file.rows_of(query, ids))]

    def owner_of(self, beginning: str) -> str | None:
        """Whose dynamics put a record here, by its id or the beginning of it."""
        query = "SELECT owner FROM archive WHERE record >= ? AND record < ? LIMIT 1"
        rows = self.file.rows(query, beginning, f"{beginning}g")
        return rows[0]["owner"] if rows else None

    def unfinished(self, owner: str, most: int = _MOST) -> list[str]:
        """Ids of what an owner put here, and the store may still hold."""
        query = "SELECT record FROM archive WHERE finished = 0 AND owner = ? LIMIT ?"
        return [row["record"] for row in self.file.rows(query, owner, most)]

    def finish(self, ids: Iterable[str], *, finished: bool = True) -> None:
        """Notes that the store has lost these records or, with false, is to have them again."""
        rows = [(finished, one) for one in ids]
        self.file.write("UPDATE archive SET finished = ? WHERE record = ?", rows)

    def rewrite(self, records: Sequence[Record]) -> list[Record]:
        """Writes over everything of archived records but id, kind, scope and text.

        Returns:
            The records as they are kept, without those that are not here.

        Raises:
            RecordStoreError: The kind, scope or text of one differs; none is written then.
        """
        there = self.peek(record.id for record in records)
        here = [record for record in records if record.id in there]
        for one in here:
            was = there[one.id]
            if (one.kind, one.scope, one.text) != (was.kind, was.scope, was.text):
                raise RecordStoreError(
                    f"Kind, scope and text of the archived record {one.id!r} cannot be changed; "
                    "nothing was written. Supersede it by another record instead."
                )
        update = (
            "UPDATE archive SET supersedes = ?, superseded_by = ?, size = ?, hash = ?, content = ? "
            "WHERE record = ?"
        )
        rows = [(one.supersedes, one.superseded_by, *_packed(one), one.id) for one in here]
        self.file.write(update, rows)
        return here

    def drop(self, ids: Iterable[str]) -> None:
        """Removes records for good, with the notes of who read them."""
        rows = [(one,) for one in ids]
        with self.file.transaction():
            for table in ("archive", "archive_reads"):
                self.file.write(f"DELETE FROM {table} WHERE record = ?", rows)

    def ids_of(self, scope: str) -> list[str]:
        """Ids of the records of a scope, damaged ones too."""
        rows = self.file.rows("SELECT record FROM archive WHERE scope = ?", scope)
        return [row["record"] for row in rows]

    def forget(self, scope: str) -> int:
        """Removes every record of a scope for good, and says how many the store had lost."""
        with self.file.transaction():
            query = "SELECT record, finished FROM archive WHERE scope = ?"
            rows = self.file.rows(query, scope)
            self.drop(row["record"] for row in rows)
        return sum(row["finished"] for row in rows)

    def count(self, kind: MemoryKind | None = None) -> int:
        """How many there are that the store no longer has, of one kind or both."""
        query = "SELECT COUNT(*) AS n FROM archive WHERE finished = 1 AND kind = COALESCE(?, kind)"
        return int(self.file.rows(query, None if kind is None else kind.value)[0]["n"])

    def size(self) -> int:
        """Bytes that all of them take."""
        return int(self.file.rows("SELECT COALESCE(SUM(size), 0) AS n FROM archive")[0]["n"])

    def superfluous(
        self, owner: str, now: float, settings: ArchiveRetention, most: int = _MOST
    ) -> list[str]:
        """Ids of what an owner's retention no longer keeps, the least used first.

        These are records that were archived and last read longer ago than `age` and, while the
        owner's take more bytes than `largest`, those not read for longest. A record that
        superseded another stays as long as that one, so that no chain gets a gap.
        """
        since = now - settings.age * DAY
        used = f"MAX(archived_at, COALESCE({_READ}, archived_at))"
        loose = "supersedes IS NULL OR supersedes NOT IN (SELECT record FROM archive)"
        query = (
            f"SELECT record, size, {used} AS used FROM archive "
            f"WHERE owner = ? AND finished = 1 AND ({loose}) ORDER BY used, record"
        )
        total = "SELECT COALESCE(SUM(size), 0) AS n FROM archive WHERE owner = ?"
        left = int(self.file.rows(total, owner)[0]["n"])
        found: list[str] = []
        for row in self.file.rows(f"{query} LIMIT ?", owner, most):
            too_much = settings.largest is not None and left > settings.largest
            if row["used"] >= since and not too_much:
                break
            left -= row["size"]
            found.append(row["record"])
        return found


def _row_of(record: Record, owner: str, reason: str, at: float) -> tuple[object, ...]:
    fact = record.fact
    return (
        record.id,
        owner,
        record.kind.value,
        record.scope,
        None if fact is None else folded(fact.subject),
        None if fact is None else folded(fact.attribute),
        record.supersedes,
        record.superseded_by,
        reason,
        at,
    )


def _packed(record: Record) -> tuple[int, str, bytes]:
    """Size, hash and content as they are kept; read back once, so that nothing else is kept."""
    data = record.model_dump_json().encode()
    content, digest = zlib.compress(data), hashlib.sha256(data).hexdigest()
    try:
        same = _read_back(record.id, digest, content) == record
    except RecordStoreError:
        same = False
    if not same:
        raise RecordStoreError(
            f"Record {record.id!r} cannot be archived: it would not be read back as it is. It "
            f"stays in the store; change what its metadata holds: {record.metadata!r}."
        )
    return len(content), digest, content


def _unpacked(row: sqlite3.Row) -> Record:
    return _read_back(row["record"], row["hash"], row["content"])


def _read_back(name: str, digest: str, content: bytes) -> Record:
    try:
        data = zlib.decompress(content)
    except zlib.error as error:
        raise _damaged(name, str(error)) from error
    if hashlib.sha256(data).hexdigest() != digest:
        raise _damaged(name, "its hash is another one")
    try:
        return Record.model_validate_json(data)
    except ValueError as error:
        raise _damaged(name, f"it is no record: {error}") from error


def _damaged(name: str, how: str) -> RecordStoreError:
    return RecordStoreError(
        f"The archived record {name!r} is damaged: {how}. Bring the file of the dynamics back from "
        f"a copy, or give the record up: dynamics.archive.drop([{name!r}])."
    )


def _entry_of(row: sqlite3.Row) -> ArchiveEntry:
    known: dict[str, Any] = {field.name: row[field.name] for field in fields(ArchiveEntry)}
    known["kind"] = MemoryKind(row["kind"])
    return ArchiveEntry(**known)


def _marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))
