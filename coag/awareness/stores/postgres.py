"""States in a Postgres database; the one module that meets psycopg."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, LiteralString, TypeAlias, TypeVar

from coag.awareness.state import AwarenessState
from coag.errors import ConfigurationError
from coag.schema import one_line

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

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composed

    Database: TypeAlias = Connection[tuple[Any, ...]]

_T = TypeVar("_T")
_TABLE_NAME = re.compile(r"[a-z_][a-z0-9_]{0,47}")
_CREATE: Final = """
CREATE TABLE IF NOT EXISTS {table} (
    version bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text NOT NULL,
    state text NOT NULL
)
"""
_INDEX: Final = "CREATE INDEX IF NOT EXISTS {index} ON {table} (key, version)"
_ALONE: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
_CURRENT: Final = "SELECT max(version) FROM {table} WHERE key = %s"
_INSERT: Final = "INSERT INTO {table} (key, state) VALUES (%s, %s) RETURNING version"
_PRUNE: Final = """
DELETE FROM {table} WHERE key = %s AND version <= (
    SELECT version FROM {table} WHERE key = %s ORDER BY version DESC LIMIT 1 OFFSET %s
)
"""
_NEWEST: Final = "SELECT version, state FROM {table} WHERE key = %s ORDER BY version DESC LIMIT %s"
_DELETE: Final = "DELETE FROM {table} WHERE key = %s"


class PostgresStateStore:
    """A `StateStore` in a table of a Postgres database; many processes and machines may use it.

    Needs the extra `coag[postgres]`. The connection is made with the first use, and anew after it
    was lost.

    Args:
        conninfo: Where, in the words of libpq: `host=localhost dbname=agents`, or an address. It
            is not shown in errors.
        table: The table; it is made where there is none.
        keep: How many versions of each key stay.

    Raises:
        ConfigurationError: psycopg is not installed.
        ValueError: `keep` is below 1, or `table` is no plain name.
    """

    def __init__(
        self, conninfo: str, *, table: str = "coag_awareness_states", keep: int = KEPT
    ) -> None:
        if not _TABLE_NAME.fullmatch(table):
            raise ValueError(
                "table is a name of at most 48 small letters, digits and underscores, not "
                f"{table!r}."
            )
        _check_installed()
        self._conninfo = conninfo
        self._table = table
        self._keep = checked_keep(keep)
        self._lock = threading.Lock()
        self._db: Database | None = None
        self._closed = False

    async def load(self, key: str) -> StoredState | None:
        """The newest version; None if there is none."""
        found = await self._newest(checked_key(key), 1)
        return found[0] if found else None

    async def save(
        self, key: str, state: AwarenessState, expected_version: int | None = None
    ) -> int:
        """Stores a state as the newest version."""
        checked_key(key)

        def write(db: Database) -> int:
            text = state.model_dump_json()
            with db.transaction():
                db.execute(_ALONE, (f"{self._table}/{key}",))
                current = _number(db.execute(self._sql(_CURRENT), (key,)).fetchone())
                check_expected(key, expected_version, current)
                version = _number(db.execute(self._sql(_INSERT), (key, text)).fetchone())
                db.execute(self._sql(_PRUNE), (key, key, self._keep))
            return version

        return await self._with_db(write)

    async def history(self, key: str, limit: int = 10) -> list[StoredState]:
        """The newest versions, newest first."""
        return await self._newest(checked_key(key), checked_limit(limit))

    async def delete(self, key: str) -> bool:
        """Removes all versions for good; False if there was none."""
        checked_key(key)

        def remove(db: Database) -> bool:
            with db.transaction():
                db.execute(_ALONE, (f"{self._table}/{key}",))
                return db.execute(self._sql(_DELETE), (key,)).rowcount > 0

        return await self._with_db(remove)

    async def close(self) -> None:
        """Lets go of the connection; closing twice does no harm."""
        await asyncio.to_thread(self._close)

    async def _newest(self, key: str, limit: int) -> list[StoredState]:
        def read(db: Database) -> list[tuple[Any, ...]]:
            return db.execute(self._sql(_NEWEST), (key, limit)).fetchall()

        rows = await self._with_db(read)
        where = f"The table {self._table!r}"
        return [stored_state(key, version, text, where) for version, text in rows]

    async def _with_db(self, work: Callable[[Database], _T]) -> _T:
        """What a piece of work gives, done in a thread, one at a time."""

        def alone() -> _T:
            with self._lock, _postgres_errors():
                return work(self._connected())

        return await asyncio.to_thread(alone)

    def _connected(self) -> Database:
        """The connection, made where there is none or it is lost."""
        import psycopg

        if self._closed:
            raise closed("in Postgres")
        if self._db is None or self._db.closed:
            db = psycopg.connect(self._conninfo, autocommit=True, connect_timeout=int(PATIENCE))
            try:
                self._prepare(db)
            except psycopg.Error:
                db.close()
                raise
            self._db = db
        return self._db

    def _prepare(self, db: Database) -> None:
        """Makes the table where there is none; two that begin at once do not meet."""
        db.execute("SELECT set_config('lock_timeout', %s, false)", (f"{PATIENCE:g}s",))
        with db.transaction():
            db.execute(_ALONE, (self._table,))
            db.execute(self._sql(_CREATE))
            db.execute(self._sql(_INDEX))

    def _sql(self, text: LiteralString) -> Composed:
        from psycopg.sql import SQL, Identifier

        return SQL(text).format(
            table=Identifier(self._table), index=Identifier(f"{self._table}_by_key")
        )

    def _close(self) -> None:
        with self._lock:
            self._closed = True
            if self._db is not None:
                self._db.close()
            self._db = None


def _number(row: tuple[Any, ...] | None) -> int:
    """The number that a row of one column holds; 0 for none."""
    return int(row[0]) if row and row[0] is not None else 0


def _check_installed() -> None:
    try:
        import psycopg  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise ConfigurationError(
            "States in Postgres need the package psycopg, which is not installed: "
            "pip install 'coag[postgres]'. SqliteStateStore needs nothing."
        ) from error


@contextmanager
def _postgres_errors() -> Generator[None]:
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise StateStoreError(
            f"Postgres failed: {one_line(str(error))}. If it was a save, load to see whether it "
            "was stored; see to the server and the connection's words, then try again."
        ) from error
