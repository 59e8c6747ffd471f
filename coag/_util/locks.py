"""Locks between processes: they end with the process that holds them, however it ends."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import IO

_PAUSE = 0.005
"""Seconds between two attempts."""

if sys.platform == "win32":  # pragma: no cover - the branch of another system
    import msvcrt

    def try_lock(lock: IO[bytes]) -> bool:
        """Locks an open file for this process until it is closed; False if another holds it."""
        lock.seek(0)
        try:
            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def try_lock(lock: IO[bytes]) -> bool:
        """Locks an open file for this process until it is closed; False if another holds it."""
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class LockHeldError(Exception):
    """Another process held the lock longer than the caller was ready to wait."""


def lock_file(path: Path, patience: float) -> IO[bytes]:
    """Opens a file, made with its folder if need be, and locks it until it is closed. Blocks.

    Raises:
        LockHeldError: Another process held it for `patience` seconds.
        OSError: The file cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.open("a+b")
    deadline = time.monotonic() + patience
    while not try_lock(lock):
        if time.monotonic() > deadline:
            lock.close()
            raise LockHeldError(f"another process has held it for {patience:g} s")
        time.sleep(_PAUSE)
    return lock
