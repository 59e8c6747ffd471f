"""States in a folder."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from coag._util.files import flush_to_disk, remove_drafts, replace_file
from coag._util.locks import LockHeldError, lock_file
from coag.awareness.state import AwarenessState
from coag.schema import content_id

from .protocol import (
    KEPT,
    PATIENCE,
    StateStoreError,
    StoredState,
    check_expected,
    checked_keep,
    checked_key,
    checked_limit,
    closed,
    stored_state,
)

# ---- Files that are written whole or not at all, by one writer at a time ----


_LOCK = "last.lock"


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
        flush_to_disk(self._file)


@contextmanager
def alone_in(folder: Path) -> Generator[Numbers]:
    """Keeps other writers out of a folder meanwhile; the lock ends with its process.

    Raises:
        StateStoreError: Another one holds on to it, or the folder cannot be written.
    """
    with file_errors("saved", folder):
        try:
            lock = lock_file(folder / _LOCK, PATIENCE)
        except LockHeldError as error:
            raise StateStoreError(
                f"Another process has been writing in {str(folder)!r} for {PATIENCE:g} s; "
                "nothing was changed. Try again when it is done."
            ) from error
    with lock:
        yield Numbers(lock)


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


# ---- States as a folder of JSON files, one a version, which a person can read and copy ----


_FILE = re.compile(r"(\d{12})\.json")
_READABLE = 40
"""Characters of a key that its folder's name shows."""
_LOOKS = 100
"""How often a version is looked for that others remove while it is read."""


class FolderStateStore:
    """A `StateStore` in a folder: a folder for each key, in it a file of JSON for each version.

    A version is written beside, brought to the disk and put in its place in one step, by one
    writer at a time; so it is there whole or not at all, whenever a process is killed. Several
    processes may use the folder. Of a deleted key an empty folder stays, with the number of its
    last version, so that no number is given twice.

    Args:
        path: The folder; it is made with the first state.
        keep: How many versions of each key stay.

    Raises:
        ValueError: `keep` is below 1.
    """

    def __init__(self, path: Path | str, *, keep: int = KEPT) -> None:
        self.path = Path(path).expanduser().resolve()
        self._keep = checked_keep(keep)
        self._closed = False

    async def load(self, key: str) -> StoredState | None:
        """The newest version; None if there is none."""
        found = await self._read(key, 1)
        return found[0] if found else None

    async def save(
        self, key: str, state: AwarenessState, expected_version: int | None = None
    ) -> int:
        """Stores a state as the newest version."""
        folder = self._folder_of(key)
        return await asyncio.to_thread(self._write, folder, key, state, expected_version)

    async def history(self, key: str, limit: int = 10) -> list[StoredState]:
        """The newest versions, newest first."""
        return await self._read(key, checked_limit(limit))

    async def delete(self, key: str) -> bool:
        """Removes all versions for good; False if there was none."""
        return await asyncio.to_thread(self._remove, self._folder_of(key))

    async def close(self) -> None:
        """Nothing is held open; closing twice does no harm."""
        self._closed = True

    def _folder_of(self, key: str) -> Path:
        """The key's folder: its readable part, and a hash, since not all systems know case."""
        if self._closed:
            raise closed(f"in {str(self.path)!r}")
        readable = re.sub(r"[^A-Za-z0-9_-]+", "-", checked_key(key))[:_READABLE]
        return self.path / f"{readable}.{content_id(key)[:16]}"

    async def _read(self, key: str, limit: int) -> list[StoredState]:
        folder = self._folder_of(key)
        texts = await asyncio.to_thread(self._texts, folder, limit)
        where = repr(str(folder))
        return [stored_state(key, version, text, where) for version, text in texts]

    def _texts(self, folder: Path, limit: int) -> list[tuple[int, str]]:
        """The newest versions with what they hold, all of one moment, newest first."""
        for _ in range(_LOOKS):
            versions = _versions(folder)[: -limit - 1 : -1]
            with file_errors("read", folder):
                try:
                    return [(one, _file(folder, one).read_text("utf-8")) for one in versions]
                except FileNotFoundError:
                    continue  # removed since it was listed: there are newer ones, or none
        raise StateStoreError(
            f"The states in {str(folder)!r} are replaced faster than they can be read: keep more "
            "versions than one, or save less often."
        )

    def _write(self, folder: Path, key: str, state: AwarenessState, expected: int | None) -> int:
        text = state.model_dump_json()
        with alone_in(folder) as numbers, file_errors("saved", folder):
            versions = _versions(folder)
            current = versions[-1] if versions else 0
            check_expected(key, expected, current)
            version = max(current, numbers.last) + 1
            replace_file(_file(folder, version), text)
            for old in versions[: max(0, len(versions) + 1 - self._keep)]:
                _file(folder, old).unlink(missing_ok=True)
        return version

    def _remove(self, folder: Path) -> bool:
        if not _versions(folder):
            return False
        with alone_in(folder) as numbers, file_errors("deleted", folder):
            versions = _versions(folder)
            if versions:
                numbers.last = versions[-1]
            for version in versions:  # the newest last: cut short, no older one becomes current
                _file(folder, version).unlink(missing_ok=True)
            remove_drafts(folder)
        return bool(versions)


def _file(folder: Path, version: int) -> Path:
    return folder / f"{version:012d}.json"


def _versions(folder: Path) -> list[int]:
    """The versions that are there, rising."""
    with file_errors("read", folder):
        try:
            names = [path.name for path in folder.iterdir()]
        except FileNotFoundError:
            return []
    return sorted(int(found[1]) for name in names if (found := _FILE.fullmatch(name)))
