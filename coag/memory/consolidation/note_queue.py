"""The notes that nothing was concluded from yet, in the order in which they were taken."""

from __future__ import annotations

from collections.abc import Sequence

from coag.memory.dynamics import DynamicsFile
from coag.memory.long_term import LongTermMemory

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
