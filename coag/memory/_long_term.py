"""Episodic and semantic memory of one agent, over a store of records."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from coag.errors import RecordStoreError
from coag.schema import (
    Clock,
    MemoryKind,
    Provenance,
    RecalledRecord,
    Record,
    Scalar,
    SystemClock,
    Written,
    record_id,
)
from coag.store import (
    SHORT_ID_LENGTH,
    RecordStore,
    Search,
    check_metadata,
    parse_where,
    ranked,
    short_id,
)


class RecallSource(Protocol):
    """A further memory that recall asks, e.g. somebody's AutoGen memory behind an adapter."""

    name: str

    async def recall(self, query: str, k: int) -> Sequence[RecalledRecord]:
        """At most k records for a query; it may raise, which does not break the recall."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What became of something to be remembered."""

    record: Record
    """The record as it is stored; the older one, if the text was known."""
    new: bool
    """Whether this changed what is remembered; false for what was known before."""

    def written(self) -> Written:
        """The line of the trace that says so."""
        return Written(
            at=self.record.created_at,
            cycle=self.record.provenance.cycle,
            what="record",
            id=self.record.id,
            content=self.record.model_dump(mode="json"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """What a query brought back."""

    records: tuple[RecalledRecord, ...] = ()
    """Best first, whatever memory they come from."""
    problems: tuple[str, ...] = ()
    """One sentence per memory that could not be asked."""


class LongTermMemory:
    """What one agent remembers: events and facts, superseded but never overwritten.

    Args:
        store: Where the records rest; closed by `close`.
        scope: Whose memory this is; records of other scopes are neither seen nor touched.
        clock: Tells when a record was made.
        sources: Further memories that recall asks.
        source_timeout: Seconds after which a further memory is left out.
    """

    def __init__(
        self,
        store: RecordStore,
        *,
        scope: str,
        clock: Clock | None = None,
        sources: Sequence[RecallSource] = (),
        source_timeout: float = 10.0,
    ) -> None:
        self.store = store
        self.scope = scope
        self.clock: Clock = clock or SystemClock()
        self.sources = tuple(sources)
        self.source_timeout = source_timeout

    async def remember(
        self,
        kind: MemoryKind,
        text: str,
        *,
        provenance: Provenance,
        type: str = "note",
        metadata: Mapping[str, Scalar] | None = None,
        supersedes: str | None = None,
    ) -> Remembered:
        """Stores a text; once this returns, it is kept.

        A text that is known already stays as it was first remembered. Remembering it again with
        the very same provenance counts as new: so does the repetition of an interrupted action.

        Args:
            kind: Episodic for what happened, semantic for what holds.
            text: What to remember.
            provenance: Where it comes from.
            type: The domain's own sort of record; a filter can ask for it.
            metadata: Values that a filter can ask for.
            supersedes: Id of the record whose place this one takes. A text that holds again
                becomes current again by superseding the one that had superseded it.

        Raises:
            ValueError: If the text is empty or the metadata cannot be kept.
            RecordStoreError: If the store cannot be reached or refuses.
        """
        text = text.strip()
        if not text:
            raise ValueError("There is nothing to remember: the text is empty.")
        check_metadata(metadata or {})
        record = Record(
            id=record_id(kind, self.scope, text),
            kind=kind,
            text=text,
            scope=self.scope,
            created_at=self.clock.now(),
            provenance=provenance,
            type=type,
            metadata=dict(metadata or {}),
        )
        known = await self.store.get([record.id])
        if supersedes is not None:
            stored = await self.store.supersede(supersedes, record)
        elif known:
            stored = known[0]
        else:
            await self.store.add([record])
            stored = record
        new = stored not in known or stored.provenance == provenance
        return Remembered(record=stored, new=new)

    async def recall(
        self,
        query: str,
        *,
        kind: MemoryKind | None = None,
        k: int = 5,
        where: Mapping[str, Any] | None = None,
        episodic_where: Mapping[str, Any] | None = None,
        min_score: float | None = None,
    ) -> Recall:
        """The k records most similar to a query, from every memory; an empty query gives none.

        Args:
            query: What to look for.
            kind: Only this memory; None for both.
            k: At most so many records in all.
            where: A filter, see `coag.store.parse_where`; further sources are not filtered.
            episodic_where: A filter for episodic memory only, besides `where`.
            min_score: Less similar records are left out; None for the embedder's minimum.

        Raises:
            ValueError: If a filter is malformed or a number out of range.
        """
        kinds = tuple(MemoryKind) if kind is None else (kind,)
        searches = [
            Search(
                text=query,
                kind=one,
                k=k,
                scopes=(self.scope,),
                where=_both(where, episodic_where if one is MemoryKind.EPISODIC else None),
                min_score=min_score,
            )
            for one in kinds
        ]
        for search in searches:
            parse_where(search.where)
        if not query.strip():
            return Recall()
        answers = await asyncio.gather(
            *(self._search(search) for search in searches),
            *(self._ask(source, query, k) for source in self.sources),
        )
        hits = [hit for answer in answers for hit in answer.records]
        wanted = [hit for hit in hits if hit.record.kind in kinds]
        best = {hit.record.id: hit for hit in reversed(ranked(wanted, len(wanted)))}
        problems = tuple(problem for answer in answers for problem in answer.problems)
        return Recall(records=tuple(ranked(best.values(), k)), problems=problems)

    async def find(self, kind: MemoryKind, name: str) -> Record | None:
        """The record of this scope with an id or its short form, or None."""
        hits = await self.store.search(
            Search(
                text=None,
                kind=kind,
                k=10,
                scopes=(self.scope,),
                where={"short_id": short_id(name)},
                include_superseded=True,
            )
        )
        found = [hit.record for hit in hits if hit.record.id.startswith(name)]
        return found[0] if len(found) == 1 and len(name) >= SHORT_ID_LENGTH else None

    async def close(self) -> None:
        """Closes the store."""
        await self.store.close()

    async def _search(self, search: Search) -> Recall:
        try:
            return Recall(records=tuple(await self.store.search(search)))
        except RecordStoreError as error:
            return Recall(problems=(f"{search.kind.value} memory: {error}",))

    async def forget(self) -> int:
        """Removes every record of this scope for good, and says how many there were.

        For whoever owns what is remembered; an agent itself supersedes and never deletes.

        Raises:
            RecordStoreError: The store cannot be reached.
        """
        return await self.store.forget(self.scope)

    async def _ask(self, source: RecallSource, query: str, k: int) -> Recall:
        try:
            async with asyncio.timeout(self.source_timeout):
                return Recall(records=tuple(await source.recall(query, k))[:k])
        except TimeoutError:
            return Recall(problems=(f"{source.name}: no answer within {self.source_timeout:g} s.",))
        # A source is somebody else's code and may raise anything; what it raised is handed to
        # the caller, who writes it to the trace.
        except Exception as error:
            return Recall(problems=(f"{source.name}: {error!r}",))


def _both(
    one: Mapping[str, Any] | None, other: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    if one is None or other is None:
        return other if one is None else one
    return {"$and": [one, other]}
