"""The collections of a store while they are re-embedded: which there are, and what comes next."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from coag.errors import ConfigurationError, RecordStoreError
from coag.schema import MemoryKind

from ._chroma_client import client_at, collection_named, make_collection
from ._chroma_names import is_made_with, live_name, new_metadata, next_name, old_name
from ._chroma_types import Client, Collection, check_format, chroma_errors, close_client, write_lock
from ._embedders import Embedder
from ._location import holds_records, parse_location
from ._reembedding_steps import Move
from ._reembedding_told import ReembedPlan, ReembedProgress, ReembedUnfinished
from ._vectors import text_vectors

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
