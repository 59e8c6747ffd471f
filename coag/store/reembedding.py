"""Re-embedding: the records of a Chroma are exported into collections with other vectors.

Each kind's records are copied into a collection beside the one in use (`NAME.next`), which is read
and written meanwhile as ever. Then the switch is made: the collections in use are renamed
(`NAME.old`), so that no write into them is acknowledged any more; what was written meanwhile is
copied; the new ones take the names in use; the old ones are removed. The collections that exist
show how far it came, so the same call, repeated after an interruption, continues.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from coag.errors import ConfigurationError, RecordStoreError
from coag.schema import MemoryKind

from .chroma_client import (
    ROW_PARTS,
    Client,
    Collection,
    check_format,
    chroma_errors,
    client_at,
    close_client,
    collection_name,
    collection_named,
    is_made_with,
    make_collection,
    metadata_of,
    write_lock,
)
from .embedders import Embedder, text_vectors
from .location import holds_records, parse_location
from .records import portions, slices

BATCH = 250
"""How many records are copied in one step, and held in memory, unless another number is given."""
_MOST_CHARACTERS = 4_000_000
"""About so many characters of text are written in one call."""
_SAMPLE = 100
"""How many records are embedded to estimate how long all take."""
_SECONDS_TO_WRITE = 0.002
"""About how long Chroma takes to write a record, besides what its embedding takes."""
_COPY_OF = "copy_of"
"""Key of a copy's metadata with the id of the collection that it takes the place of."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReembedProgress:
    """How far a re-embedding came."""

    stage: Literal["copying", "switched"]
    """`switched` comes once, at the end: the new vectors are in use."""
    done: int
    """Records that have their new vectors."""
    total: int
    """Records that there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReembedPlan:
    """What a re-embedding has to do, as found without changing anything."""

    state: Literal["needed", "half_way", "done"]
    """`done`: the records have vectors of this embedder, and nothing remains to be done."""
    made_with: tuple[str, ...]
    """Names of the embedders whose vectors are in use."""
    embedder: str
    """Name of the embedder whose vectors the records are to get."""
    records: int
    left: int
    """Records that have no vectors of this embedder yet."""
    seconds: float
    """About how long it takes, as measured on some of the records."""

    @property
    def done(self) -> int:
        """Records that have vectors of this embedder."""
        return self.records - self.left


async def reembed(
    location: Path | str,
    embedder: Embedder,
    *,
    collection: str = "coag",
    batch: int = BATCH,
    progress: Callable[[ReembedProgress], None] | None = None,
) -> int:
    """Gives all records of a store vectors of another embedder; returns their number.

    If it is interrupted, at any point, the same call continues. Until the switch at the end the
    store works as ever with its old embedder; what is written meanwhile is copied too. Stores that
    are open with the old embedder refuse to work after the switch. Nothing is done where the
    vectors are of this embedder already. Of one store, run one at a time.

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
    work, total = _Reembedding(location, collection), 0
    steps = work.steps(embedder, batch)
    try:
        while (now := await asyncio.to_thread(work.locked, lambda: next(steps, None))) is not None:
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
    plan = await _done(location, collection, lambda work: work.plan(embedder))
    assert plan is not None  # it is for an embedder
    return plan


async def unfinished_reembedding(
    location: Path | str, *, collection: str = "coag"
) -> ReembedPlan | None:
    """A re-embedding that was begun and is not done, without an estimate; None if there is none.

    Raises:
        RecordStoreError: There is no such store, or it failed.
    """
    return await _done(location, collection, lambda work: work.plan(None))


async def abandon_reembedding(location: Path | str, *, collection: str = "coag") -> bool:
    """Removes what an unfinished re-embedding copied; returns whether there was one.

    Raises:
        RecordStoreError: There is no such store, it failed, or the re-embedding came too far: its
            switch has begun and can only be completed.
    """
    return await _done(location, collection, lambda work: work.abandon())


async def _done(location: Path | str, collection: str, what: Callable[[_Reembedding], _T]) -> _T:
    work = _Reembedding(location, collection)
    try:
        return await asyncio.to_thread(work.locked, lambda: what(work))
    finally:
        await asyncio.to_thread(work.close)


@dataclass(frozen=True, slots=True)
class _Collections:
    """The collections of one kind."""

    kind: MemoryKind
    live: Collection | None
    next: Collection | None
    old: Collection | None

    @property
    def source(self) -> Collection | None:
        """Where the records are."""
        return self.old if self.live is None else self.live

    @property
    def target(self) -> Collection | None:
        """Where they get their new vectors; None if that was not begun."""
        return self.next if self.old is None or self.live is None else self.live


class _Reembedding:
    """The collections of a place, for as long as one call works with them. Every method blocks."""

    def __init__(self, location: Path | str, collection: str) -> None:
        self._location = parse_location(location)
        self._collection = collection
        self._client: Client | None = None
        self._turn = threading.Lock()
        """Held during a step: a call that is cancelled waits for its end before it closes."""

    def locked(self, step: Callable[[], _T]) -> _T:
        """Does one step."""
        with self._turn:
            return step()

    def close(self) -> None:
        """Releases the client."""
        with self._turn:
            if self._client is not None:
                close_client(self._client)

    def plan(self, embedder: Embedder | None) -> ReembedPlan | None:
        """What is to be done for an embedder, or for None what was begun and is not done."""
        found = self._found() if embedder is None else self._checked(embedder)
        stored = [one.source for one in found if one.source is not None]
        begun = [one.target for one in found if one.target is not None]
        if embedder is None and not begun:
            return None
        name = embedder.name if embedder is not None else _made_by(begun[0])
        others = [one for one in stored if _made_by(one) != name]
        finished = [one for one in stored if _made_by(one) == name and one not in begun]
        records = self._count(stored)
        left = max(0, records - self._count([*begun, *finished]))
        seconds = self._seconds_each(others, embedder) if embedder is not None and left else 0.0
        return ReembedPlan(
            state="half_way" if begun else "needed" if others else "done",
            made_with=tuple(sorted(set(map(_made_by, stored)))),
            embedder=name,
            records=records,
            left=left,
            seconds=left * seconds,
        )

    def abandon(self) -> bool:
        with write_lock(self._location):
            begun = [one for one in self._found() if one.next is not None]
            if any(one.live is None for one in begun):
                raise RecordStoreError(
                    f"The re-embedding at {self._location} has begun to switch and cannot be "
                    "abandoned. Complete it: `coag memory reembed`."
                )
            for one in begun:
                self._remove(collection_name(self._collection, one.kind, ".next"))
        return bool(begun)

    def steps(self, embedder: Embedder, batch: int) -> Iterator[ReembedProgress]:
        """The steps of `reembed`; nothing is locked between two of them, the switch is one."""
        found = self._checked(embedder)
        for one in found:
            self._clear_away(one)
        moving = [
            (one.kind, source, one.next or self._made(one.kind, source, embedder))
            for one in found
            if (source := one.source) is not None and not is_made_with(source, embedder)
        ]
        sources = [source for _, source, _ in moving]
        others = [one.source for one in found if one.source not in (None, *sources)]
        done = self._count(others)
        for _, source, target in moving:
            copied = 0
            for copied in self._copied(source, target, embedder, batch):
                total = self._count([*others, *sources])
                yield ReembedProgress(stage="copying", done=min(total, done + copied), total=total)
            done += copied
        with write_lock(self._location):
            # Writers of other processes check after each write that theirs is still the collection
            # in use: from the renaming on, none is acknowledged that would be missed here.
            for kind, source, _ in moving:
                self._rename(source, collection_name(self._collection, kind, ".old"))
            for _, source, target in moving:
                for _ in self._copied(source, target, embedder, batch):
                    pass
            for kind, _, target in moving:
                self._rename(target, collection_name(self._collection, kind))
            for kind, _, _ in moving:
                self._remove(collection_name(self._collection, kind, ".old"))
        total = self._count([*others, *(target for _, _, target in moving)])
        yield ReembedProgress(stage="switched", done=total, total=total)

    def _copied(
        self, source: Collection, target: Collection, embedder: Embedder, batch: int
    ) -> Iterator[int]:
        """Makes the target hold what the source holds, in its order; yields how many rows it does.

        Rows that are there already are compared, and not embedded again.
        """
        with self._errors():
            ids: list[str] = source.get(include=[])["ids"]
            held: list[str] = target.get(include=[])["ids"]
        kept, surplus = 0, list[str]()
        for one in held:
            if kept < len(ids) and one == ids[kept]:
                kept += 1
            else:
                surplus.append(one)
        for some in slices(surplus, batch):
            with self._errors():
                target.delete(ids=some)
        done = 0
        for some in slices(ids, batch):
            with self._errors():
                there = source.get(ids=some, include=ROW_PARTS)
                copies = target.get(ids=some, include=["metadatas"])
            rows = zip(there["ids"], there["documents"], there["metadatas"], strict=True)
            by_id: dict[str, tuple[str, str, Mapping[str, Any]]] = {row[0]: row for row in rows}
            copied = dict(zip(copies["ids"], copies["metadatas"], strict=True))
            changed = [n for n in copied if n in by_id and by_id[n][2] != copied[n]]
            if changed:  # Chroma keeps keys of which nothing is said
                new = [{**dict.fromkeys(copied[name]), **by_id[name][2]} for name in changed]
                with self._errors():
                    target.update(ids=changed, metadatas=new)
            missing = [by_id[name] for name in some if name in by_id and name not in copied]
            for portion in portions(
                missing, lambda row: len(row[1]), most=batch, room=_MOST_CHARACTERS
            ):
                new_ids, texts, metadatas = (list(column) for column in zip(*portion, strict=True))
                vectors = text_vectors(embedder, texts).tolist()
                with self._errors():
                    target.add(
                        ids=new_ids, documents=texts, metadatas=metadatas, embeddings=vectors
                    )
            done += len(some)
            yield done

    def _made(self, kind: MemoryKind, source: Collection, embedder: Embedder) -> Collection:
        name = collection_name(self._collection, kind, ".next")
        with self._errors():
            return make_collection(self._connected(), name, embedder, **{_COPY_OF: str(source.id)})

    def _seconds_each(self, sources: list[Collection], embedder: Embedder) -> float:
        with self._errors():
            samples = [one.get(limit=_SAMPLE, include=["documents"]) for one in sources]
        texts: list[str] = [text for sample in samples for text in sample["documents"]]
        text_vectors(embedder, texts[:1])  # what loading takes is not counted
        began = time.perf_counter()
        text_vectors(embedder, texts)
        return (time.perf_counter() - began) / max(1, len(texts)) + _SECONDS_TO_WRITE

    def _clear_away(self, one: _Collections) -> None:
        """Removes what remains of a switch that was interrupted right before its end."""
        if one.live is None or one.old is None:
            return
        if metadata_of(one.live).get(_COPY_OF) != str(one.old.id):
            raise RecordStoreError(
                f"At {self._location} there are collections {one.live.name!r} and "
                f"{one.old.name!r}, and the one is no copy of the other. Keep a copy of both and "
                "remove the one that you do not need; nothing was changed."
            )
        self._remove(one.old.name)

    def _checked(self, embedder: Embedder) -> list[_Collections]:
        """The collections of each kind, if they can be re-embedded for this embedder."""
        found = self._found()
        sources = [one.source for one in found if one.source is not None]
        if not sources:
            raise RecordStoreError(
                f"There are no collections {self._collection!r} at {self._location} to re-embed."
            )
        for source in sources:
            check_format(source)
        for begun in (one.next for one in found if one.source is not None):
            if begun is not None and not is_made_with(begun, embedder):
                raise ConfigurationError(
                    f"The store at {self._location} is being re-embedded for embedder "
                    f"{_made_by(begun)!r}, not {embedder.name!r}. Complete that first, or "
                    "abandon it."
                )
        return found

    def _found(self) -> list[_Collections]:
        client, found = self._connected(), list[_Collections]()
        with self._errors():
            for kind in MemoryKind:
                live, copy, old = (
                    collection_named(client, collection_name(self._collection, kind, role))
                    for role in ("", ".next", ".old")
                )
                found.append(_Collections(kind, live, copy, old))
        return found

    def _connected(self) -> Client:
        if self._client is None:
            if isinstance(self._location, Path) and not holds_records(self._location):
                raise RecordStoreError(f"There is no store of records at {self._location}.")
            with self._errors():
                self._client = client_at(self._location)
        return self._client

    def _count(self, collections: Iterable[Collection]) -> int:
        with self._errors():
            return sum(one.count() for one in collections)

    def _rename(self, collection: Collection, name: str) -> None:
        if collection.name != name:
            with self._errors():
                collection.modify(name=name)

    def _remove(self, name: str) -> None:
        with self._errors():
            self._connected().delete_collection(name)

    def _errors(self) -> AbstractContextManager[None]:
        return chroma_errors(self._location)


def _made_by(collection: Collection) -> str:
    """Name of the embedder whose vectors a collection holds."""
    return str(metadata_of(collection).get("embedder"))
