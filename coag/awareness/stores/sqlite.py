"""States in one SQLite file, of many keys."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from coag.awareness.state import AwarenessState

from .protocol import (
    KEPT,
    PATIENCE,
    StateStoreError,
    StoredState,
    check_expected,
    checked_keep,
    checked_key,
    checked_limit,
    closed,
    stored_state,
)

_T = TypeVar("_T")
_MARK = 0x636F6177
"""SQLite's `application_id` of our files: `coaw`."""
_PAUSE = 0.002
"""Seconds between two tries to give a new file its log."""
_FORM = 1
"""SQLite's `user_version` of the table below."""
_TABLE = """
CREATE TABLE IF NOT EXISTS states (
    version INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL,
    state TEXT NOT NULL
)
"""
_INDEX = "CREATE INDEX IF NOT EXISTS states_by_key ON states (key, version)"
_CURRENT = "SELECT max(version) FROM states WHERE key = ?"
_INSERT = "INSERT INTO states (key, state) VALUES (?, ?)"
_PRUNE = """
DELETE FROM states WHERE key = ? AND version <= (
    SELECT version FROM states WHERE key = ? ORDER BY version DESC LIMIT 1 OFFSET ?
)
"""
_NEWEST = "SELECT version, state FROM states WHERE key = ? ORDER BY version DESC LIMIT ?"
_DELETE = "DELETE FROM states WHERE key = ?"


class SqliteStateStore:
    """A `StateStore` in a SQLite file with a write-ahead log; several processes may use it.

    Args:
        path: The file; it is made where there is none, in a folder that is there.
        keep: How many versions of each key stay.
        power_safe: Whether each save waits until it would survive a loss of power. Without that
            it survives a killed process, is faster, and a loss of power may take the last saves.

    Raises:
        StateStoreError: The file cannot be opened, or is another program's.
        ValueError: `keep` is below 1.
    """

    def __init__(self, path: Path | str, *, keep: int = KEPT, power_safe: bool = True) -> None:
        self.path = Path(path).expanduser().resolve()
        self._keep = checked_keep(keep)
        self._lock = threading.Lock()
        with _sqlite_errors(self.path):
            self._db: sqlite3.Connection | None = sqlite3.connect(
                self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
        try:
            with _sqlite_errors(self.path):
                _prepare(self._db, self.path, power_safe)
        except StateStoreError:
            self._db.close()
            raise

    async def load(self, key: str) -> StoredState | None:
        """The newest version; None if there is none."""
        found = await self._newest(checked_key(key), 1)
        return found[0] if found else None

    async def save(
        self, key: str, state: AwarenessState, expected_version: int | None = None
    ) -> int:
        """Stores a state as the newest version."""
        checked_key(key)

        def write(db: sqlite3.Connection) -> int:
            text = state.model_dump_json()
            with _transaction(db):
                (current,) = db.execute(_CURRENT, (key,)).fetchone()
                check_expected(key, expected_version, current or 0)
                version = db.execute(_INSERT, (key, text)).lastrowid
                db.execute(_PRUNE, (key, key, self._keep))
            if version is None:
                raise AssertionError("an insert gives a row its number")
            return version

        return await self._with_db(write)

    async def history(self, key: str, limit: int = 10) -> list[StoredState]:
        """The newest versions, newest first."""
        return await self._newest(checked_key(key), checked_limit(limit))

    async def delete(self, key: str) -> bool:
        """Removes all versions for good; False if there was none."""
        checked_key(key)
        return await self._with_db(lambda db: db.execute(_DELETE, (key,)).rowcount > 0)

    async def close(self) -> None:
        """Lets go of the file; closing twice does no harm."""
        await asyncio.to_thread(self._close)

    async def _newest(self, key: str, limit: int) -> list[StoredState]:
        rows = await self._with_db(lambda db: db.execute(_NEWEST, (key, limit)).fetchall())
        where = repr(str(self.path))
        return [stored_state(key, version, text, where) for version, text in rows]

    async def _with_db(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """What a piece of work gives, done in a thread, one at a time."""

        def alone() -> _T:
            with self._lock, _sqlite_errors(self.path):
                if self._db is None:
                    raise closed(f"at {str(self.path)!r}")
                return work(self._db)

        return await asyncio.to_thread(alone)

    def _close(self) -> None:
        with self._lock, _sqlite_errors(self.path):
            if self._db is not None:
                self._db.close()
            self._db = None


def _prepare(db: sqlite3.Connection, path: Path, power_safe: bool) -> None:
    """Makes the table where the file is new.

    Raises:
        StateStoreError: The file is another program's, or of another form.
    """
    db.execute(f"PRAGMA synchronous = {'FULL' if power_safe else 'NORMAL'}")
    with _transaction(db):
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (mark,) = db.execute("PRAGMA application_id").fetchone()
        (form,) = db.execute("PRAGMA user_version").fetchone()
        if tables and (mark, form) != (_MARK, _FORM):
            raise StateStoreError(
                f"{str(path)!r} is no file of awareness states that this version reads "
                f"(application_id {mark}, user_version {form}): name another file."
            )
        db.execute(f"PRAGMA application_id = {_MARK}")
        db.execute(f"PRAGMA user_version = {_FORM}")
        db.execute(_TABLE)
        db.execute(_INDEX)
    _log_ahead(db)


def _log_ahead(db: sqlite3.Connection) -> None:
    """Gives the file a write-ahead log; for this SQLite does not wait for others by itself."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)
        else:
            return


@contextmanager
def _transaction(db: sqlite3.Connection) -> Generator[None]:
    """All or nothing, with nobody writing meanwhile."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


@contextmanager
def _sqlite_errors(path: Path) -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StateStoreError(
            f"The file of awareness states {str(path)!r} failed: {error}. What is stored is as it "
            "was; see to the file, its rights and the space on the disk, then try again."
        ) from error
