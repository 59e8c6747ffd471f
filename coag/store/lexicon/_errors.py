"""What goes wrong with the file of the lexicon."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from coag.errors import RecordStoreError

_PRIMARY_CODE = 0xFF
"""The part of SQLite's codes that tells the sort of failure."""

_NOT_ITS_FAULT = frozenset(
    (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_AUTH,
        sqlite3.SQLITE_TOOBIG,
        sqlite3.SQLITE_INTERRUPT,
    )
)
"""Failures of the disk, of rights, of others who write: the file itself may be sound."""


class LexiconError(RecordStoreError):
    """The index cannot be read or written."""

    def __init__(self, message: str, *, broken: bool) -> None:
        super().__init__(message)
        self.broken = broken
        """Whether the index itself is at fault, so that it should be made anew."""


@contextmanager
def lexicon_errors(path: Path | None) -> Generator[None]:
    """Turns what SQLite raises into our error."""
    try:
        yield
    except sqlite3.Error as error:
        where = "" if path is None else f" at {path}"
        code = getattr(error, "sqlite_errorcode", None)
        broken = code is not None and code & _PRIMARY_CODE not in _NOT_ITS_FAULT
        raise LexiconError(f"The index of words{where} failed: {error}.", broken=broken) from error
