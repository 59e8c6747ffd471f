"""Giving the records of a Chroma other vectors: resumable, and nothing is lost or doubled.

The records of each kind are copied into a collection beside the one in use (`NAME.next`), which
stays as it is and is read and written as ever. Once all are there, the switch is made: the ones
in use are renamed (`NAME.old`), so that no write into them is acknowledged any more; what was
written meanwhile is caught up; the new ones take the names in use; the old ones are removed. Which
collections there are tells how far it came, so that whoever repeats it goes on from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from ._embedders import Embedder
from ._reembedding_told import ReembedPlan, ReembedProgress, ReembedUnfinished
from ._reembedding_work import Reembedding

BATCH = 250
"""How many records are copied in one step, and held in memory, unless said otherwise."""


async def reembed(
    location: Path | str,
    embedder: Embedder,
    *,
    collection: str = "coag",
    batch: int = BATCH,
    progress: Callable[[ReembedProgress], None] | None = None,
) -> int:
    """Gives all records of a store vectors of another embedder; gives their number.

    If it is broken off, at any point, the same call goes on where it stopped. Until the switch at
    the end the store works as ever with its old embedder; what is written meanwhile is caught up.
    Stores that are open with the old embedder refuse to work after the switch. Nothing is done
    where the vectors are of this embedder already. Of one store, run one at a time.

    Args:
        location: The folder or the address of the server.
        embedder: What the store is opened with from then on.
        collection: Beginning of the collections' names.
        batch: How many records are copied at once; as many are held in memory.
        progress: Called after each step.

    Raises:
        ConfigurationError: A re-embedding for another embedder was begun and not completed.
        RecordStoreError: There is no such store, it is of a newer format, or it failed.
        ValueError: `batch` is below 1.
    """
    if batch < 1:
        raise ValueError(f"batch must be at least 1, not {batch!r}.")
    work = Reembedding(location, collection)
    steps = work.steps(embedder, batch)
    total = 0
    try:
        while (now := await asyncio.to_thread(work.step, steps)) is not None:
            total = now.total
            if progress is not None:
                progress(now)
    finally:
        await asyncio.to_thread(work.close)
    return total


async def plan_reembedding(
    location: Path | str, embedder: Embedder, *, collection: str = "coag"
) -> ReembedPlan:
    """What `reembed` would have to do; nothing is changed.

    Raises:
        ConfigurationError: A re-embedding for another embedder was begun and not completed.
        RecordStoreError: There is no such store, it is of a newer format, or it failed.
    """
    work = Reembedding(location, collection)
    try:
        return await asyncio.to_thread(work.plan, embedder)
    finally:
        await asyncio.to_thread(work.close)


async def unfinished_reembedding(
    location: Path | str, *, collection: str = "coag"
) -> ReembedUnfinished | None:
    """How far a re-embedding came that was begun and is not done; None if there is none.

    Raises:
        RecordStoreError: There is no such store, or it failed.
    """
    work = Reembedding(location, collection)
    try:
        return await asyncio.to_thread(work.unfinished)
    finally:
        await asyncio.to_thread(work.close)


async def abandon_reembedding(location: Path | str, *, collection: str = "coag") -> bool:
    """Removes what an unfinished re-embedding copied; gives whether there was one.

    Raises:
        RecordStoreError: There is no such store, it failed, or the re-embedding came too far: its
            switch has begun and can only be completed.
    """
    work = Reembedding(location, collection)
    try:
        return await asyncio.to_thread(work.abandon)
    finally:
        await asyncio.to_thread(work.close)
