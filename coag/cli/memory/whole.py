"""A memory with what has faded: for commands that go by ids and links.

It is not part of `place.py`, since it loads all of `coag.memory`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing, contextmanager

from coag.memory.dynamics import DYNAMICS_FILE, DynamicsFile, MemoryArchive, StoreWithArchive
from coag.store import RecordStore

from .place import MemoryPlace, opened


@contextmanager
def dynamics_of(place: MemoryPlace, *, read_only: bool = False) -> Generator[DynamicsFile | None]:
    """The file of the dynamics of a memory, while a command works with it; None without one."""
    path = None if place.folder is None else place.folder / DYNAMICS_FILE
    if path is None or not path.is_file():
        yield None
        return
    with closing(DynamicsFile(path, read_only=read_only)) as file:
        yield file


@asynccontextmanager
async def opened_whole(place: MemoryPlace) -> AsyncGenerator[RecordStore]:
    """The records of a place with those that have faded: for what goes by ids and links."""
    async with opened(place) as store:
        with dynamics_of(place) as file:
            if file is None:
                yield store
            else:
                yield StoreWithArchive(store, MemoryArchive(file), removing=file.remove)
