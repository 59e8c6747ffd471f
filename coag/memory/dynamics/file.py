"""The file in which the dynamics of memory rest: one SQLite database, in RAM where the records are.

Each table belongs to one module of this room, or of the room above, which brings its schema and
alone reads and writes it.
"""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from coag._util.sqlite import write_ahead
from coag.errors import RecordStoreError
from coag.store import slices

DYNAMICS_FILE = "dynamics.sqlite3"
"""Its name beside an agent's records."""
_VERSION = 1
_COLUMNS = """
CREATE TABLE IF NOT EXISTS record_columns (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS scope_columns (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS source_columns (name TEXT PRIMARY KEY) WITHOUT ROWID
"""
_PAGES = 4_000
"""Pages of the log, 4 kB each, after which it is taken into the file; that waits for the disk."""
_CACHE = 16_000
"""kB of it in RAM: rows of records that come together lie far apart."""
_MOST_IDS = 500
"""Ids in one query."""
_PATIENCE = 10.0
"""Seconds to wait for another process that writes."""


def _statements(schema: str) -> Generator[str]:
    """The statements of a schema; one that makes a trigger has semicolons of its own."""
    statement = ""
    for part in schema.split(";"):
        statement += f"{part};"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


class DynamicsFile:
    """A database of this process or, by a path, of several.

    Calls are short, and made on the event loop or in a thread; one transaction at a time.

    Args:
        path: The file, which is made where it is not there; None keeps everything in RAM.
        read_only: Whether it is only looked at: it must be there, and nothing of it changes.

    Raises:
        RecordStoreError: It cannot be opened, is no such database, or a newer version made it.
    """

    def __init__(self, path: Path | None = None, *, read_only: bool = False) -> None:
        self.path = path
        self._read_only = read_only
        self._lock = threading.RLock()
        self._durable = False
        name = ":memory:" if path is None else str(path)
        try:
            if path is not None and not read_only:
                path.parent.mkdir(parents=True, exist_ok=True)
            uri = "" if path is None or not read_only else f"{path.absolute().as_uri()}?mode=ro"
            self._db = sqlite3.connect(
                uri or name,
                timeout=_PATIENCE,
                isolation_level=None,
                check_same_thread=False,
                uri=bool(uri),
            )
            weakref.finalize(self, self._db.close)  # also where opening fails
            self._db.row_factory = sqlite3.Row
            self._db.execute(f"PRAGMA cache_size = -{_CACHE}")
            # what undoes a statement of several rows is kept in RAM, not in a file
            self._db.execute("PRAGMA temp_store = MEMORY")
            if path is not None and not read_only:
                write_ahead(self._db, _PATIENCE)
                self._db.execute("PRAGMA synchronous = NORMAL")
                # what is removed leaves no readable rest in free pages
                self._db.execute("PRAGMA secure_delete = ON")
                self._db.execute(f"PRAGMA wal_autocheckpoint = {_PAGES}")
            self._check_version()
        except (sqlite3.Error, OSError) as error:
            raise RecordStoreError(
                f"The dynamics of memory at {name!r} cannot be opened: {error}. "
                "Name a folder that can be written, or another file."
            ) from error

    def _check_version(self) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > _VERSION:
            self._db.close()
            raise RecordStoreError(
                f"The dynamics of memory at {str(self.path)!r} have version {version}, and this "
                f"version of coag reads up to {_VERSION}. Use a newer coag."
            )
        if version < _VERSION and not self._read_only:
            self._db.execute(f"PRAGMA user_version = {_VERSION}")

    def create(
        self,
        schema: str,
        *,
        records: Iterable[str] = (),
        scopes: Iterable[str] = (),
        sources: Iterable[str] = (),
    ) -> None:
        """Makes tables that are not there; not where the file is only looked at.

        Args:
            schema: Statements with IF NOT EXISTS, divided by semicolons.
            records: Their columns that name a record, as `table.column`: the row is removed with
                the record.
            scopes: Their columns that name a scope: the row is removed when that is forgotten.
            sources: Their columns of JSON with a `source`, in tables whose `owner` is a scope:
                when all that the source stated is taken back, the row goes.
        """
        if self._read_only:
            return
        with self.transaction() as db:
            for statement in _statements(f"{_COLUMNS};{schema}"):
                db.execute(statement)
            for table, names in (
                ("record_columns", records),
                ("scope_columns", scopes),
                ("source_columns", sources),
            ):
                self.write(f"INSERT OR IGNORE INTO {table} VALUES (?)", [(one,) for one in names])

    def add_columns(self, table: str, columns: Mapping[str, str]) -> frozenset[str]:
        """Adds columns that a table of an older file lacks; not where it is only looked at.

        Returns:
            The columns that the table has then.
        """
        if self._read_only:
            return self._columns_of(table)
        with self.transaction() as db:
            there = self._columns_of(table)
            for name, kind in columns.items():
                if name not in there:
                    db.execute(f"ALTER TABLE {table} ADD COLUMN {name} {kind}")
        return there | columns.keys()

    def _columns_of(self, table: str) -> frozenset[str]:
        return frozenset(row["name"] for row in self.rows(f"PRAGMA table_info({table})"))

    def remove(self, ids: Iterable[str]) -> None:
        """Removes all that any table has of records, for every owner; see `create`."""
        self._remove("record_columns", ids)

    def forget(self, scope: str) -> None:
        """Removes what any table has of a scope beside its records; see `create`."""
        self._remove("scope_columns", [scope])

    def said_by(self, source: str, scopes: Iterable[str], *, remove: bool = False) -> bool:
        """Whether any table has what a source said in these scopes; `remove` takes it out."""
        scopes, found = tuple(scopes), False
        of = f"owner IN ({','.join('?' * len(scopes))}) AND json_extract({{}}, '$.source') = ?"
        with self.transaction() as db:
            for (name,) in self.rows("SELECT name FROM source_columns"):
                table, column = name.split(".")
                where = f"FROM {table} WHERE {of.format(column)}"
                found |= bool(self.rows(f"SELECT 1 {where} LIMIT 1", *scopes, source))
                if remove:
                    db.execute(f"DELETE {where}", (*scopes, source))
        return found

    def _remove(self, columns: str, values: Iterable[str]) -> None:
        rows = [(one,) for one in values]
        with self.transaction():
            for (name,) in self.rows(f"SELECT name FROM {columns}"):
                table, column = name.split(".")
                self.write(f"DELETE FROM {table} WHERE {column} = ?", rows)

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Generator[sqlite3.Connection]:
        """Statements that take effect together, at the end; nested ones join the outer one.

        Args:
            durable: Whether what was written survives a power loss, too, not only the end of the
                process; that waits for the disk.

        Raises:
            RecordStoreError: The database is closed, broken, or in use for too long.
        """
        with self._lock:
            try:
                if self._db.in_transaction:
                    yield self._db
                    return
                if durable != self._durable and self.path is not None:
                    self._db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                    self._durable = durable
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield self._db
                except BaseException:
                    self._db.execute("ROLLBACK")
                    raise
                self._db.execute("COMMIT")
            except sqlite3.Error as error:
                raise RecordStoreError(
                    f"The dynamics of memory at {str(self.path)!r} failed: {error}."
                ) from error

    def at_once(self, work: Callable[[], None]) -> bool:
        """Does short work in a transaction, unless somebody else writes just now: then nothing.

        Raises:
            RecordStoreError: The database broke while the work was done.
        """
        if not self._lock.acquire(blocking=False):
            return False
        begun = False
        try:
            self._be_patient(0.0)
            with self.transaction():
                begun = True
                work()
        except RecordStoreError:
            if begun:
                raise
        finally:
            self._be_patient(_PATIENCE)
            self._lock.release()
        return begun

    def _be_patient(self, most: float) -> None:
        """How many seconds to wait for another process that writes."""
        if self.path is not None:
            with suppress(sqlite3.Error):  # closed: the next statement says so
                self._db.execute(f"PRAGMA busy_timeout = {round(1000 * most)}")

    def has(self, table: str) -> bool:
        """Whether there is such a table; one that is only looked at may have fewer."""
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        return bool(self.rows(query, table))

    def edition(self) -> tuple[int, int]:
        """What is another one after every change of any row, by whomever."""
        others = 0 if self.path is None else self.rows("PRAGMA data_version")[0][0]
        return others, self._db.total_changes

    def rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        """What a query finds."""
        with self._lock:
            try:
                return self._db.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise RecordStoreError(
                    f"The dynamics of memory at {str(self.path)!r} failed: {error}."
                ) from error

    def rows_of(self, query: str, ids: Iterable[str], *values: object) -> list[sqlite3.Row]:
        """What a query finds of some ids, which take the place of its `{}` behind the values."""
        found: list[sqlite3.Row] = []
        for some in slices(ids, _MOST_IDS):
            found += self.rows(query.format(",".join("?" * len(some))), *values, *some)
        return found

    def write(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        """Runs a statement for each row of values, together."""
        with self.transaction() as db:
            db.executemany(statement, rows)

    def close(self) -> None:
        """Lets go of the file; closing twice does no harm."""
        with self._lock:
            self._db.close()
