"""The file of procedural memory: written whole or not at all, by one process at a time."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from coag.errors import ConfigurationError, RecordStoreError
from coag.tracing import try_lock

from ._history import Histories

_PATIENCE = 10.0
"""Seconds to wait for another process that is writing."""


def read_histories(path: Path) -> Histories | None:
    """What the file holds; None if there is no file.

    Raises:
        ConfigurationError: If it holds something else.
        RecordStoreError: If it cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise RecordStoreError(f"Procedures cannot be read from {str(path)!r}: {error}") from error
    try:
        return Histories.model_validate_json(text)
    except ValidationError as error:
        raise ConfigurationError(
            f"{str(path)!r} is no file of procedures that this version reads; "
            f"move it away, or name another path. ({error})"
        ) from error


def write_histories(path: Path, histories: Histories) -> None:
    """Replaces the file at once, and only when the new one is on the disk.

    Raises:
        RecordStoreError: If it cannot be written; the old file is untouched then.
    """
    beside = path.with_name(f".{path.name}.new")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(histories.model_dump_json(indent=1))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise RecordStoreError(f"Procedures cannot be saved to {str(path)!r}: {error}") from error


@contextmanager
def alone_with(path: Path | None) -> Generator[None]:
    """Keeps other processes from writing the file meanwhile; does nothing without a file.

    The lock ends with the process that holds it, however that ends.

    Raises:
        RecordStoreError: If another process holds on to it, or the folder cannot be written.
    """
    if path is None:
        yield
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.with_name(f".{path.name}.lock").open("a+b")
    except OSError as error:
        raise RecordStoreError(f"Procedures cannot be saved to {str(path)!r}: {error}") from error
    with lock:
        deadline = time.monotonic() + _PATIENCE
        while not try_lock(lock):
            if time.monotonic() > deadline:
                raise RecordStoreError(
                    f"Another process has been writing {str(path)!r} for {_PATIENCE:g} s."
                )
            time.sleep(0.01)
        yield


def _sync_folder(folder: Path) -> None:
    """Makes the file's new name survive, as its content does; Windows keeps no handle to one."""
    if sys.platform == "win32":  # pragma: no cover - the branch of another system
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
