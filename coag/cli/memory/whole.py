"""A memory with what has faded: for commands that go by ids and links.

It stands apart from `place.py`, since it loads all of `coag.memory`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from coag.memory.dynamics import DYNAMICS_FILE, DynamicsFile, MemoryArchive, StoreWithArchive
from coag.store import RecordStore

from .place import MemoryPlace, opened


def dynamics_of(place: MemoryPlace) -> Path | None:
    """The file of the dynamics of a memory; None where there is none."""
    path = None if place.folder is None else place.folder / DYNAMICS_FILE
    return path if path is not None and path.is_file() else None


@asynccontextmanager
async def opened_whole(place: MemoryPlace) -> AsyncGenerator[RecordStore]:
    """The records of a place with those that have faded: for what goes by ids and links."""
    path = dynamics_of(place)
    async with opened(place) as store:
        if path is None:
            yield store
            return
        with closing(DynamicsFile(path)) as file:
            yield StoreWithArchive(store, MemoryArchive(file), removing=file.remove)
