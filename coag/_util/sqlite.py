"""The write-ahead log of SQLite, with a wait that SQLite itself does not do."""

from __future__ import annotations

import sqlite3
import time

_PAUSE = 0.005
"""Seconds between two attempts."""


def write_ahead(db: sqlite3.Connection, patience: float) -> None:
    """Turns the write-ahead log on; SQLite does not wait for others here by itself.

    Args:
        db: The connection.
        patience: Seconds to wait for others that use the file.

    Raises:
        sqlite3.OperationalError: It cannot be turned on, or was in use for too long.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)
        else:
            return
