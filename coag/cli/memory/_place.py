"""Where a memory is, and how it is opened for a command."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import typer

from coag.errors import ConfigurationError, EmbedderMismatchError
from coag.schema import MemoryKind
from coag.store import (
    LTM_FOLDER,
    RECORDS_FILE,
    RecordStore,
    StoreConfig,
    WordLlamaEmbedder,
    embedder_of,
    holds_records,
    plan_reembedding,
)

from ._text import line

_T = TypeVar("_T")

_NOTHING = 1
"""Exit code where nothing was found."""


class NothingFoundError(Exception):
    """There is no such record; the message says so to a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a memory is."""

    store: Path | str
    """The folder or the address of its records."""
    folder: Path | None
    """The folder beside them, with procedures and the memory's log; None at a server."""
    embedder: str | None
    """Name of the embedder that it was made with, as a person gave it; None to find that out."""

    @property
    def shown(self) -> str:
        """Where the records are, for a person."""
        return str(self.store)


def place_of(memory: str | None, embedder: str | None, *, make: bool = False) -> Place:
    """The place that options name.

    Args:
        memory: A folder or a URL.
        embedder: Name of an embedder; None for the default one.
        make: Whether it need not be there yet.

    Raises:
        ConfigurationError: If none is named, or there is no memory.
    """
    if not memory or not memory.strip():
        raise ConfigurationError(
            "Which memory? Give --memory FOLDER, what the agent was given as memory=, or a Chroma "
            "server's http://HOST:PORT; or set COAG_MEMORY."
        )
    if "://" in memory:
        return Place(store=memory, folder=None, embedder=embedder)
    folder = Path(memory).expanduser()
    inner = folder / LTM_FOLDER
    if holds_records(folder) and holds_records(inner):
        raise ConfigurationError(
            f"There are two memories: one in {str(folder)!r} itself and one in {str(inner)!r}. "
            f"Name {str(inner)!r} for that one; move the other one's files into a folder of their "
            "own to read it."
        )
    if holds_records(folder):  # the records' own folder
        beside = folder.parent if folder.name == LTM_FOLDER else folder
        return Place(store=folder, folder=beside, embedder=embedder)
    if not make and not holds_records(inner):
        raise ConfigurationError(
            f"There is no memory in {str(folder)!r}. Neither {str(inner)!r}, where an agent that "
            f"was given memory= has it, nor {str(folder)!r} itself has a {RECORDS_FILE}."
        )
    return Place(store=inner, folder=folder, embedder=embedder)


@asynccontextmanager
async def opened(place: Place) -> AsyncGenerator[RecordStore]:
    """The records of a place, while a command works with them.

    Raises:
        ConfigurationError: If another embedder made them, or there is no such embedder.
        RecordStoreError: If they cannot be reached.
    """
    store = await _opened(place)
    try:
        yield store
    finally:
        await store.close()


async def _opened(place: Place) -> RecordStore:
    """The store with the embedder that it was made with, if that is one of coag's."""
    name = place.embedder or WordLlamaEmbedder.name
    store = StoreConfig(location=str(place.store), embedder=name).open()
    try:
        await store.count(MemoryKind.EPISODIC)
    except EmbedderMismatchError as error:
        await store.close()
        made_with = await _made_with(place, error)
        return StoreConfig(location=str(place.store), embedder=made_with).open()
    except BaseException:
        await store.close()
        raise
    return store


async def _made_with(place: Place, error: EmbedderMismatchError) -> str:
    """Name of the one embedder whose vectors a place holds; the error if it is not to be had."""
    if place.embedder is not None:
        raise error
    plan = await plan_reembedding(place.store, embedder_of(WordLlamaEmbedder.name))
    if len(plan.made_with) != 1:
        raise error
    return plan.made_with[0]


def run(work: Coroutine[object, object, _T]) -> _T:
    """Does a command's work; where nothing was found, says so and leaves with exit code 1."""
    try:
        return asyncio.run(work)
    except NothingFoundError as error:
        for one in str(error).splitlines():
            indent = " " * (len(one) - len(one.lstrip(" ")))
            typer.echo(indent + line(one, 600), err=True)
        raise typer.Exit(_NOTHING) from error
