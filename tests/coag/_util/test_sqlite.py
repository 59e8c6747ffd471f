"""The write-ahead log is turned on, and waiting too long is an error."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from coag._util.sqlite import write_ahead


def opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, timeout=0)


def test_the_log_is_turned_on_once_others_let_go(tmp_path: Path) -> None:
    path = tmp_path / "file.sqlite"
    with closing(opened(path)) as db, closing(opened(path)) as other:
        other.execute("CREATE TABLE one (a)")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            write_ahead(db, 0.01)
        other.execute("COMMIT")
        write_ahead(db, 0.0)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_another_fault_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "file.sqlite"
    path.write_bytes(b"no database at all, but long enough to be read as one" * 10)
    with closing(opened(path)) as db, pytest.raises(sqlite3.DatabaseError):
        write_ahead(db, 60.0)
