"""States in a SQLite file: whose file it is, and what a damaged one gives."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coag.awareness import AwarenessState, SqliteStateStore, StateStoreError

STATE = AwarenessState(domain="conversation", at=datetime(2026, 11, 24, tzinfo=UTC))


async def test_the_file_of_another_program_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "theirs.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE states (theirs TEXT)")
    before = path.read_bytes()
    with pytest.raises(StateStoreError, match="is no file of awareness states"):
        SqliteStateStore(path)
    assert path.read_bytes() == before


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text.sqlite"
    path.write_text("nothing of the sort " * 100)
    with pytest.raises(StateStoreError, match="file is not a database"):
        SqliteStateStore(path)


async def test_a_folder_that_is_not_there_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(StateStoreError, match=r"nowhere.*states.sqlite.*unable to open"):
        SqliteStateStore(tmp_path / "nowhere" / "states.sqlite")


@pytest.mark.parametrize("power_safe", [True, False])
async def test_the_file_has_a_write_ahead_log(tmp_path: Path, power_safe: bool) -> None:
    store = SqliteStateStore(tmp_path / "states.sqlite", power_safe=power_safe)
    await store.save("alice", STATE)
    assert (tmp_path / "states.sqlite-wal").exists()
    await store.close()


async def test_a_row_that_is_no_state_is_named_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "states.sqlite"
    store = SqliteStateStore(path)
    await store.save("alice", STATE)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE states SET state = 'no JSON'")
    with pytest.raises(StateStoreError, match="holds no state as version 1 of 'alice'"):
        await store.load("alice")
    assert await store.delete("alice") is True
    await store.close()


async def test_a_file_may_be_opened_by_many_at_once(tmp_path: Path) -> None:
    def opened(number: int) -> SqliteStateStore:
        return SqliteStateStore(tmp_path / f"states{number // 8}.sqlite")

    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(opened, range(80)))
    for store in stores:
        await store.save("alice", STATE)
        await store.close()
