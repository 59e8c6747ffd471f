"""Recall: every memory is asked at once; records that contradict what was found come along."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from coag.errors import RecordStoreError
from coag.schema import Clock, FeltRecord, MemoryKind, RecalledRecord, Record, Scalar
from coag.store import (
    RecordStore,
    Search,
    condition_of,
    flat_fields,
    parse_where,
    ranked,
)

from .dynamics.engine import MemoryDynamics
from .dynamics.links import with_linked
from .dynamics.recollection import Recollection
from .facts import in_force, is_bounded

MOST = 1_000
"""Records that are taken of a source whose every record counts, beside those searched for."""
_ROUNDS = 4
_MORE = 4
"""So many times as many records are asked for in each round."""


class RecallSource(Protocol):
    """A further memory that recall asks, e.g. somebody's AutoGen memory behind an adapter.

    All that a source with an attribute `whole = True` has counts, whatever is searched for.
    """

    name: str

    async def recall(self, query: str, k: int) -> Sequence[RecalledRecord]:
        """At most k records for a query; it may raise, which does not break the recall."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """The result of a query."""

    records: tuple[RecalledRecord, ...] = ()
    """Best first, whatever memory they come from; behind each those that contradict it."""
    problems: tuple[str, ...] = ()
    """One sentence per memory that could not be asked."""
    contradictions: tuple[tuple[str, str], ...] = ()
    """Pairs of ids among the records that contradict each other and hold at the same time."""
    left_out: tuple[str, ...] = ()
    """Ids of records for which the prompt had no room, best first."""
    felt: tuple[FeltRecord, ...] = ()
    """Records that are felt to be known, but not recalled (tip of the tongue); best first."""
    unasked: tuple[RecalledRecord, ...] = ()
    """Records recalled without being asked for."""
    doubted: tuple[str, ...] = ()
    """Ids of records that were left out, since untrusted sources alone vouch for them and they are
    not sure enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recaller:
    """Asks a store and further sources."""

    store: RecordStore
    scopes: tuple[str, ...]
    """Whose records; those of others are never returned."""
    sources: tuple[RecallSource, ...]
    source_timeout: float
    clock: Clock
    """By it a record holds now or not; read only for records that state times."""
    dynamics: MemoryDynamics | None = None
    """How recall changes memory, if it does."""

    async def recall(self, searches: Sequence[Search]) -> Recall:
        """The records that answer a question, best first, with those that contradict them.

        The question comes once for each kind of memory. A malformed filter is a ValueError.
        """
        for search in searches:
            parse_where(search.where)
        text, k = searches[0].text or "", searches[0].k
        if not text.strip():
            return Recall()
        recollection = None
        if self.dynamics is not None:
            recollection = Recollection(self.dynamics, text, partial(_answers, searches))
        answers, _ = await asyncio.gather(
            asyncio.gather(
                *(self._search(search, recollection) for search in searches),
                *(self._ask(source, text, k) for source in self.sources),
            ),
            _begun(recollection),  # while searches run in other threads
        )
        kinds = {search.kind for search in searches}
        hits = [hit for answer in answers for hit in answer.records]
        wanted = [hit for hit in hits if hit.record.kind in kinds and self._in_force(hit.record)]
        best = {hit.record.id: hit for hit in reversed(ranked(wanted, len(wanted)))}
        order = ranked(best.values(), len(best))
        chosen, others = order[:k], order[k:]
        shown = {hit.record.id for hit in chosen}
        of_sources = zip(self.sources, answers[len(searches) :], strict=True)
        rest = (hit for one, answer in of_sources if _is_whole(one) for hit in answer.records)
        further = {hit.record.id: hit for hit in rest if hit.record.id not in shown}
        problems = tuple(problem for answer in answers for problem in answer.problems)
        recalled = Recall(records=(*chosen, *further.values()), problems=problems)
        try:
            recalled = await self._with_contradictions(recalled)
        except RecordStoreError as error:
            recalled = replace(recalled, problems=(*problems, f"contradictions: {error}"))
        if recollection is None:
            return recalled
        done = await recollection.finished(recalled.records, chosen, others, self.store)
        return replace(
            recalled,
            records=done.records,
            problems=(*recalled.problems, *done.problems),
            felt=done.felt,
            doubted=done.doubted,
            unasked=done.unasked,
        )

    async def _ask(self, source: RecallSource, query: str, k: int) -> Recall:
        """The answer of a further memory; one that fails or takes too long is a problem."""
        most = MOST if _is_whole(source) else k
        try:
            async with asyncio.timeout(self.source_timeout):
                return Recall(records=tuple(await source.recall(query, most))[:most])
        except TimeoutError:
            return Recall(problems=(f"{source.name}: no answer within {self.source_timeout:g} s.",))
        # A source is somebody else's code and may raise anything; what it raised is handed to
        # the caller, who writes it to the trace.
        except Exception as error:
            return Recall(problems=(f"{source.name}: {error!r}",))

    async def _search(self, search: Search, recollection: Recollection | None) -> Recall:
        """The first k that hold now; the store is asked for more where too many of them do not.

        With dynamics they are weighed, what has faded is left out, and some more come.
        """
        links = None if recollection is None else recollection.links
        vectors = None if self.dynamics is None else self.dynamics.vectors
        most = search.k if recollection is None else recollection.fetch(search.k)
        asked_for = most
        current: list[RecalledRecord] = []
        try:
            for _ in range(_ROUNDS):
                wide = replace(search, k=asked_for, links=links)
                found = hits = await self.store.search(wide)
                if recollection is not None:
                    hits = _without_repeats(hits, search.k)
                if links is not None:
                    hits = await with_linked(hits, wide, self.store, links, vectors)
                current = [hit for hit in hits if self._in_force(hit.record)]
                if recollection is not None:
                    current = await recollection.weighed(current, self.store)
                if len(current) >= search.k or len(found) < asked_for:
                    break
                asked_for *= _MORE
        except RecordStoreError as error:
            return Recall(problems=(f"{search.kind.value} memory: {error}",))
        return Recall(records=tuple(current[:most]))

    def _in_force(self, record: Record) -> bool:
        return not is_bounded(record) or in_force(record, self.clock.now())

    async def _with_contradictions(self, found: Recall) -> Recall:
        """What was recalled, behind each record those that contradict it.

        A record that was not recalled itself gets the score of the one that it contradicts. One
        that is superseded, removed, another scope's, or not in force contradicts nothing.
        """
        here = {hit.record.id: hit.record for hit in found.records}
        named = {one for record in here.values() for one in record.lineage.contradicts}
        if not named:
            return found
        fetched = {one.id: one for one in await self.store.get(sorted(named - here.keys()))}
        shown: list[RecalledRecord] = []
        added: set[str] = set()
        pairs: dict[frozenset[str], tuple[str, str]] = {}
        for hit in found.records:
            shown.append(hit)
            for name in hit.record.lineage.contradicts:
                other = here.get(name) or fetched.get(name)
                if other is None or not self._contradicts(other, hit.record):
                    continue
                pairs.setdefault(frozenset((hit.record.id, name)), (hit.record.id, name))
                if name in fetched and name not in added:
                    added.add(name)
                    shown.append(RecalledRecord(record=other, score=hit.score))
        return replace(found, records=tuple(shown), contradictions=tuple(pairs.values()))

    def _contradicts(self, other: Record, record: Record) -> bool:
        current = other.superseded_by is None and self._in_force(other)
        return current and other.scope == record.scope and other.scope in self.scopes


async def _begun(recollection: Recollection | None) -> None:
    if recollection is not None:
        recollection.begin()


def _answers(searches: Sequence[Search], record: Record) -> bool:
    """Whether a record passes the filter and the scopes of one of these searches."""
    fields = flat_fields(record)
    return any(one.kind is record.kind and condition_of(one).matches(fields) for one in searches)


def _without_repeats(hits: list[RecalledRecord], k: int) -> list[RecalledRecord]:
    """The hits without the repeats of better ones that a store puts last, but k of them at least.

    They show by their score, which is higher than that of the one before.
    """
    later = range(1, len(hits))
    end = next((at for at in later if hits[at].score > hits[at - 1].score), len(hits))
    return hits[: max(end, k)]


def _is_whole(source: RecallSource) -> bool:
    return bool(getattr(source, "whole", False))


async def records_of_type(
    store: RecordStore,
    scope: str,
    kind: MemoryKind,
    type: str,
    *,
    most: int = 100_000,
    metadata: Mapping[str, Scalar] | None = None,
) -> list[Record]:
    """The current records of a scope that have a type and these metadata, the newest first."""
    where = {"type": type, **(metadata or {})}
    search = Search(text=None, kind=kind, k=most, scopes=(scope,), where=where)
    return [hit.record for hit in await store.search(search)]
