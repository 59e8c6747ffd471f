"""Where awareness states are stored between calls and processes, with their history (SAGEN §6.7).

A `StateStore` keeps, for each key, the last versions of a state. `load` gives a state with its
version, and `save` takes that version back: if another writer has saved meanwhile, it raises a
`StaleStateError` and nothing is lost. `change_stored` loads, changes and saves, and repeats this
where it came too late. `Awareness(store=...)` loads and saves an agent's state by itself.

States can be stored in memory, in a folder of JSON files, in a SQLite file or in Postgres (the
extra `coag[postgres]`, imported when such a store is opened).
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
import threading
from abc import abstractmethod
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Final, LiteralString, Protocol, Self, TypeVar

from pydantic import Field

from coag._util.files import flush_to_disk, remove_drafts, replace_file
from coag._util.locks import LockHeldError, lock_file
from coag._util.sqlite import write_ahead
from coag._util.text import cleaned, well_formed
from coag.errors import AwarenessError, ConfigurationError, StateVersionError
from coag.schema import Value, content_id, one_line

from .observation import load_state
from .state import AwarenessState

if TYPE_CHECKING:
    from psycopg import Connection


class StateStoreError(AwarenessError):
    """A store of states refused or failed; what it holds is as it was."""


class StaleStateError(StateStoreError):
    """Another writer changed what is stored since it was loaded; nothing was written.

    Attributes:
        key: Whose state.
        expected: The version that was loaded; 0 for none.
        found: The version that is stored; 0 for none.
    """

    def __init__(self, key: str, expected: int, found: int) -> None:
        self.key = key
        self.expected = expected
        self.found = found
        wanted = f"version {expected}" if expected else "none"
        stored = f"version {found}" if found else "none"
        super().__init__(
            f"The state of {key!r} was changed meanwhile: {wanted} was expected, {stored} is "
            "stored. Nothing was written. Load it again, repeat the change on what is loaded, "
            "and save that; `change_stored` does all this."
        )


class StoredState(Value):
    """A state as it is stored."""

    key: str
    """Whose state it is."""
    version: int = Field(ge=1)
    """Given by the store. The versions of a key rise, with gaps, and none is given twice."""
    state: AwarenessState


class StateStore(Protocol):
    """Stores awareness states by key, each with its last versions.

    A key is a text of 1 to 200 characters without control characters, e.g. an agent's name.
    Every method raises `StateStoreError` if the store cannot be reached or was closed, and
    `ValueError` for a text that cannot be a key.
    """

    async def load(self, key: str) -> StoredState | None:
        """The newest version; None if there is none.

        Raises:
            StateVersionError: A version of `coag` wrote it that this one cannot read.
        """
        ...

    async def save(
        self, key: str, state: AwarenessState, expected_version: int | None = None
    ) -> int:
        """Stores a state as the newest version; once it returns, a killed process loses nothing.

        Args:
            key: Whose state.
            state: What to store.
            expected_version: The version that was loaded, 0 for none; if another one is stored
                now, nothing is written. None writes whatever is there.

        Returns:
            Its version.

        Raises:
            StaleStateError: Another version is stored than the expected one.
        """
        ...

    async def history(self, key: str, limit: int = 10) -> list[StoredState]:
        """The newest versions, newest first, at most `limit` and what the store keeps.

        Raises:
            ValueError: `limit` is below 1.
        """
        ...

    async def delete(self, key: str) -> bool:
        """Removes all versions for good; False if there was none."""
        ...

    async def close(self) -> None:
        """Closes files and connections; closing twice does no harm."""
        ...


async def change_stored(
    store: StateStore,
    key: str,
    change: Callable[[AwarenessState | None], AwarenessState],
    *,
    tries: int = 10,
) -> StoredState:
    """Loads a state, changes it and saves it; again on the newer one if another writer was faster.

    Args:
        store: Where.
        key: Whose state.
        change: From the stored state, None if there is none, to the one to store. It may be
            called more than once, so it must only compute.
        tries: How often at most.

    Returns:
        What is stored now.

    Raises:
        StateStoreError: Others were faster each time.
        ValueError: `tries` is below 1.
    """
    if tries < 1:
        raise ValueError(f"tries is at least 1, not {tries!r}.")
    for _ in range(tries):
        before = await store.load(key)
        state = change(before.state if before else None)
        try:
            version = await store.save(key, state, before.version if before else 0)
        except StaleStateError:
            continue
        return StoredState(key=key, version=version, state=state)
    raise StateStoreError(
        f"The state of {key!r} was changed by others {tries} times in a row while it was to be "
        "changed here. Nothing was written: try later, or give more tries."
    )


# ---- What the stores below share: checks, threads, errors, and states from text ----

_T = TypeVar("_T")
_KEEP = 20
"""Versions of a key that a store keeps by default."""
_PATIENCE = 10.0
"""Seconds to wait for another writer."""
_LONGEST_KEY = 200
_Versions = list[tuple[int, str]]
"""Version and JSON text, newest first."""


class _TextStore(StateStore):
    """A store over three blocking methods, which run in a thread, one at a time."""

    _faults: tuple[type[Exception], ...] = ()
    """Errors of what is below; they become a `StateStoreError`."""
    _fault: ClassVar[str] = ""
    """What that says, with `{place}` and `{error}`."""

    def __init__(self, place: str, keep: int) -> None:
        if keep < 1:
            raise ValueError(f"keep is how many versions of a key stay, at least 1, not {keep!r}.")
        self._place = place
        self._keep = keep
        self._lock = threading.Lock()
        self._closed = False

    async def load(self, key: str) -> StoredState | None:
        versions = await self.history(key, 1)
        return versions[0] if versions else None

    async def save(
        self, key: str, state: AwarenessState, expected_version: int | None = None
    ) -> int:
        if expected_version is not None and expected_version < 0:
            raise ValueError(
                "expected_version is what was loaded, 0 for none, None for any, not "
                f"{expected_version!r}."
            )
        return await self._run(
            key, lambda: self._write(key, state.model_dump_json(), expected_version)
        )

    async def history(self, key: str, limit: int = 10) -> list[StoredState]:
        if limit < 1:
            raise ValueError(f"limit is how many versions to give, at least 1, not {limit!r}.")
        versions = await self._run(key, lambda: self._read(key, limit))
        return [self._stored(key, version, text) for version, text in versions]

    async def delete(self, key: str) -> bool:
        return await self._run(key, lambda: self._remove(key))

    async def close(self) -> None:
        def close() -> None:
            with self._lock:
                self._closed = True
                self._release()

        await asyncio.to_thread(close)

    async def _run(self, key: str, work: Callable[[], _T]) -> _T:
        storable = key == well_formed(cleaned(key)) and not {"\t", "\n"} & set(key)
        if not key.strip() or len(key) > _LONGEST_KEY or not storable:
            raise ValueError(
                f"A key is a text of 1 to {_LONGEST_KEY} characters without control characters, "
                f"not {key[: _LONGEST_KEY + 1]!r}."
            )

        def alone() -> _T:
            with self._lock, self._errors():
                if self._closed:
                    raise StateStoreError(
                        f"The store of states {self._place} is closed; open a new one."
                    )
                return work()

        return await asyncio.to_thread(alone)

    @contextmanager
    def _errors(self) -> Generator[None]:
        try:
            yield
        except self._faults as error:
            text = self._fault.format(place=self._place, error=one_line(str(error)))
            raise StateStoreError(text) from error

    def _stored(self, key: str, version: int, text: str) -> StoredState:
        try:
            return StoredState(key=key, version=version, state=load_state(text))
        except StateVersionError:
            raise
        except AwarenessError as error:
            raise StateStoreError(
                f"The store {self._place} holds no state as version {version} of {key!r}. {error} "
                "Save a sound state over it, or delete the key."
            ) from error

    @abstractmethod
    def _read(self, key: str, limit: int) -> _Versions: ...

    @abstractmethod
    def _write(self, key: str, text: str, expected: int | None) -> int: ...

    @abstractmethod
    def _remove(self, key: str) -> bool: ...

    def _release(self) -> None:
        """Closes what is held open."""


def _check_expected(key: str, expected: int | None, found: int) -> None:
    if expected is not None and expected != found:
        raise StaleStateError(key, expected, found)


class InMemoryStateStore(_TextStore):
    """A `StateStore` in this process's memory, for tests; it keeps so many versions of each key.

    Raises:
        ValueError: `keep` is below 1.
    """

    def __init__(self, *, keep: int = _KEEP) -> None:
        super().__init__("in memory", keep)
        self._texts: dict[str, _Versions] = {}
        self._last = 0

    def _read(self, key: str, limit: int) -> _Versions:
        return self._texts.get(key, [])[:limit]

    def _write(self, key: str, text: str, expected: int | None) -> int:
        texts = self._texts.get(key, [])
        _check_expected(key, expected, texts[0][0] if texts else 0)
        self._last += 1
        self._texts[key] = [(self._last, text), *texts][: self._keep]
        return self._last

    def _remove(self, key: str) -> bool:
        return self._texts.pop(key, None) is not None


# ---- In a folder: one JSON file a version, which a person can read and copy ----

_READABLE = 40
"""Characters of a key that its folder's name shows."""
_LOOKS = 100
"""How often the files are listed again if others remove one while it is read."""


class FolderStateStore(_TextStore):
    """A `StateStore` in a folder: a folder for each key, in it a JSON file for each version.

    A version is written to a draft, flushed to the disk and renamed, by one writer at a time; so
    it is there whole or not at all, whenever a process is killed. Several processes may use the
    folder. Of a deleted key an empty folder remains with the number of its last version, so that
    no number is given twice.

    Args:
        path: The folder; it is made with the first state.
        keep: How many versions of each key stay.

    Raises:
        ValueError: `keep` is below 1.
    """

    _faults = (OSError, UnicodeDecodeError)
    _fault = (
        "States cannot be read or written {place}: {error}. Check the folder and its rights, then "
        "try again."
    )

    def __init__(self, path: Path | str, *, keep: int = _KEEP) -> None:
        self.path = Path(path).expanduser().resolve()
        super().__init__(f"in {str(self.path)!r}", keep)

    def to_arguments(self) -> Mapping[str, Any]:
        """See `coag.schema.Declarable`."""
        return {"path": str(self.path), "keep": self._keep}

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> Self:
        """See `coag.schema.Declarable`."""
        return cls(**arguments)

    def _read(self, key: str, limit: int) -> _Versions:
        folder = self._folder_of(key)
        for _ in range(_LOOKS):
            versions = _versions(folder)[: -limit - 1 : -1]
            try:
                return [(one, _file(folder, one).read_text("utf-8")) for one in versions]
            except FileNotFoundError:
                continue  # removed since it was listed: there are newer ones, or none
        raise StateStoreError(
            f"The states in {str(folder)!r} are replaced faster than they can be read: keep more "
            "versions than one, or save less often."
        )

    def _write(self, key: str, text: str, expected: int | None) -> int:
        folder = self._folder_of(key)
        with _locked(folder) as lock:
            versions = _versions(folder)
            current = versions[-1] if versions else 0
            _check_expected(key, expected, current)
            last = lock.read().strip()
            version = max(current, int(last) if last.isdigit() else 0) + 1
            replace_file(_file(folder, version), text)
            for old in versions[: max(0, len(versions) + 1 - self._keep)]:
                _file(folder, old).unlink(missing_ok=True)
        return version

    def _remove(self, key: str) -> bool:
        folder = self._folder_of(key)
        if not _versions(folder):
            return False
        with _locked(folder) as lock:
            versions = _versions(folder)
            if versions:
                lock.truncate(0)
                lock.write(str(versions[-1]).encode())
                flush_to_disk(lock)
            for version in versions:  # the newest last: if killed, no older one becomes current
                _file(folder, version).unlink(missing_ok=True)
            remove_drafts(folder)
        return bool(versions)

    def _folder_of(self, key: str) -> Path:
        """The key's folder: its readable part and a hash, since some systems ignore case."""
        readable = re.sub(r"[^A-Za-z0-9_-]+", "-", key)[:_READABLE]
        return self.path / f"{readable}.{content_id(key)[:16]}"


def _locked(folder: Path) -> IO[bytes]:
    """Keeps other writers out; the file holds the last version that a deletion removed."""
    try:
        lock = lock_file(folder / "last.lock", _PATIENCE)
        lock.seek(0)
        return lock
    except LockHeldError as error:
        raise StateStoreError(
            f"Another process has been writing in {str(folder)!r} for {_PATIENCE:g} s; "
            "nothing was changed. Try again when it is done."
        ) from error


def _file(folder: Path, version: int) -> Path:
    return folder / f"{version:012d}.json"


def _versions(folder: Path) -> list[int]:
    """The versions that are there, rising."""
    try:
        names = [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return []
    return sorted(int(name[:12]) for name in names if re.fullmatch(r"\d{12}\.json", name))


# ---- In a SQL database ----

_INDEX: Final = "CREATE INDEX IF NOT EXISTS {index} ON {table} (key, version)"
_PRUNE: Final = """
DELETE FROM {table} WHERE key = %s AND version <= (
    SELECT version FROM {table} WHERE key = %s ORDER BY version DESC LIMIT 1 OFFSET %s
)
"""


class _SqlStore(_TextStore):
    """A table of versions; each subclass says how a statement and a transaction are run."""

    def _read(self, key: str, limit: int) -> _Versions:
        newest = "SELECT version, state FROM {table} WHERE key = %s ORDER BY version DESC LIMIT %s"
        return [(row[0], row[1]) for row in self._execute(newest, key, limit).fetchall()]

    def _write(self, key: str, text: str, expected: int | None) -> int:
        with self._transaction(key):
            latest = "SELECT max(version) FROM {table} WHERE key = %s"
            current = self._execute(latest, key).fetchone()[0] or 0
            _check_expected(key, expected, current)
            insert = "INSERT INTO {table} (key, state) VALUES (%s, %s) RETURNING version"
            version = int(self._execute(insert, key, text).fetchone()[0])
            self._execute(_PRUNE, key, key, self._keep)
        return version

    def _remove(self, key: str) -> bool:
        with self._transaction(key):
            return self._execute("DELETE FROM {table} WHERE key = %s", key).rowcount > 0

    @abstractmethod
    def _execute(self, statement: LiteralString, *values: object) -> Any:
        """The cursor after a statement."""

    @abstractmethod
    def _transaction(self, key: str) -> AbstractContextManager[None]:
        """All or nothing, while nobody else writes this key."""


_APPLICATION = 0x636F6177
"""SQLite's `application_id` of our files: `coaw`."""
_FORM = 1
"""SQLite's `user_version` of the table below."""
_SQLITE_TABLE: Final = """
CREATE TABLE IF NOT EXISTS {table} (
    version INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, state TEXT NOT NULL
)
"""


class SqliteStateStore(_SqlStore):
    """A `StateStore` in a SQLite file with a write-ahead log; several processes may use it.

    Args:
        path: The file; it is made where there is none, in a folder that exists.
        keep: How many versions of each key stay.
        power_safe: Whether each save waits until it would survive a loss of power. Without that
            it survives a killed process, is faster, and a loss of power may take the last saves.

    Raises:
        StateStoreError: The file cannot be opened, or belongs to another program.
        ValueError: `keep` is below 1.
    """

    _faults = (sqlite3.Error,)
    _fault = (
        "The file of awareness states {place} failed: {error}. What is stored is as it was; check "
        "the file, its rights and the space on the disk, then try again."
    )

    def __init__(self, path: Path | str, *, keep: int = _KEEP, power_safe: bool = True) -> None:
        self.path = Path(path).expanduser().resolve()
        super().__init__(f"at {str(self.path)!r}", keep)
        self._power_safe = power_safe
        with self._errors():
            self._db = sqlite3.connect(
                self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except (StateStoreError, sqlite3.Error):
                self._db.close()
                raise

    def _prepare(self) -> None:
        """Makes the table where the file is new."""
        db = self._db
        db.execute(f"PRAGMA synchronous = {'FULL' if self._power_safe else 'NORMAL'}")
        with self._transaction(""):
            (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            (mark,) = db.execute("PRAGMA application_id").fetchone()
            (form,) = db.execute("PRAGMA user_version").fetchone()
            if tables and (mark, form) != (_APPLICATION, _FORM):
                raise StateStoreError(
                    f"{str(self.path)!r} is no file of awareness states that this version reads "
                    f"(application_id {mark}, user_version {form}): name another file."
                )
            db.execute(f"PRAGMA application_id = {_APPLICATION}")
            db.execute(f"PRAGMA user_version = {_FORM}")
            self._execute(_SQLITE_TABLE)
            self._execute(_INDEX)
        write_ahead(db, _PATIENCE)

    def _execute(self, statement: LiteralString, *values: object) -> Any:
        text = statement.format(table="states", index="states_by_key").replace("%s", "?")
        return self._db.execute(text, values)

    @contextmanager
    def _transaction(self, key: str) -> Generator[None]:
        del key  # one writer for the whole file
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def _release(self) -> None:
        self._db.close()


_POSTGRES_TABLE: Final = """
CREATE TABLE IF NOT EXISTS {table} (
    version bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL, state text NOT NULL
)
"""
_POSTGRES_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


class PostgresStateStore(_SqlStore):
    """A `StateStore` in a table of a Postgres database; many processes and machines may use it.

    Needs the extra `coag[postgres]`; no other class imports psycopg. The connection is made with
    the first use, and again after it was lost.

    Args:
        conninfo: Where, in libpq's form: `host=localhost dbname=agents`, or an address. It is not
            shown in errors.
        table: The table; it is made where there is none.
        keep: How many versions of each key stay.

    Raises:
        ConfigurationError: psycopg is not installed.
        ValueError: `keep` is below 1, or `table` is no plain name.
    """

    _fault = (
        "Postgres failed: {error}. If it was a save, load to see whether it was stored; check the "
        "server and the connection settings, then try again."
    )

    def __init__(
        self, conninfo: str, *, table: str = "coag_awareness_states", keep: int = _KEEP
    ) -> None:
        super().__init__(f"in the table {table!r} of Postgres", keep)
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,47}", table):
            raise ValueError(
                "table is a name of at most 48 small letters, digits and underscores, not "
                f"{table!r}."
            )
        try:
            import psycopg
        except ImportError as error:
            raise ConfigurationError(
                "States in Postgres need the package psycopg, which is not installed: "
                "pip install 'coag[postgres]'. SqliteStateStore needs nothing."
            ) from error
        self._faults = (psycopg.Error,)
        self._conninfo = conninfo
        self._table = table
        self._db: Connection[tuple[Any, ...]] | None = None

    def _connected(self) -> Connection[tuple[Any, ...]]:
        """The connection, made where there is none or it was lost."""
        import psycopg

        if self._db is None or self._db.closed:
            db = psycopg.connect(self._conninfo, autocommit=True, connect_timeout=int(_PATIENCE))
            try:
                db.execute("SELECT set_config('lock_timeout', %s, false)", (f"{_PATIENCE:g}s",))
                with db.transaction():  # two that begin at once wait for each other
                    db.execute(_POSTGRES_LOCK, (self._table,))
                    self._execute(_POSTGRES_TABLE, db=db)
                    self._execute(_INDEX, db=db)
            except psycopg.Error:
                db.close()
                raise
            self._db = db
        return self._db

    def _execute(
        self,
        statement: LiteralString,
        *values: object,
        db: Connection[tuple[Any, ...]] | None = None,
    ) -> Any:
        from psycopg.sql import SQL, Identifier

        names = {"table": Identifier(self._table), "index": Identifier(f"{self._table}_by_key")}
        return (db or self._connected()).execute(SQL(statement).format(**names), values)

    @contextmanager
    def _transaction(self, key: str) -> Generator[None]:
        db = self._connected()
        with db.transaction():
            db.execute(_POSTGRES_LOCK, (f"{self._table}/{key}",))
            yield

    def _release(self) -> None:
        if self._db is not None:
            self._db.close()
        self._db = None
