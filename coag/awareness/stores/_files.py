"""Files that are written whole or not at all, by one writer at a time."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from coag.tracing import try_lock

from ._checks import PATIENCE
from ._errors import StateStoreError

_LOCK = "last.lock"
_NEW = ".new"
_PAUSE = 0.002
"""Seconds between two looks at a lock."""


class Numbers:
    """The number of a key's last version, which outlives the key."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    @property
    def last(self) -> int:
        """The last number that was written down; 0 for none."""
        self._file.seek(0)
        text = self._file.read().strip()
        return int(text) if text.isdigit() else 0

    @last.setter
    def last(self, version: int) -> None:
        self._file.seek(0)
        self._file.truncate()
        self._file.write(str(version).encode())
        self._file.flush()
        os.fsync(self._file.fileno())


@contextmanager
def alone_in(folder: Path) -> Generator[Numbers]:
    """Keeps other writers out of a folder meanwhile; the lock ends with its process.

    Raises:
        StateStoreError: Another one holds on to it, or the folder cannot be written.
    """
    with file_errors("saved", folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / _LOCK).open("a+b")
    with lock:
        deadline = time.monotonic() + PATIENCE
        while not try_lock(lock):
            if time.monotonic() > deadline:
                raise StateStoreError(
                    f"Another process has been writing in {str(folder)!r} for {PATIENCE:g} s; "
                    "nothing was changed. Try again when it is done."
                )
            time.sleep(_PAUSE)
        yield Numbers(lock)


def write_whole(path: Path, text: str) -> None:
    """Puts a file in its place in one step, and only when it is on the disk.

    Raises:
        OSError: It cannot be written; nothing is in its place then.
    """
    beside = path.with_name(_NEW)
    with beside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    _sync_folder(path.parent)


def remove_unfinished(folder: Path) -> None:
    """Removes what a killed writer left; to be done alone in the folder."""
    (folder / _NEW).unlink(missing_ok=True)


@contextmanager
def file_errors(done: str, folder: Path) -> Generator[None]:
    """Turns what the system refuses into our error.

    Raises:
        StateStoreError: The system refused.
    """
    try:
        yield
    except (OSError, UnicodeDecodeError) as error:
        raise StateStoreError(
            f"States cannot be {done} in {str(folder)!r}: {error}. See to the folder and its "
            "rights, then try again."
        ) from error


def _sync_folder(folder: Path) -> None:
    """Makes the file's new name survive, as its content does; Windows keeps no handle to one."""
    if sys.platform == "win32":  # pragma: no cover - the branch of another system
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
