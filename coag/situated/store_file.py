"""The tables of a store of activities, and its SQLite file: checked, locked, in transactions.

One process owns the file and writes it; others may read it beside, and leave requests. The same
tables in Postgres, shared by several processes, are in `store_postgres`.
"""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from coag._util.locks import LockHeldError, lock_file
from coag._util.sqlite import write_ahead
from coag._util.text import one_line
from coag.errors import CoagError

_APPLICATION = 0x636F6131  # "coa1"
"""Marks a file as ours among all SQLite files."""
FORM = 1
"""The version of the tables; a file of a newer one is refused."""
_PATIENCE = 5.0
"""Seconds that a transaction waits for one of another process."""
_OWNER_PATIENCE = 1.0
"""Seconds that opening waits for the process that owns the file, e.g. for one that is ending."""

TABLES = """
CREATE TABLE activities (
    place INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    priority INTEGER NOT NULL,
    updated TEXT NOT NULL,
    wait TEXT,
    awaited TEXT,
    deadline REAL,
    time_outs INTEGER NOT NULL DEFAULT 0,
    body TEXT NOT NULL
);
CREATE INDEX activities_by_state ON activities (state, place);
CREATE TABLE inbox (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    activity TEXT NOT NULL,
    percept TEXT NOT NULL,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX inbox_by_activity ON inbox (activity, number);
CREATE TABLE delivered (
    activity TEXT NOT NULL,
    stream TEXT NOT NULL,
    numbered INTEGER NOT NULL,
    highest INTEGER NOT NULL,
    used INTEGER NOT NULL,
    PRIMARY KEY (activity, stream)
) WITHOUT ROWID;
CREATE INDEX delivered_by_use ON delivered (activity, numbered, used);
CREATE TABLE cursors (tool TEXT PRIMARY KEY, cursor TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE focus (
    activity TEXT NOT NULL, tool TEXT NOT NULL, signals TEXT, PRIMARY KEY (activity, tool)
) WITHOUT ROWID;
CREATE TABLE pins (
    server TEXT NOT NULL, tool TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (server, tool)
) WITHOUT ROWID;
CREATE TABLE requests (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    activity TEXT NOT NULL,
    what TEXT NOT NULL,
    reason TEXT NOT NULL
);
"""
INDEXES = """
CREATE INDEX IF NOT EXISTS activities_by_awaited ON activities (awaited) WHERE awaited IS NOT NULL;
CREATE INDEX IF NOT EXISTS activities_by_deadline ON activities (deadline)
    WHERE deadline IS NOT NULL;
CREATE INDEX IF NOT EXISTS focus_by_tool ON focus (tool);
"""
"""Later than the first files of this form."""


class ActivityStoreError(CoagError):
    """A store of activities refused or failed; what it holds is as it was."""


class StoreFile:
    """A connection to the file of a store, which is made with its folder; see `ActivityStore`."""

    def __init__(self, path: Path | None, *, owner: bool = True, power_safe: bool = False) -> None:
        self.path = path
        self.owner = owner
        self._depth = 0
        self._last_number = 0
        self._lock: IO[bytes] | None = None
        if path is not None:
            self._lock = self._claimed(path) if owner else None
            if not owner and not path.exists():
                raise ActivityStoreError(f"There is no store of activities at {str(path)!r}.")
        try:
            self._open("FULL" if power_safe else "NORMAL")
        except BaseException:
            self.close()
            raise

    def _claimed(self, path: Path) -> IO[bytes]:
        try:
            return lock_file(path.with_name(path.name + ".lock"), _OWNER_PATIENCE)
        except LockHeldError as error:
            raise ActivityStoreError(
                f"Another process runs the activities of {str(path)!r}. End it first, or name "
                "another file; `coag activities` shows, cancels and wakes them beside it."
            ) from error
        except OSError as error:
            raise ActivityStoreError(
                f"The store of activities {str(path)!r} cannot be made: {error}."
            ) from error

    def _open(self, synchronous: str) -> None:
        with self.errors():
            self.db = self._connected(reading=not self.owner)
            self._check()
            self.db.execute(f"PRAGMA synchronous = {synchronous}")
            if self.owner and self.path is not None:
                write_ahead(self.db, _PATIENCE)

    def _connected(self, *, reading: bool) -> sqlite3.Connection:
        """A connection; one for reading changes nothing, also where the owner was killed."""
        place, uri = ":memory:", self.path is not None
        if self.path is not None:
            place = self.path.resolve().as_uri() + ("?mode=ro" if reading else "")
        db = sqlite3.connect(
            place, timeout=_PATIENCE, isolation_level=None, check_same_thread=uri, uri=uri
        )
        if not uri:
            weakref.finalize(self, db.close)  # in RAM: nobody has to close it
        return db

    def _check(self) -> None:
        """Makes the tables where the file is new, and refuses one that is not ours."""
        self.db.execute("BEGIN IMMEDIATE" if self.owner else "BEGIN")
        try:
            (tables,) = self.db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            (mark,) = self.db.execute("PRAGMA application_id").fetchone()
            (form,) = self.db.execute("PRAGMA user_version").fetchone()
            if tables or not self.owner:
                self._refuse_others(mark, form)
            else:
                for statement in TABLES.split(";"):
                    self.db.execute(statement)
                self.db.execute(f"PRAGMA application_id = {_APPLICATION}")
                self.db.execute(f"PRAGMA user_version = {FORM}")
            if self.owner:
                self._begin()
            self.db.execute("COMMIT")
        finally:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
        (sound,) = self.db.execute("PRAGMA quick_check(1)").fetchone()
        if sound != "ok":
            raise ActivityStoreError(
                f"The store of activities {str(self.path)!r} is damaged: {one_line(sound)}. It was "
                "left as it is: put a copy in its place, or save what can be read by `sqlite3 FILE "
                "'.recover'`."
            )

    def _begin(self) -> None:
        """What a new owner finds: steps that ran have ended, and no number is given again."""
        for statement in INDEXES.split(";"):
            self.db.execute(statement)
        self.db.execute("UPDATE activities SET state = 'ready' WHERE state = 'running'")
        last = self.db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'inbox'").fetchone()
        self._last_number = last[0] if last else 0

    def _refuse_others(self, mark: int, form: int) -> None:
        if mark != _APPLICATION:
            raise ActivityStoreError(
                f"{str(self.path)!r} is no store of activities (application_id {mark}): name "
                "another file."
            )
        if form != FORM:
            raise ActivityStoreError(
                f"{str(self.path)!r} was written by a newer coag (version {form} of the tables, "
                f"this one knows {FORM}): update coag. The file was left as it is."
            )

    def close(self) -> None:
        """Closes the file; others may own it from now on."""
        if (db := getattr(self, "db", None)) is not None:
            db.close()
        if self._lock is not None:
            self._lock.close()

    # ---- What a store needs, here and in Postgres ----

    shared = False
    """Whether other workers may pursue activities of this store."""
    until_end = ("inbox", "delivered", "focus")
    """Tables in which an activity has rows until it ends."""

    def rows(self, query: str, values: Sequence[object]) -> list[Any]:
        """What a query finds."""
        with self.errors():
            return self.db.execute(query, values).fetchall()

    def next_number(self) -> int:
        """A number that grows with every delivery; asked for within a transaction."""
        self._last_number += 1
        return self._last_number

    def mine(self, activity: str) -> str:
        """The end of a condition by which only activities of this worker are found: here all."""
        del activity
        return ""

    def hold(self) -> None:
        """The owner of a file holds it until it ends."""

    def claim(self, free: int) -> Sequence[str]:
        """Takes activities that nobody pursues; the owner of a file has them all."""
        del free
        return ()

    @contextmanager
    def errors(self) -> Generator[None]:
        """Turns what SQLite raises into our error."""
        try:
            yield
        except sqlite3.Error as error:
            where = "in RAM" if self.path is None else repr(str(self.path))
            raise ActivityStoreError(
                f"The store of activities {where} failed: {error}. What it holds is as it was; "
                "check the file, its rights and the space on the disk."
            ) from error

    @contextmanager
    def writing(self, *, request: bool = False) -> Generator[sqlite3.Connection]:
        """One transaction, all of it or nothing; one inside another is a part of it.

        A request may be left by who does not own the store.
        """
        if not (self.owner or request):
            raise ActivityStoreError(
                f"The store {str(self.path)!r} was opened for reading: who does not own it may "
                "only leave requests."
            )
        if self._depth:
            yield self.db
            return
        with self.errors():
            db = self.db if self.owner else self._connected(reading=False)
            self._depth = 1
            try:
                db.execute("BEGIN IMMEDIATE")
                yield db
                db.execute("COMMIT")
            finally:
                self._depth = 0
                if db.in_transaction:
                    db.execute("ROLLBACK")
                if db is not self.db:
                    db.close()
