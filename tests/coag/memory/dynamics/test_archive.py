"""The archive keeps records word for word, and says so where it no longer can."""

from __future__ import annotations

import hashlib
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.remembered import remembered

from coag.errors import RecordStoreError
from coag.memory.dynamics import DAY, ArchiveRetention, DynamicsFile, MemoryArchive
from coag.schema import Event, Fact, MemoryKind, Record

SEMANTIC = MemoryKind.SEMANTIC


@pytest.fixture
def archive() -> MemoryArchive:
    return MemoryArchive(DynamicsFile())


def put(archive: MemoryArchive, *records: Record, at: float = 0.0, owner: str = "alice") -> None:
    archive.put(records, owner=owner, at=at, finished=True)


def of_chain(text: str, before: str | None = None, after: str | None = None) -> Record:
    return remembered(text).model_copy(update={"supersedes": before, "superseded_by": after})


TEXTS = st.text(st.characters(codec="utf-8"), min_size=1)
VALUES = st.one_of(
    TEXTS, st.booleans(), st.integers(-(2**53), 2**53), st.floats(-(2.0**53), 2.0**53)
)


@given(TEXTS, st.dictionaries(TEXTS, VALUES, max_size=3), st.datetimes(timezones=st.just(UTC)))
def test_what_is_archived_comes_back_equal_in_every_field(
    text: str, metadata: dict[str, Any], at: datetime
) -> None:
    archive = MemoryArchive(DynamicsFile())
    event = Event(at=at, episode="e", situation=text)
    record = remembered(text, metadata=metadata, event=event, fact=Fact(subject="s", value="v"))
    put(archive, record)
    assert archive.peek([record.id]) == {record.id: record}


def test_what_is_kept_is_compressed_and_has_the_hash_of_its_exact_bytes(
    archive: MemoryArchive,
) -> None:
    record = remembered("The dragon attacked the village. " * 100)
    put(archive, record)
    (row,) = archive.file.rows("SELECT size, hash, content FROM archive")
    data = record.model_dump_json().encode()
    assert row["size"] == len(row["content"]) < len(data) / 10
    assert row["hash"] == hashlib.sha256(data).hexdigest()
    assert zlib.decompress(row["content"]) == data


def test_a_record_that_would_not_be_read_back_is_refused_and_none_is_written(
    archive: MemoryArchive,
) -> None:
    bad = remembered("not a number", metadata={"x": float("nan")})
    with pytest.raises(RecordStoreError, match="would not be read back"):
        put(archive, remembered("good"), bad)
    assert archive.empty


@pytest.mark.parametrize(
    "damage",
    [
        f"hash = '{'0' * 64}'",
        "content = x'00'",
        f"content = x'{zlib.compress(b'{}').hex()}'",
        f"content = x'{zlib.compress(b'{}').hex()}', hash = '{hashlib.sha256(b'{}').hexdigest()}'",
    ],
)
def test_a_damaged_record_is_an_error_and_never_another_text(
    archive: MemoryArchive, damage: str
) -> None:
    record = remembered("the original")
    put(archive, record)
    with archive.file.transaction() as db:
        db.execute(f"UPDATE archive SET {damage}")
    with pytest.raises(RecordStoreError, match=f"{record.id!r} is damaged"):
        archive.peek([record.id])


def test_archiving_twice_keeps_what_the_record_was_last(archive: MemoryArchive) -> None:
    old, new = of_chain("a"), of_chain("a", before="b")
    put(archive, old)
    put(archive, old)
    put(archive, new)
    assert archive.peek([old.id]) == {new.id: new}
    assert archive.count() == 1


def test_two_reads_in_one_moment_are_both_noted_and_an_unknown_one_is_none(
    archive: MemoryArchive,
) -> None:
    record = remembered("a")
    put(archive, record, at=1.0)
    assert [archive.get("alice", record.id, at=5.0) for _ in range(2)] == [record, record]
    assert archive.get("alice", "unknown", at=5.0) is None
    (entry,) = archive.entries()
    assert (entry.reads, entry.read_at, entry.archived_at) == (2, 5.0, 1.0)
    assert (entry.record, entry.reason, entry.scope) == (record.id, "faded", "alice")
    assert archive.entries(scopes=["bob"]) == []


def test_archived_records_are_in_the_file_for_every_process(tmp_path: Path) -> None:
    path, record = tmp_path / "dynamics.sqlite3", remembered("a")
    first = DynamicsFile(path)
    MemoryArchive(first).put([record], owner="alice", at=0.0)
    first.close()
    again = MemoryArchive(DynamicsFile(path))
    assert again.peek([record.id]) == {record.id: record}
    assert again.unfinished("alice") == [record.id]
    assert again.unfinished("bob") == []
    again.finish([record.id])
    assert again.unfinished("alice") == []
    again.file.close()


def test_rewriting_keeps_text_kind_and_scope(archive: MemoryArchive) -> None:
    record = remembered("a")
    put(archive, record)
    linked = record.model_copy(update={"supersedes": "b"})
    assert archive.rewrite([linked, remembered("not here")]) == [linked]
    assert archive.peek([record.id]) == {record.id: linked}
    with pytest.raises(RecordStoreError, match="cannot be changed"):
        archive.rewrite([record.model_copy(update={"text": "b"})])
    assert archive.peek([record.id]) == {record.id: linked}


# ---- Retention ----


def test_retention_by_age_spares_what_was_read_since(archive: MemoryArchive) -> None:
    records = [remembered(text) for text in ("old", "old, and read", "new")]
    put(archive, *records[:2], at=0.0)
    put(archive, records[2], at=300 * DAY)
    archive.get("alice", records[1].id, at=200 * DAY)
    year = ArchiveRetention(age=365.0)
    assert archive.superfluous("alice", 365 * DAY, year) == []
    assert archive.superfluous("alice", 366 * DAY, year) == [records[0].id]
    assert archive.superfluous("bob", 366 * DAY, year) == []
    assert archive.superfluous("alice", 566 * DAY, year) == [records[0].id, records[1].id]


def test_retention_by_bytes_lets_the_least_used_go_first(archive: MemoryArchive) -> None:
    records = [remembered(f"record number {n}") for n in range(4)]
    for number, record in enumerate(records):
        put(archive, record, at=float(number))
    archive.get("alice", records[0].id, at=10.0)
    sizes = {entry.record: entry.size for entry in archive.entries()}
    assert archive.size() == sum(sizes.values())
    room = archive.size() - 1
    only = ArchiveRetention(largest=room)
    assert archive.superfluous("alice", 20.0, only) == [records[1].id]
    none = ArchiveRetention(largest=0)
    assert archive.superfluous("alice", 20.0, none) == [records[n].id for n in (1, 2, 3, 0)]


def test_retention_makes_no_gap_in_a_chain(archive: MemoryArchive) -> None:
    first, second, third = (remembered(text) for text in "abc")
    put(archive, of_chain("a", after=second.id), at=50.0)
    put(archive, of_chain("b", before=first.id, after=third.id), of_chain("c", before=second.id))
    nothing = ArchiveRetention(largest=0)
    for record in (first, second, third):
        assert archive.superfluous("alice", 100.0, nothing) == [record.id]
        archive.drop([record.id])
