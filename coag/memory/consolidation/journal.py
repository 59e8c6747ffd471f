"""The journal of sleep: how far it has come, what models answered, and who sleeps.

A step's changes and its place are written in one transaction. So a sleep that was interrupted
anywhere continues after the last record that it changed, and changes none twice.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from coag._util.locks import LockHeldError, lock_file
from coag.errors import SleepInProgressError
from coag.memory.dynamics import DynamicsFile
from coag.memory.long_term import LongTermMemory
from coag.schema import Value

_SCHEMA = """
CREATE TABLE IF NOT EXISTS sleep_journal (owner TEXT PRIMARY KEY, position TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS gist_answers (
  owner TEXT NOT NULL, record TEXT NOT NULL, question TEXT NOT NULL, answer TEXT NOT NULL,
  PRIMARY KEY (owner, record, question)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sleep_marks (
  owner TEXT NOT NULL, step TEXT NOT NULL, mark TEXT NOT NULL, PRIMARY KEY (owner, step)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS graduated (
  owner TEXT NOT NULL, record TEXT NOT NULL, PRIMARY KEY (owner, record)
) WITHOUT ROWID
"""
_IN_RAM: set[tuple[int, str]] = set()
"""Files in RAM, by their identity, and owners that sleep in this process."""
_FINDING = threading.Lock()


class SleepPosition(Value):
    """How far a sleep that is not over has come."""

    started_at: float
    """POSIX seconds."""
    step: str
    """The step that is next, or begun."""
    cursor: str = ""
    """Where in the step: what it did last; empty at its beginning."""
    steps: tuple[str, ...] = ()
    """Names of the steps that are done."""


class SleepJournal:
    """The journal of one owner."""

    def __init__(self, file: DynamicsFile, owner: str) -> None:
        self.file = file
        self.owner = owner
        self._made = False

    @contextmanager
    def held(self) -> Generator[None]:
        """While one sleeps; another one for the same owner is refused, in whatever process.

        The lock is the operating system's and ends with the process, however that ends.

        Raises:
            SleepInProgressError: Somebody sleeps already.
        """
        with _lock(self.file, self.owner):
            if not self._made:
                self.file.create(_SCHEMA, records=("gist_answers.record", "graduated.record"))
                self._made = True
            yield

    def position(self) -> SleepPosition | None:
        """Where the last sleep stopped; None if it was over, or there was none."""
        found = self._value("SELECT position FROM sleep_journal WHERE owner = ?", self.owner)
        return None if found is None else SleepPosition.model_validate_json(found)

    def note(self, position: SleepPosition) -> None:
        """Notes how far it has come; part of a transaction that is open."""
        row = (self.owner, position.model_dump_json())
        self.file.write("INSERT OR REPLACE INTO sleep_journal VALUES (?, ?)", [row])

    def end(self) -> None:
        """Notes that it is over: the next sleep begins at the beginning."""
        with self.file.transaction():
            for table in ("sleep_journal", "gist_answers"):
                self.file.write(f"DELETE FROM {table} WHERE owner = ?", [(self.owner,)])

    def answer(self, record: str, question: str) -> str | None:
        """What a model answered about a record in this sleep, before it was interrupted."""
        query = "SELECT answer FROM gist_answers WHERE owner = ? AND record = ? AND question = ?"
        return self._value(query, self.owner, record, _digest(question))

    def keep_answer(self, record: str, question: str, answer: str) -> None:
        """Keeps what a model answered until the sleep is over, or the record is removed."""
        row = (self.owner, record, _digest(question), answer)
        self.file.write("INSERT OR REPLACE INTO gist_answers VALUES (?, ?, ?, ?)", [row])

    def mark(self, step: str) -> str | None:
        """What a step noted for the sleeps after it."""
        query = "SELECT mark FROM sleep_marks WHERE owner = ? AND step = ?"
        return self._value(query, self.owner, step)

    def set_mark(self, step: str, mark: str) -> None:
        """Notes something for the same step of the next sleep."""
        row = (self.owner, step, mark)
        self.file.write("INSERT OR REPLACE INTO sleep_marks VALUES (?, ?, ?)", [row])

    def has_graduated(self, record: str) -> bool:
        """Whether what a record says was made semantic memory before."""
        query = "SELECT record FROM graduated WHERE owner = ? AND record = ?"
        return self._value(query, self.owner, record) is not None

    def note_graduated(self, records: Sequence[str]) -> None:
        """Notes that what these records say is semantic memory now."""
        rows = [(self.owner, one) for one in records]
        self.file.write("INSERT OR IGNORE INTO graduated VALUES (?, ?)", rows)

    def _value(self, query: str, *values: str) -> str | None:
        self._made = self._made or self.file.has("graduated")  # a dry run makes no tables
        rows = self.file.rows(query, *values) if self._made else ()
        return str(rows[0][0]) if rows else None


def _digest(question: str) -> str:
    return hashlib.sha256(question.encode()).hexdigest()


@contextmanager
def _lock(file: DynamicsFile, owner: str) -> Generator[None]:
    if file.path is None:
        key = (id(file), owner)
        with _FINDING:
            if key in _IN_RAM:
                raise _in_progress(owner, "in RAM")
            _IN_RAM.add(key)
        try:
            yield
        finally:
            _IN_RAM.discard(key)
        return
    name = f".{file.path.name}.{_digest(owner)[:12]}.sleep"
    path: Path = file.path.with_name(name)
    try:
        lock = lock_file(path, 0.0)
    except LockHeldError as error:
        raise _in_progress(owner, str(file.path)) from error
    with lock:
        yield


def _in_progress(owner: str, where: str) -> SleepInProgressError:
    return SleepInProgressError(
        f"The memory of {owner!r} at {where!r} sleeps already, here or in another process; nothing "
        "was done. Wait until that is over, or end it: the next sleep continues where it stopped."
    )


# ---- Notes that nothing was concluded from yet ----

_WAITING = """
CREATE TABLE IF NOT EXISTS waiting_notes (
  number INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, record TEXT NOT NULL,
  UNIQUE (owner, record)
)
"""


class NoteQueue:
    """The notes of one memory that wait for the reflector."""

    def __init__(self, file: DynamicsFile, memory: LongTermMemory) -> None:
        self.file = file
        self._owner = memory.scope

    def add(self, records: Sequence[str]) -> None:
        """Puts notes at the end, by their ids; one that waits already stays where it is."""
        self.file.create(_WAITING, records=("waiting_notes.record",))
        rows = [(self._owner, one) for one in records]
        self.file.write("INSERT OR IGNORE INTO waiting_notes (owner, record) VALUES (?, ?)", rows)

    def first(self, most: int) -> list[str]:
        """The ids of the notes that wait longest; looking makes no table."""
        if not self.file.has("waiting_notes"):
            return []
        query = "SELECT record FROM waiting_notes WHERE owner = ? ORDER BY number LIMIT ?"
        return [row["record"] for row in self.file.rows(query, self._owner, most)]

    def remove(self, records: Sequence[str]) -> None:
        """Takes notes out, by their ids."""
        if records and self.file.has("waiting_notes"):
            rows = [(self._owner, one) for one in records]
            self.file.write("DELETE FROM waiting_notes WHERE owner = ? AND record = ?", rows)


def file_of(memory: LongTermMemory) -> DynamicsFile | None:
    """The file of the memory's dynamics; None for a memory without them."""
    return None if memory.dynamics is None else memory.dynamics.file
