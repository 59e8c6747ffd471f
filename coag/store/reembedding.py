"""Embedding a store anew with another embedder."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from coag.errors import ConfigurationError, RecordStoreError
from coag.schema import MemoryKind

from .chroma import (
    ROW_PARTS,
    Client,
    Collection,
    check_format,
    chroma_errors,
    client_at,
    close_client,
    collection_named,
    is_made_with,
    live_name,
    make_collection,
    new_metadata,
    next_name,
    old_name,
    write_lock,
)
from .embedders import Embedder, text_vectors
from .location import Server, holds_records, parse_location

# ---- What is told of a re-embedding: its plan, its progress, and one that is not done ----


@dataclass(frozen=True, slots=True, kw_only=True)
class ReembedProgress:
    """How far a re-embedding came."""

    stage: Literal["copying", "switched"]
    """`switched` is said once, at the end: the new vectors are in use."""
    done: int
    """Records that have their new vectors."""
    total: int
    """Records that there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReembedPlan:
    """What a re-embedding has to do, as found without changing anything."""

    state: Literal["needed", "half_way", "done"]
    """`done`: the records have vectors of this embedder, and nothing is left to do."""
    made_with: tuple[str, ...]
    """Names of the embedders whose vectors are in use."""
    embedder: str
    """Name of the one that was asked for."""
    records: int
    """Records that are there."""
    left: int
    """Records that have no vectors of this embedder yet."""
    seconds: float
    """About how long it takes, as measured on some of the records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReembedUnfinished:
    """A re-embedding that was begun and is not done."""

    embedder: str
    """Name of the embedder whose vectors the records are getting."""
    done: int
    """Records that have them."""
    records: int
    """Records that are there."""


# ---- How the records of one kind get into a collection with other vectors, step by step ----
#
# All of it can be broken off anywhere and begun anew: what to do next is seen from the
# collections alone. Every function blocks.


_MOST_CHARACTERS = 4_000_000
"""About so many characters of text are written in one call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The records of one kind on their way into a collection with other vectors."""

    kind: MemoryKind
    source: Collection
    """Where they are read and, until the end, written."""
    target: Collection
    """Where they are copied to, in the order in which they arrived at the source."""
    embedder: Embedder
    """What makes the vectors of the target."""
    batch: int
    """At most so many records are held at once."""
    location: Path | Server
    """Named in errors."""

    def in_line(self) -> Iterator[int]:
        """Makes the target hold what the source holds; gives the number done after each batch.

        Rows that are there already are compared and not embedded again. Where the source is
        written to meanwhile, another pass is needed.
        """
        done = 0
        while True:
            page = self._rows(self.source, done, self.batch)
            ids: list[str] = page["ids"]
            if not ids:
                break
            held = self._aligned(ids, done)
            pairs = zip(page["metadatas"], held["metadatas"], strict=False)
            changed = [one for one, (new, old) in zip(ids, pairs, strict=False) if new != old]
            self._rewrite(changed, dict(zip(held["ids"], held["metadatas"], strict=True)))
            self._copy(ids[len(held["ids"]) :])
            done += len(ids)
            yield done
        while surplus := self._rows(self.target, done, self.batch)["ids"]:
            self._drop(surplus)

    def _rows(self, collection: Collection, first: int, most: int) -> Mapping[str, Any]:
        with chroma_errors(self.location):
            return collection.get(limit=most, offset=first, include=["metadatas"])

    def _aligned(self, ids: Sequence[str], first: int) -> Mapping[str, Any]:
        """What the target holds in these places, once all that does not belong there is removed."""
        while True:
            held = self._rows(self.target, first, len(ids))
            there: list[str] = held["ids"]
            wrong = next((n for n, one in enumerate(there) if one != ids[n]), None)
            if wrong is None:
                return held
            strangers = there[wrong:]
            if ids[wrong] in strangers:
                strangers = strangers[: strangers.index(ids[wrong])]
            self._drop(strangers)

    def _drop(self, ids: list[str]) -> None:
        with chroma_errors(self.location):
            self.target.delete(ids=ids)

    def _copy(self, ids: Sequence[str]) -> None:
        for rows in self._read(ids):
            vectors = text_vectors(self.embedder, rows["documents"])
            with chroma_errors(self.location):
                self.target.add(**rows, embeddings=vectors.tolist())

    def _rewrite(self, ids: Sequence[str], held: Mapping[str, Mapping[str, Any]]) -> None:
        """Writes anew what changed at the source; Chroma keeps keys of which nothing is said."""
        for rows in self._read(ids):
            vectors = text_vectors(self.embedder, rows["documents"])
            told = zip(rows["ids"], rows["metadatas"], strict=True)
            rows["metadatas"] = [{**dict.fromkeys(held[one]), **new} for one, new in told]
            with chroma_errors(self.location):
                self.target.update(**rows, embeddings=vectors.tolist())

    def _read(self, ids: Sequence[str]) -> Iterator[dict[str, list[Any]]]:
        """Rows of the source in this order, in portions that fit one call, without those gone."""
        if not ids:
            return
        with chroma_errors(self.location):
            found = self.source.get(ids=list(ids), include=list(ROW_PARTS))
        rows = zip(found["ids"], found["documents"], found["metadatas"], strict=True)
        by_id = {row[0]: row for row in rows}
        portion: list[tuple[str, str, Mapping[str, Any]]] = []
        size = 0
        for one in ids:
            if one not in by_id:
                continue
            if portion and size + len(by_id[one][1]) > _MOST_CHARACTERS:
                yield _columns(portion)
                portion, size = [], 0
            portion.append(by_id[one])
            size += len(by_id[one][1])
        if portion:
            yield _columns(portion)


def _columns(rows: Sequence[tuple[str, str, Mapping[str, Any]]]) -> dict[str, list[Any]]:
    return {
        "ids": [row[0] for row in rows],
        "documents": [row[1] for row in rows],
        "metadatas": [row[2] for row in rows],
    }


_SAMPLE = 100
"""How many records are embedded to tell how long all take."""

_SECONDS_TO_WRITE = 0.002
"""About how long Chroma takes to write a record, besides what its embedding takes."""


_COPY_OF = "copy_of"
"""Key of a copy's metadata with the id of the collection that it takes the place of."""

"""The file by which a folder of Chroma is known."""


@dataclass(frozen=True, slots=True)
class _Kept:
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


class Reembedding:
    """The collections of a place, for as long as one call works with them."""

    def __init__(self, location: Path | str, collection: str) -> None:
        self._location = parse_location(location)
        self._collection = collection
        self._client: Client | None = None
        self._turn = threading.Lock()
        """Held during a step: who was cancelled waits for its end."""

    def step(self, steps: Iterator[ReembedProgress]) -> ReembedProgress | None:
        """The next of some steps; None at their end."""
        with self._turn:
            return next(steps, None)

    def close(self) -> None:
        """Lets go of the client."""
        with self._turn:
            if self._client is not None:
                close_client(self._client)

    def plan(self, embedder: Embedder) -> ReembedPlan:
        """See `plan_reembedding`."""
        found = self._found(embedder)
        stored = [one.source for one in found if one.source is not None]
        sources = [one for one in stored if not is_made_with(one, embedder)]
        copies = [one.next for one in found if one.next is not None]
        with chroma_errors(self._location):
            records = sum(one.count() for one in stored)
            left = sum(one.count() for one in sources) - sum(one.count() for one in copies)
        begun = bool(copies) or any(one.old is not None for one in found)
        state = "half_way" if begun else "needed" if sources else "done"
        left = max(0, left)
        return ReembedPlan(
            state=state,
            made_with=tuple(sorted({_made_by(one) for one in stored})),
            embedder=embedder.name,
            records=records,
            left=left,
            seconds=left * self._seconds_each(sources, embedder) if left else 0.0,
        )

    def unfinished(self) -> ReembedUnfinished | None:
        """See `unfinished_reembedding`."""
        client = self._connected()
        found = [self._of_kind(client, kind) for kind in MemoryKind]
        begun = [one.target for one in found if one.target is not None]
        if not begun:
            return None
        stored = [one.source for one in found if one.source is not None]
        finished = [one.live for one in found if one.target is None and one.live is not None]
        embedder = _made_by(begun[0])
        done = [*begun, *(one for one in finished if _made_by(one) == embedder)]
        records = sum(map(self._counted, stored))
        return ReembedUnfinished(
            embedder=embedder, done=sum(map(self._counted, done)), records=records
        )

    def _seconds_each(self, sources: list[Collection], embedder: Embedder) -> float:
        with chroma_errors(self._location):
            samples = [one.get(limit=_SAMPLE, include=["documents"]) for one in sources]
        texts: list[str] = [text for sample in samples for text in sample["documents"]]
        text_vectors(embedder, texts[:1])  # what loading takes is not counted
        began = time.perf_counter()
        text_vectors(embedder, texts)
        return (time.perf_counter() - began) / max(1, len(texts)) + _SECONDS_TO_WRITE

    def abandon(self) -> bool:
        """See `abandon_reembedding`."""
        client = self._connected()
        with write_lock(self._location):
            found = [self._of_kind(client, kind) for kind in MemoryKind]
            begun = [one for one in found if one.next is not None]
            if any(one.live is None for one in begun):
                raise RecordStoreError(
                    f"The re-embedding at {self._location} has begun to switch and cannot be "
                    "abandoned. Complete it: `coag memory reembed`."
                )
            for one in begun:
                with chroma_errors(self._location):
                    client.delete_collection(next_name(self._collection, one.kind))
        return bool(begun)

    def steps(self, embedder: Embedder, batch: int) -> Iterator[ReembedProgress]:
        """See `reembed`; nothing is held between two steps, the switch is one."""
        moves: list[Move] = []
        done, others = 0, 0
        for one in self._found(embedder):
            self._clear_away(one)
            move = self._move(one, embedder, batch)
            if move is not None:
                moves.append(move)
            elif one.source is not None:
                others += self._counted(one.source)
        for move in moves:
            goal = self._counted(move.source)  # what comes later is caught up when all is switched
            for copied in move.in_line():
                total = sum(self._counted(one.source) for one in moves)
                now = min(total, done + copied)
                yield ReembedProgress(stage="copying", done=others + now, total=others + total)
                if copied >= goal:
                    break
            done += goal
        total = others + self._switched(moves)
        yield ReembedProgress(stage="switched", done=total, total=total)

    def _switched(self, moves: list[Move]) -> int:
        """Puts the copies in the place of what they are copies of; gives how many there are.

        Writers of other processes look, after each write, whether theirs is still the collection
        in use: from the renaming on, nothing that would be missed here is acknowledged.
        """
        with write_lock(self._location):
            for move in moves:
                self._rename(move.source, old_name(self._collection, move.kind))
            for move in moves:
                for _ in move.in_line():
                    pass
            for move in moves:
                self._rename(move.target, live_name(self._collection, move.kind))
            for move in moves:
                self._remove(old_name(self._collection, move.kind))
        return sum(self._counted(move.target) for move in moves)

    def _rename(self, collection: Collection, name: str) -> None:
        if collection.name != name:
            with chroma_errors(self._location):
                collection.modify(name=name)

    def _remove(self, name: str) -> None:
        with chroma_errors(self._location):
            self._connected().delete_collection(name)

    def _clear_away(self, one: _Kept) -> None:
        """Removes what was left of a switch that was broken off right before its end."""
        if one.live is None or one.old is None:
            return
        if (one.live.metadata or {}).get(_COPY_OF) != str(one.old.id):
            raise RecordStoreError(
                f"At {self._location} there are collections {one.live.name!r} and "
                f"{one.old.name!r}, and the one is no copy of the other. Keep a copy of both and "
                "remove the one that you do not need; nothing was changed."
            )
        self._remove(one.old.name)

    def _move(self, one: _Kept, embedder: Embedder, batch: int) -> Move | None:
        """What is to be done for a kind; None if it has nothing, or such vectors already."""
        source, target = one.source, one.next
        if source is None or is_made_with(source, embedder):
            return None
        if target is None:
            metadata = {**new_metadata(embedder), _COPY_OF: str(source.id)}
            with chroma_errors(self._location):
                name = next_name(self._collection, one.kind)
                target = make_collection(self._connected(), name, metadata)
        return Move(
            kind=one.kind,
            source=source,
            target=target,
            embedder=embedder,
            batch=batch,
            location=self._location,
        )

    def _found(self, embedder: Embedder) -> list[_Kept]:
        """What there is of each kind; refuses what this cannot be done with."""
        client = self._connected()
        found = [self._of_kind(client, kind) for kind in MemoryKind]
        if all(one.source is None for one in found):
            raise RecordStoreError(
                f"There are no collections {self._collection!r} at {self._location} to re-embed."
            )
        for one in found:
            if one.source is not None:
                check_format(one.source)
            if one.next is not None and not is_made_with(one.next, embedder):
                raise ConfigurationError(
                    f"The store at {self._location} is being re-embedded for embedder "
                    f"{_made_by(one.next)!r}, not {embedder.name!r}. Complete that first, or "
                    "abandon it."
                )
        return found

    def _of_kind(self, client: Client, kind: MemoryKind) -> _Kept:
        names = (name(self._collection, kind) for name in (live_name, next_name, old_name))
        with chroma_errors(self._location):
            live, copy, old = (collection_named(client, name) for name in names)
        return _Kept(kind, live, copy, old)

    def _connected(self) -> Client:
        if self._client is None:
            if isinstance(self._location, Path) and not holds_records(self._location):
                raise RecordStoreError(f"There is no store of records at {self._location}.")
            with chroma_errors(self._location):
                self._client = client_at(self._location)
        return self._client

    def _counted(self, collection: Collection) -> int:
        with chroma_errors(self._location):
            return collection.count()


def _made_by(collection: Collection) -> str:
    """Name of the embedder whose vectors a collection holds."""
    return str((collection.metadata or {}).get("embedder"))


# ---- Giving the records of a Chroma other vectors: resumable, and nothing is lost or doubled ----
#
# The records of each kind are copied into a collection beside the one in use (`NAME.next`), which
# stays as it is and is read and written as ever. Once all are there, the switch is made: the ones
# in use are renamed (`NAME.old`), so that no write into them is acknowledged any more; what was
# written meanwhile is caught up; the new ones take the names in use; the old ones are removed.
# Which collections there are tells how far it came, so that whoever repeats it goes on from
# there.


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
