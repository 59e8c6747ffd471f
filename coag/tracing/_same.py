"""Whether a trace that is read on is still the file that was read so far."""

from __future__ import annotations

import os
from typing import BinaryIO


class SameFile:
    """Remembers the file that was opened first, and tells whether another took its place."""

    def __init__(self) -> None:
        self._known: tuple[int, int] | None = None
        """Device and number of the file."""

    def problem(self, file: BinaryIO, read: int) -> str:
        """What happened to the file, for after its name; empty where it can be read on.

        Args:
            file: As it was opened now; where it stands is changed.
            read: How many bytes were read before, up to the end of a line.
        """
        if self.is_other(file):
            return "was replaced by another file while it was read"
        if file.seek(0, os.SEEK_END) < read:
            return "was cut while it was read"
        if read:
            file.seek(read - 1)
            if file.read(1) != b"\n":
                return "was written anew while it was read"
        return ""

    def is_other(self, file: BinaryIO) -> bool:
        """True if this is not the file that was opened first."""
        found = os.fstat(file.fileno())
        now = (found.st_dev, found.st_ino)
        self._known = self._known or now
        return now != self._known
