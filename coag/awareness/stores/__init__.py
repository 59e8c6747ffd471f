"""Where awareness states rest between calls and processes, with their history (SAGEN §6.7, §8).

A `StateStore` keeps, for each key, the last versions of a state. Who loads a state is told its
version and gives it back when saving: if somebody else has saved meanwhile, that is a
`StaleStateError` and nothing is lost. `change_stored` loads, changes and saves, and does so again
where it came too late.

States rest in memory, in a folder of JSON files, in a SQLite file or in Postgres (the extra
`coag[postgres]`, imported when one is opened).
"""

from .folder import FolderStateStore
from .in_memory import InMemoryStateStore
from .postgres import PostgresStateStore
from .protocol import StaleStateError, StateStore, StateStoreError, StoredState, change_stored
from .sqlite import SqliteStateStore

__all__ = [
    "StateStore",
    "StoredState",
    "InMemoryStateStore",
    "FolderStateStore",
    "SqliteStateStore",
    "PostgresStateStore",
    "change_stored",
    "StateStoreError",
    "StaleStateError",
]
