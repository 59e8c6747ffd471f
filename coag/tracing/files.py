"""Files of a run: only regular ones are read, and a trace is written line by line."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Generator, Iterator
from hashlib import sha256
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from coag._util.files import private
from coag._util.locks import try_lock
from coag.errors import TraceError

FOLDER = 0o700
"""The mode of a run's folder, where the system has modes: a run holds what was said and done."""


# ---- Reading only what is a file: nothing that would be waited for, or that never ends ----


_NO_WAITING = getattr(os, "O_NONBLOCK", 0)
"""A pipe is opened at once, whether somebody writes to it or not; a file is read as always."""


def regular(path: str, flags: int) -> int:
    """Opens a regular file. For `open(..., opener=regular)`."""
    file = os.open(path, flags | _NO_WAITING)
    mode = os.fstat(file).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # `open` itself reports a folder
        return file
    os.close(file)
    raise OSError(errno.EINVAL, "it is not a regular file")


# ---- Whether a trace is still the file that was read so far ----


class SameFile:
    """Remembers the file that was opened first, to see whether another took its place."""

    def __init__(self) -> None:
        self._known: tuple[int, int] | None = None
        """Device and number of the file."""

    def problem(self, file: BinaryIO, read: int) -> str:
        """What happened to the file, for after its name; empty where reading can continue."""
        if self.is_other(file):
            return "was replaced by another file while it was read"
        if file.seek(0, os.SEEK_END) < read:
            return "was cut while it was read"
        if read:
            file.seek(read - 1)
            if file.read(1) != b"\n":
                return "was rewritten while it was read"
        return ""

    def is_other(self, file: BinaryIO) -> bool:
        """True if this is not the file that was opened first."""
        status = os.fstat(file.fileno())
        now = (status.st_dev, status.st_ino)
        self._known = self._known or now
        return now != self._known


# ---- The file under a trace: lines are appended whole or not at all, by one writer at a time ----


_BLOCK = 1 << 16


def is_held(path: Path) -> bool:
    """Whether a process holds a file of lines open; False where locks cannot say (Windows)."""
    if sys.platform == "win32" or not path.exists():
        return False
    with path.open("rb") as file:
        return not try_lock(file)


class LineFile:
    """An append-only file of lines, held open by this process alone."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = path.absolute()
        with trace_errors(path, "cannot be opened for writing"):
            self._file = FileIO(path, "ab+", opener=private)
        try:
            # A lock of Windows would keep readers out as well.
            if sys.platform != "win32" and not try_lock(self._file):
                problem = "another writer holds it: the run has not ended. Stop that one first."
                raise TraceError(path, problem)
            self._regular = stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)
        except BaseException:
            self._file.close()
            raise

    def append(self, lines: bytes) -> None:
        """Hands lines to the operating system, all of them or none."""
        before = self.size
        rest = memoryview(lines)
        with trace_errors(self._path, "cannot be written to"):
            try:
                while rest:
                    rest = rest[self._file.write(rest) :]
            except OSError:
                # The reader copes with a torn last line, should the cut fail as well.
                with contextlib.suppress(OSError):
                    self._file.truncate(before)
                raise

    def check_in_place(self, least: int) -> None:
        """Makes sure that what was appended can be found again."""
        if not self._regular:
            return
        mine = os.fstat(self._file.fileno())
        with trace_errors(self._path, "was removed during the run"):
            there = self._place.stat()
        if not os.path.samestat(mine, there):
            raise TraceError(self._path, "was replaced by another file during the run")
        if mine.st_size < least:
            problem = f"was cut to {mine.st_size} of {least} bytes during the run"
            raise TraceError(self._path, problem)

    @property
    def size(self) -> int:
        """Bytes in the file; 0 for a device."""
        return os.fstat(self._file.fileno()).st_size if self._regular else 0

    def backwards(self) -> Iterator[bytes]:
        """First what follows the last newline (often nothing), then the lines, last first.

        Lines come without their newline. Reads in blocks, so that a long trace is cheap to open.
        """
        yield from backwards(self._file, self.size)

    def sha256(self) -> str:
        """SHA-256 of all that is in the file, in hex."""
        hashed = sha256()
        self._file.seek(0)
        while block := self._file.read(_BLOCK):
            hashed.update(block)
        return hashed.hexdigest()

    def cut_tail(self, length: int, keep_in: Path) -> None:
        """Moves the last `length` bytes to another file."""
        start = self.size - length
        self._file.seek(start)
        tail = _read(self._file, length)
        with trace_errors(self._path, "its torn last line cannot be cut off"):
            with open(keep_in, "ab", opener=private) as kept:
                kept.write(tail)
            self._file.truncate(start)

    def close(self) -> None:
        """Releases the file."""
        self._file.close()


def backwards(file: FileIO, size: int) -> Iterator[bytes]:
    """First what follows the last newline (often nothing), then the lines, last first.

    Lines come without their newline. Reads in blocks, so that a long file is cheap.
    """
    position, block = size, _BLOCK
    rest = b""
    while position > 0:
        start = max(0, position - block)
        file.seek(start)
        rest, *lines = (_read(file, position - start) + rest).split(b"\n")
        yield from reversed(lines)
        position = start
        if not lines:  # so that a very long line is not copied for every block of it
            block *= 2
    yield rest


def _read(file: FileIO, length: int) -> bytes:
    parts: list[bytes] = []
    while length > 0 and (part := file.read(length)):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


@contextlib.contextmanager
def trace_errors(path: Path, problem: str) -> Generator[None]:
    """Raises an `OSError` as a `TraceError` that says what it means for the file."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise TraceError(path, f"{problem}: {reason}") from error
