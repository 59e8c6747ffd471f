"""Files that are written whole or not at all, and that only their owner can read."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any, Self

_DRAFT = ".new"
"""The end of a draft's name; a killed writer leaves its draft behind."""


def private(path: str, flags: int) -> int:
    """Opens a file; a new one is its owner's alone. For `open(..., opener=private)`."""
    return os.open(path, flags, 0o600)


def flush_to_disk(file: IO[Any]) -> None:
    """Waits until what was written has reached the disk."""
    file.flush()
    os.fsync(file.fileno())


class AtomicFile:
    """A draft beside a file, which takes the file's place in one step when it is complete.

    A new file is its owner's alone; one that replaces an older file keeps that one's permissions.
    As a context manager it is committed at the end, and discarded if an error is raised.

    Args:
        path: The file; its folder must exist.
        durable: Whether the content and the name survive a power loss. Without it they survive
            the end of the process only, which is much faster.

    Raises:
        OSError: The draft cannot be made.
    """

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        self.path = path
        self._durable = durable
        self.draft: IO[bytes] = NamedTemporaryFile(  # noqa: SIM115 - closed by commit and discard
            dir=path.parent, prefix=f".{path.name}.", suffix=_DRAFT, delete=False
        )
        """The draft, open for writing."""

    def commit(self) -> int:
        """Puts the draft in the file's place and returns its size in bytes.

        Raises:
            OSError: It cannot be done; an older file is as it was.
        """
        if self._durable:
            flush_to_disk(self.draft)
        self.draft.flush()
        size = os.fstat(self.draft.fileno()).st_size
        self.draft.close()
        with suppress(OSError):
            os.chmod(self.draft.name, stat.S_IMODE(self.path.stat().st_mode))
        os.replace(self.draft.name, self.path)
        if self._durable:
            _sync_folder(self.path.parent)
        return size

    def discard(self) -> None:
        """Removes the draft; of no effect after `commit`."""
        with suppress(OSError):
            self.draft.close()
        Path(self.draft.name).unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                self.commit()
        finally:
            self.discard()


def replace_file(path: Path, content: str | bytes, *, durable: bool = True) -> int:
    """Writes a file whole or not at all and returns its size in bytes; see `AtomicFile`.

    Halves of characters, which no file can hold, become question marks.

    Raises:
        OSError: It cannot be written; an older file is as it was.
    """
    data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    with AtomicFile(path, durable=durable) as file:
        file.draft.write(data)
    return len(data)


def remove_drafts(folder: Path) -> None:
    """Removes drafts that killed writers left; call it only while no other writer is at work."""
    for draft in folder.glob(f".*{_DRAFT}"):
        draft.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Makes a file's new name survive as well; Windows gives no handle to a folder."""
    if sys.platform == "win32":  # pragma: no cover - the branch of another system
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
