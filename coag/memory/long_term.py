"""Episodic and semantic memory of one agent, over a store of records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from coag.errors import RecordStoreError
from coag.schema import (
    Clock,
    Event,
    Fact,
    Imported,
    MemoryKind,
    Provenance,
    Record,
    Scalar,
    SparseValue,
    SystemClock,
    Written,
)
from coag.store import (
    DEFAULT_RANKING,
    InMemoryStore,
    Ranking,
    RecordStore,
    Search,
    StoreConfig,
    found_by_id,
)

from .dynamics import MemoryDynamics, MemoryDynamicsConfig, read_all
from .procedural import ProceduralMemory
from .recall import Recall, Recaller, RecallSource
from .retraction import Revocation, chain_of, forgotten, retracted
from .scopes import Scopes, lock_of, scopes_in
from .write_policy import Remembered, ToRemember, record_of
from .writing import Given, in_batches, written


class LongTermMemory:
    """What one agent remembers: events and facts, superseded but never overwritten.

    Args:
        store: Where the records are; closed by `close`.
        scope: Whose memory this is, or `Scopes` if it also reads or writes those of others; records
            of scopes that are not named are neither seen nor touched.
        clock: Tells when a record was made.
        sources: Further memories that recall asks.
        source_timeout: Seconds after which a further memory is left out.
        ranking: What counts when records are recalled; None for the similarity of meaning alone.
        dynamics: How it changes with time, mood and use, if it does.
    """

    def __init__(
        self,
        store: RecordStore,
        *,
        scope: str | Scopes,
        clock: Clock | None = None,
        sources: Sequence[RecallSource] = (),
        source_timeout: float = 10.0,
        ranking: Ranking | None = DEFAULT_RANKING,
        dynamics: MemoryDynamics | None = None,
    ) -> None:
        self.store = store
        self.scopes = scope if isinstance(scope, Scopes) else Scopes(own=scope)
        self.scope = self.scopes.own
        self.clock: Clock = dynamics.keeping_time(clock) if dynamics else clock or SystemClock()
        self.sources = tuple(sources)
        self.source_timeout = source_timeout
        self.ranking = ranking
        self.dynamics = dynamics
        self.writing = lock_of(store)
        """Held while something is looked up and then written, by every memory over this place."""

    def within(self, scope: str) -> LongTermMemory:
        """The same memory for one person, by a `user_scope`: it writes that one alone.

        What this memory itself reads and writes is shared: everybody's agent reads it.

        Raises:
            ConfigurationError: If this memory reads a person's scope by itself.
        """
        one = copy(self)
        one.scopes = self.scopes.narrowed(scope)
        one.scope = one.scopes.own
        return one

    async def reaching_all(self) -> LongTermMemory:
        """The same memory, over what is everybody's; for its owner, never an agent."""
        one = copy(self)
        one.scopes = Scopes(own=self.scope, writes=await scopes_in(_whole(self)))
        return one

    def shared(self) -> LongTermMemory:
        """The same memory while it is not known whom it serves: what is everybody's.

        Raises:
            ConfigurationError: If this memory reads a person's scope by itself.
        """
        self.scopes.check_shared()
        return self

    async def remember(  # noqa: PLR0913 - what there is to say of a record
        self,
        kind: MemoryKind,
        text: str,
        *,
        provenance: Provenance,
        type: str = "note",
        metadata: Mapping[str, Scalar] | None = None,
        sensed: bool = False,
        supersedes: str | None = None,
        event: Event | None = None,
        fact: Fact | None = None,
        derived_from: Sequence[str] = (),
        scope: str | None = None,
    ) -> Remembered:
        """Stores a text durably.

        A known text stays as it was first remembered and gets one more origin; so does one that
        says the same in all but form, or has the same value of the same fact. The very same
        statement, as of an interrupted action that is repeated, counts as new.

        A fact takes the place of those on the same subject and attribute that have another value
        and are trusted no more; it is kept beside those trusted more, each naming the other.

        What there is to say of it is said at the fields of `ToRemember`; `scope` is whose memory it
        becomes: None for the own one, else one of `scopes.writes`.

        Raises:
            ValueError: If the text is empty, too long or shows nothing, the metadata cannot be
                kept, a record to derive from is not there, or the scope may not be written.
        """
        wish = ToRemember(
            kind=kind,
            text=text,
            provenance=provenance,
            type=type,
            metadata=metadata or {},
            sensed=sensed,
            supersedes=supersedes,
            event=event,
            fact=fact,
            derived_from=derived_from,
        )
        async with self.writing:
            one = record_of(wish, self.scopes.to_write(scope), self.clock), wish
            return (await _written(self, [one], look_around=True))[0]

    async def remember_all(
        self,
        texts: Iterable[ToRemember],
        *,
        scope: str | None = None,
        batch: int = 500,
        near_duplicates: bool = False,
    ) -> AsyncGenerator[tuple[Remembered, ...]]:
        """Stores many texts, by the rules of `remember`, many at a time.

        The results come in the order of the texts, a batch at a time, once that is stored. After a
        failure continue with the first text without a result: what is there stays as it is.

        Args:
            texts: What to remember; taken one batch after the other.
            scope: As for `remember`.
            batch: How many are written together, at most; two facts on one matter never are.
            near_duplicates: Whether to look for what says the same in all but form. That asks
                the store once for each text, and is as slow as remembering them one by one.

        Raises:
            ValueError: As for `remember`; of its batch nothing is written then, unless near
                duplicates are looked for. Or `batch` is below 1.
            RecordStoreError: If the store cannot be reached or refuses; says how many texts were
                written before. Of the batch a part may be.
        """
        if batch < 1:
            raise ValueError(f"batch must be at least 1, not {batch!r}.")
        target, done = self.scopes.to_write(scope), 0
        records = ((record_of(given, target, self.clock), given) for given in texts)
        for some in in_batches(records, batch):
            portions = [[one] for one in some] if near_duplicates else [some]
            results: list[Remembered] = []
            async with self.writing:
                try:
                    for each in portions:
                        results += await _written(self, each, look_around=near_duplicates)
                except RecordStoreError as error:
                    raise RecordStoreError(
                        f"{done} text(s) were remembered before this; of the next {len(some)} a "
                        "part may be. Continue with these: what is there already stays as it is. "
                        f"{error}"
                    ) from error
            done += len(some)
            yield tuple(results)

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

        Behind a record that another one contradicts comes that other one, besides the k. What
        does not hold now does not come. With dynamics the answer says how well each is kept, and
        that is a use of it; the same answer within a minute is one.

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
        search = Search(
            text=query,
            kind=MemoryKind.SEMANTIC,
            k=k,
            scopes=self.scopes.readable,
            where=where,
            min_score=min_score,
            ranking=self.ranking,
        )
        filters = [one for one in (where, episodic_where) if one is not None]
        empty = isinstance(self.store, InMemoryStore) and self.store.empty
        if empty and not filters and not self.sources:
            return Recall()  # as most agents' memory in RAM in every turn
        events = {"kind": MemoryKind.EPISODIC, "where": {"$and": filters} if filters else None}
        each = {MemoryKind.EPISODIC: replace(search, **events), MemoryKind.SEMANTIC: search}
        asking = Recaller(
            store=self.store,
            scopes=self.scopes.readable,
            sources=self.sources,
            source_timeout=self.source_timeout,
            clock=self.clock,
            dynamics=_at_work(self.dynamics),
        )
        return await asking.recall(list(each.values()) if kind is None else [each[kind]])

    async def find(self, kind: MemoryKind, name: str) -> Record | None:
        """The record with an id or its short form that may be read here, or None."""
        found = await found_by_id(_whole(self), self.scopes.readable, (kind,), name)
        return found[0] if len(found) == 1 else None

    async def history(self, name: str) -> tuple[Record, ...]:
        """The records before and after one in its chain, oldest first; see also `held_when`.

        Raises:
            ValueError: If it can be no id, or is the beginning of none or of several.
        """
        return await chain_of(_whole(self), self.scopes.readable, name)

    async def revoke(
        self, name: str, reason: str, *, procedures: ProceduralMemory | None = None
    ) -> Revocation:
        """Takes back a record and everything that was concluded from it.

        They are removed from every index; what they superseded holds again; records that they
        contradicted name them no longer; rules that depend on them are rolled back. An interrupted
        revocation can be repeated and completes. It reaches as far as this memory may write: what
        others concluded from the record they take back by revoking it themselves.

        Args:
            name: Id or unique short id of the record; a whole id of one that is gone is no error.
            reason: Why, in one sentence.
            procedures: The memory of procedures that depend on these records, if there is one.

        Raises:
            ValueError: The reason is empty, the name no id, or its scope may not be written.
        """
        return (await _retracted(self, name, None, reason, procedures=procedures))[0]

    async def forget_record(self, name: str) -> bool:
        """Removes one record for good, whatever was concluded from it; says whether it was there.

        What it superseded is then superseded by what superseded it, or holds again.

        Raises:
            ValueError: If the name is no id, or the record's scope may not be written.
        """
        async with self.writing:
            return await forgotten(_whole(self), self.scopes.writable, name)

    async def close(self) -> None:
        """Closes the store, and the file of the dynamics."""
        await self.store.close()
        if self.dynamics is not None:
            self.dynamics.close()

    async def forget(self, scope: str | None = None) -> int:
        """Removes every record of a scope for good, and says how many there were.

        For the owner of the memory; an agent itself supersedes and never deletes.

        Raises:
            ValueError: If the scope may not be written.
        """
        async with self.writing:
            return await _whole(self).forget(self.scopes.to_write(scope))


async def retract_source(
    memory: LongTermMemory,
    name: str | None,
    source: str,
    reason: str,
    *,
    procedures: ProceduralMemory | None = None,
) -> Revocation:
    """Takes back what a source stated; what nobody else stated is revoked.

    What an agent concluded after it was shown the source's text counts as stated by it, and with
    `None` so do the rules. What others state too is trusted as they are, and what was concluded
    from it no more than that. What these records had superseded, and is trusted more than they
    are now, holds again beside them. With `None`, what the source said and an observer has not
    noted yet leaves its buffer in the file of the dynamics. An interrupted retraction can be
    repeated and completes.

    Args:
        memory: It writes the records' scopes.
        name: Id or unique short id of the record; None for all that the source stated.
        source: Whose statements are taken back (`Provenance.source`), of whatever run.
        reason: Why, in one sentence.
        procedures: The memory of procedures that depend on what is revoked.

    Raises:
        ValueError: If the reason is empty, the source is none of the record's or stated nothing
            that may be written, or the name is no id of a record that may be.
    """
    done, _ = await _retracted(memory, name, source, reason, procedures=procedures)
    return done


async def would_revoke(
    memory: LongTermMemory, name: str | None, *, source: str | None = None
) -> tuple[Revocation, tuple[Record, ...]]:
    """A dry run of a revocation of records: nothing is changed. Procedures are not looked at.

    Args:
        memory: As for the revocation.
        name: As for `LongTermMemory.revoke`; None, with a source, as for `retract_source`.
        source: Whose statements would be taken back; None for everybody's, which is a revocation.

    Returns:
        The revocation that would be, and the records that it would change.

    Raises:
        ValueError: As for the revocation; or neither a record nor a source is named.
    """
    return await _retracted(memory, name, source, "This is a trial.", mode="dry_run")


async def revoke_again(memory: LongTermMemory, line: Written) -> None:
    """Repeats a revocation that a trace recorded; what is not there is passed over.

    Procedures are left alone: their versions have records of their own.

    Raises:
        LookupError: If the record of the trace holds no revocation.
        ValueError: As for the revocation.
    """
    reason, source = line.content["reason"], line.content.get("source")
    await _retracted(memory, line.id or None, source, reason, mode="repeat")


async def _retracted(
    memory: LongTermMemory, name: str | None, source: str | None, reason: str, **how: Any
) -> tuple[Revocation, tuple[Record, ...]]:
    at, scopes = memory.clock.now(), memory.scopes.writable
    waiting = None if memory.dynamics is None or how.get("mode") == "dry_run" else memory.dynamics
    async with memory.writing:
        if name is not None or source is None or waiting is None:
            return await retracted(_whole(memory), scopes, name, source, reason, at=at, **how)
        if waiting.file.said_by(source, scopes):  # though it is in no record yet
            how["mode"] = "repeat"
        done = await retracted(_whole(memory), scopes, None, source, reason, at=at, **how)
        waiting.file.said_by(source, scopes, remove=True)
        return done


def _at_work(dynamics: MemoryDynamics | None) -> MemoryDynamics | None:
    """The dynamics if anything in them is at work."""
    return dynamics if dynamics is not None and dynamics.acts else None


def _whole(memory: LongTermMemory) -> RecordStore:
    """All records of a memory, those that have faded, too."""
    return memory.store if memory.dynamics is None else memory.dynamics.whole(memory.store)


async def _written(
    memory: LongTermMemory, batch: Sequence[Given], *, look_around: bool
) -> list[Remembered]:
    """Writes records together; what they say again, or name, comes back from the archive first."""
    store, dynamics, readable = memory.store, memory.dynamics, memory.scopes.readable
    if dynamics is not None:
        named = (n for _, given in batch for n in (given.supersedes, *given.derived_from) if n)
        await dynamics.whole(store).bring_back_for([record for record, _ in batch], named)
    if (at_work := _at_work(dynamics)) is None:
        return await written(store, batch, readable, look_around=look_around)
    results, read = await asyncio.gather(  # the texts are read while the store embeds them
        written(store, batch, readable, look_around=look_around),
        read_all([record for record, _ in batch], at_work.appraise),
    )
    said_by = [record.provenance.trust for record, _ in batch]
    await at_work.encoded(results, said_by, store, read)
    return results


# ---- A long-term memory as a component ----


PROCEDURES_FILE = "procedures.json"
"""The file beside an agent's records that holds the procedures, with all their versions."""


class LongTermMemoryConfig(SparseValue):
    """The declarative form of a `LongTermMemory`: where its records are, never what they say."""

    SPARSE = frozenset({"dynamics"})

    scope: str
    """Whose memory it is."""
    store: StoreConfig = StoreConfig()
    clock: Imported | None = None
    """None for the machine's clock."""
    sources: tuple[Imported, ...] = ()
    """Further memories that recall asks."""
    source_timeout: float = 10.0
    """Seconds after which a further memory is left out."""
    reads: tuple[str, ...] = ()
    """Further scopes that it reads."""
    writes: tuple[str, ...] = ()
    """Further scopes that it reads and, where a call names one, writes."""
    ranking: Ranking | None = DEFAULT_RANKING
    """What counts when records are recalled; None for the similarity of meaning alone."""
    dynamics: MemoryDynamicsConfig | None = None
    """How it changes; None, and then not written down, if it does not."""

    @classmethod
    def of(cls, memory: LongTermMemory) -> LongTermMemoryConfig:
        """How to open a memory again; what one in RAM holds is not part of it.

        Raises:
            ConfigurationError: Its store, clock or a source cannot be written down.
        """
        machine = type(memory.clock) is SystemClock
        return cls(
            scope=memory.scope,
            store=StoreConfig.of(memory.store),
            clock=None if machine else Imported.of(memory.clock),
            sources=tuple(Imported.of(source) for source in memory.sources),
            source_timeout=memory.source_timeout,
            reads=memory.scopes.reads,
            writes=memory.scopes.writes,
            ranking=memory.ranking,
            dynamics=None if memory.dynamics is None else memory.dynamics.config(),
        )

    def open(self) -> LongTermMemory:
        """The memory; nothing is read or reached until its first use.

        Raises:
            ConfigurationError: Something that it names does not exist.
        """
        return LongTermMemory(
            self.store.open(),
            scope=Scopes(own=self.scope, reads=self.reads, writes=self.writes),
            clock=None if self.clock is None else self.clock.get(),
            sources=[source.get() for source in self.sources],
            source_timeout=self.source_timeout,
            ranking=self.ranking,
            dynamics=None if self.dynamics is None else self.dynamics.open(),
        )
