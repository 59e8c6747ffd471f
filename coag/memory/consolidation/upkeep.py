"""The steps of sleep that keep things up: feelings, clusters, tiers, the archive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING

from coag.memory.dynamics import DAY, RecordState, persona_proposals, regulated
from coag.memory.facts import is_trusted, origins, trust_of
from coag.schema import MemoryKind, Record, Trust
from coag.store import RecordStore, embedder_within, text_vectors

from .steps import SleepWork, StepBatch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_LIVED = 2_000
"""New events that a personality is judged by, at most; the newest count."""


class RegulateStep:
    """Calms the strongest feelings down a little, once each sleep."""

    name = "regulate"

    async def batches(self, work: SleepWork, cursor: str) -> AsyncGenerator[StepBatch]:
        """See `SleepStep`."""
        dynamics, how = work.dynamics, work.dynamics.settings.emotion_regulation
        if how is None or cursor:
            return
        strongest = "arousal > ? AND faded_at IS NULL ORDER BY arousal DESC, record LIMIT ?"
        states = dynamics.states.find(strongest, how.arousal, how.most)
        calmer = [regulated(state, dynamics.settings, dynamics.traits) for state in states]
        yield StepBatch(
            cursor="done",
            last=True,
            examined=len(states),
            changed=[state.record for state in calmer],
            write=lambda: dynamics.states.put(calmer),
        )


class LinkStep:
    """Weakens the links between records, once each sleep; the weakest go."""

    name = "links"

    async def batches(self, work: SleepWork, cursor: str) -> AsyncGenerator[StepBatch]:
        """See `SleepStep`."""
        links = work.dynamics.links
        if links is not None and not cursor:
            yield StepBatch(cursor="done", last=True, write=links.decay)


# ---- Clusters of what is known ----


class SchemaStep:
    """Lets what is in no cluster yet join one: what is new, or was with what is removed."""

    name = "schemas"

    async def batches(self, work: SleepWork, cursor: str) -> AsyncGenerator[StepBatch]:
        """See `SleepStep`; a cursor is the id of the last record."""
        dynamics, how = work.dynamics, work.dynamics.settings.schema_encoding
        if how is None:
            return
        new = "schema = '' AND record > ? AND faded_at IS NULL ORDER BY record LIMIT ?"
        while states := dynamics.states.find(new, cursor, work.batch):
            cursor = states[-1].record
            records = await work.fetched(states)
            known = [one for one in states if one.record in records]
            vectors = await vectors_of(work.memory.store, [records[one.record] for one in known])
            if vectors is None:
                yield StepBatch(last=True, notes=["This store gives no vectors: no clusters."])
                return
            joined, clusters = dynamics.schemas.fitting(vectors, how.similarity)
            fits = [one._replace(schema=to) for one, to in zip(known, joined, strict=True)]

            def write(
                fits: Sequence[RecordState] = fits,
                clusters: list[tuple[int, int, NDArray[np.float32]]] = clusters,
            ) -> None:
                dynamics.states.put(fits)
                dynamics.schemas.put(clusters)

            yield StepBatch(
                cursor=cursor,
                examined=len(states),
                changed=[one.record for one in fits if one.schema],
                write=write,
            )


async def vectors_of(store: RecordStore, records: Sequence[Record]) -> NDArray[np.float32] | None:
    """The unit vectors of the texts of records, one row each; None if the store has no embedder."""
    embedder = embedder_within(store)
    if embedder is None:
        return None
    return await asyncio.to_thread(text_vectors, embedder, [record.text for record in records])


# ---- From episodic to semantic memory ----


class GraduateStep:
    """What happened and is used often becomes something that holds, derived from it."""

    name = "graduate"

    async def batches(self, work: SleepWork, cursor: str) -> AsyncGenerator[StepBatch]:
        """See `SleepStep`; a cursor is the id of the last record."""
        dynamics, how = work.dynamics, work.dynamics.settings.graduation
        if how is None:
            return
        ripe = (
            "uses >= ? AND encoded_at <= ? AND faded_at IS NULL AND record > ? "
            "ORDER BY record LIMIT ?"
        )
        before = work.now - how.age * DAY
        while states := dynamics.states.find(ripe, how.uses, before, cursor, work.batch):
            cursor = states[-1].record
            records = (await work.fetched(states)).values()
            due = [one for one in records if self._is_due(one, work)]
            if not work.dry_run:
                for record in due:
                    await self._graduate(record, work)
            names = [record.id for record in due]

            yield StepBatch(
                cursor=cursor,
                examined=len(states),
                changed=names,
                write=lambda names=names: work.journal.note_graduated(names),
            )

    def _is_due(self, record: Record, work: SleepWork) -> bool:
        episodic = record.kind is MemoryKind.EPISODIC and record.superseded_by is None
        return episodic and work.may_write(record) and not work.journal.has_graduated(record.id)

    async def _graduate(self, record: Record, work: SleepWork) -> None:
        mixed = trust_of(record) is not Trust.UNTRUSTED and not is_trusted(record)
        for origin in origins(record):
            await work.memory.remember(
                MemoryKind.SEMANTIC,
                record.text,
                provenance=origin,
                type=record.type,
                metadata={} if mixed else record.metadata,  # they may be a stranger's
                derived_from=[record.id],
                scope=record.scope,
            )


# ---- Personality ----


class PersonaStep:
    """Proposes how what was lived through since the last time changes the personality.

    Too few new events wait for a later sleep. A proposal takes effect only where that is set.
    """

    name = "persona"

    async def batches(self, work: SleepWork, cursor: str) -> AsyncGenerator[StepBatch]:
        """See `SleepStep`."""
        dynamics, how = work.dynamics, work.dynamics.settings.persona_drift
        if how is None or dynamics.traits is None or cursor:
            return
        since = float(work.journal.mark(self.name) or "-inf")
        if since > work.now:  # the clock was set back
            since = work.now
            yield StepBatch(write=lambda: work.journal.set_mark(self.name, repr(since)))
        newest = "encoded_at > ? ORDER BY encoded_at DESC, record LIMIT ?"
        states = dynamics.states.find(newest, since, _LIVED)
        lived = await self._episodic(states, work)
        if len(lived) < how.records:
            return
        changes = persona_proposals(lived, dynamics.traits, dynamics.settings)

        def write() -> None:
            if changes:
                dynamics.persona.propose(changes, at=work.now, apply=how.apply)
            work.journal.set_mark(self.name, repr(work.now))

        what = "applied" if how.apply else "proposed"
        yield StepBatch(
            cursor="done",
            last=True,
            examined=len(lived),
            write=write,
            notes=[
                f"{one.trait} {one.before:.2f} to {one.after:.2f}, {what}: {one.reason}."
                for one in changes
            ],
        )

    async def _episodic(self, states: Sequence[RecordState], work: SleepWork) -> list[RecordState]:
        lived: list[RecordState] = []
        for start in range(0, len(states), work.batch):
            some = states[start : start + work.batch]
            records = await work.fetched(some)
            lived += [
                one for one in some if one.record in records and self._counts(records[one.record])
            ]
        return lived

    @staticmethod
    def _counts(record: Record) -> bool:
        """Whether it was lived through; what is untrusted changes no personality."""
        return record.kind is MemoryKind.EPISODIC and trust_of(record) is not Trust.UNTRUSTED


# ---- The archive ----


class ArchiveStep:
    """Drops what the archive's retention no longer keeps, if that is switched on."""

    name = "archive"

    async def batches(self, work: SleepWork, cursor: str) -> AsyncGenerator[StepBatch]:
        """See `SleepStep`; it always begins with the first."""
        dynamics, how = work.dynamics, work.dynamics.settings.archive
        while ids := dynamics.archive.superfluous(dynamics.owner, work.now, how, work.batch):
            if not how.drop:
                note = f"{len(ids)} archived record(s) or more are past their retention and stay."
                yield StepBatch(last=True, notes=[note])
                return
            ids = await self._loose(ids, work)
            if not ids:
                return

            def write(ids: Sequence[str] = ids) -> None:
                dynamics.archive.drop(ids)
                dynamics.removed(ids)

            yield StepBatch(examined=len(ids), changed=ids, write=write)
            if work.dry_run:
                return

    async def _loose(self, ids: Sequence[str], work: SleepWork) -> list[str]:
        """Those that did not supersede a record that the store still has."""
        records = work.dynamics.archive.peek(ids)
        older = [one.supersedes for one in records.values() if one.supersedes is not None]
        here = {one.id for one in await work.memory.store.get(older)}
        return [one for one in ids if records[one].supersedes not in here]
