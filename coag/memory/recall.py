"""Recall: every memory and source is asked, and contradictions come along."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from coag.errors import RecordStoreError
from coag.schema import Clock, MemoryKind, RecalledRecord, Record
from coag.store import SHORT_ID_LENGTH, RecordStore, Search, parse_where, ranked, short_id

from .facts import in_force, is_bounded
from .statements import Recall

# ---- Further memories that recall asks besides the agent's own ----


class RecallSource(Protocol):
    """A further memory that recall asks, e.g. somebody's AutoGen memory behind an adapter."""

    name: str

    async def recall(self, query: str, k: int) -> Sequence[RecalledRecord]:
        """At most k records for a query; it may raise, which does not break the recall."""
        ...


MOST = 1_000
"""Records of a source that is no search which are taken, beside those that were searched for."""


def is_whole(source: RecallSource) -> bool:
    """Whether all that a source has counts, however much is searched for (`whole = True`)."""
    return bool(getattr(source, "whole", False))


async def asked(source: RecallSource, query: str, k: int, *, seconds: float) -> Recall:
    """What a further memory answers; one that fails or takes too long is a problem.

    Args:
        source: Whom to ask.
        query: What to look for.
        k: At most so many records.
        seconds: How long it may take.
    """
    try:
        async with asyncio.timeout(seconds):
            return Recall(records=tuple(await source.recall(query, k))[:k])
    except TimeoutError:
        return Recall(problems=(f"{source.name}: no answer within {seconds:g} s.",))
    # A source is somebody else's code and may raise anything; what it raised is handed to
    # the caller, who writes it to the trace.
    except Exception as error:
        return Recall(problems=(f"{source.name}: {error!r}",))


# ---- Records that hold at the same time and say otherwise, shown together ----


Pairs = tuple[tuple[str, str], ...]


async def with_contradictions(
    store: RecordStore,
    scopes: Container[str],
    hits: Sequence[RecalledRecord],
    holds: Callable[[Record], bool],
) -> tuple[tuple[RecalledRecord, ...], Pairs]:
    """What was recalled, behind each record those that say otherwise, and which these are.

    A record that was not recalled itself comes with the score of the one that it contradicts.
    One that is superseded, gone or another scope's contradicts nothing any more; nor does one
    that does not hold yet, or no longer.

    Args:
        store: Where they rest.
        scopes: Whose records may be shown.
        hits: What was recalled.
        holds: Whether what a record says holds now.

    Raises:
        RecordStoreError: If the store cannot be reached.
    """
    here = {hit.record.id: hit for hit in hits}
    wanted = {name for hit in hits for name in hit.record.lineage.contradicts} - here.keys()
    if not wanted and not any(hit.record.lineage.contradicts for hit in hits):
        return tuple(hits), ()
    fetched = {record.id: record for record in await store.get(sorted(wanted))}
    shown: list[RecalledRecord] = []
    placed: set[str] = set()
    pairs: dict[frozenset[str], tuple[str, str]] = {}
    for hit in hits:
        shown.append(hit)
        for name in hit.record.lineage.contradicts:
            other = here[name].record if name in here else fetched.get(name)
            if other is None or other.superseded_by is not None:
                continue
            if not holds(other):
                continue
            if other.scope != hit.record.scope or other.scope not in scopes:
                continue
            pairs.setdefault(frozenset((hit.record.id, name)), (hit.record.id, name))
            if name in fetched and name not in placed:
                placed.add(name)
                shown.append(RecalledRecord(record=other, score=hit.score))
    return tuple(shown), tuple(pairs.values())


# ---- Asking every memory at once, and putting together what they answer ----


_ROUNDS = 4
_MORE = 4
"""So many times as many records are asked for in each round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recaller:
    """What recall asks."""

    store: RecordStore
    scopes: tuple[str, ...]
    """Whose records; those of others never come."""
    sources: tuple[RecallSource, ...]
    source_timeout: float
    clock: Clock
    """What does not hold yet by it, or no longer, is not told; not looked at for other records."""

    async def recall(self, searches: Sequence[Search]) -> Recall:
        """The records that answer a question, best first, with those that say otherwise.

        Args:
            searches: The question, once for each kind of memory.

        Raises:
            ValueError: If a filter is malformed.
        """
        for search in searches:
            parse_where(search.where)
        text, k = searches[0].text or "", searches[0].k
        if not text.strip():
            return Recall()
        answers = await asyncio.gather(
            *(self._search(search) for search in searches),
            *(
                asked(one, text, MOST if is_whole(one) else k, seconds=self.source_timeout)
                for one in self.sources
            ),
        )
        kinds = {search.kind for search in searches}
        hits = [hit for answer in answers for hit in answer.records]
        wanted = [hit for hit in hits if hit.record.kind in kinds and self._in_force(hit.record)]
        best = {hit.record.id: hit for hit in reversed(ranked(wanted, len(wanted)))}
        problems = tuple(problem for answer in answers for problem in answer.problems)
        chosen = ranked(best.values(), k)
        shown = {hit.record.id for hit in chosen}
        told = zip(self.sources, answers[len(searches) :], strict=True)
        rest = (hit for one, answer in told if is_whole(one) for hit in answer.records)
        further = {hit.record.id: hit for hit in rest if hit.record.id not in shown}
        return await self._with_contradictions([*chosen, *further.values()], problems)

    async def _search(self, search: Search) -> Recall:
        try:
            return Recall(records=await self._current(search))
        except RecordStoreError as error:
            return Recall(problems=(f"{search.kind.value} memory: {error}",))

    async def _current(self, search: Search) -> tuple[RecalledRecord, ...]:
        """The first k that hold now; the store is asked for more where too many of them do not."""
        k, asked_for = search.k, search.k
        current: list[RecalledRecord] = []
        for _ in range(_ROUNDS):
            hits = await self.store.search(replace(search, k=asked_for))
            current = [hit for hit in hits if self._in_force(hit.record)]
            if len(current) >= k or len(hits) < asked_for:
                break
            asked_for *= _MORE
        return tuple(current[:k])

    def _in_force(self, record: Record) -> bool:
        return not is_bounded(record) or in_force(record, self.clock.now())

    async def _with_contradictions(
        self, hits: Sequence[RecalledRecord], problems: tuple[str, ...]
    ) -> Recall:
        try:
            shown, pairs = await with_contradictions(self.store, self.scopes, hits, self._in_force)
        except RecordStoreError as error:
            return Recall(records=tuple(hits), problems=(*problems, f"contradictions: {error}"))
        return Recall(records=shown, problems=problems, contradictions=pairs)


async def found(
    store: RecordStore, scopes: tuple[str, ...], kind: MemoryKind, name: str
) -> Record | None:
    """The record of these scopes with an id or its short form, or None."""
    search = Search(
        text=None,
        kind=kind,
        k=10,
        scopes=scopes,
        where={"short_id": short_id(name)},
        include_superseded=True,
    )
    hits = await store.search(search)
    meant = [hit.record for hit in hits if hit.record.id.startswith(name)]
    return meant[0] if len(meant) == 1 and len(name) >= SHORT_ID_LENGTH else None


def in_each(
    search: Search, kinds: Sequence[MemoryKind], episodic_where: Mapping[str, Any] | None
) -> list[Search]:
    """A question to each of these memories.

    Args:
        search: The question.
        kinds: Which memories.
        episodic_where: A filter for episodic memory only, besides the question's own.
    """
    wheres = {MemoryKind.EPISODIC: _both(search.where, episodic_where)}
    return [replace(search, kind=one, where=wheres.get(one, search.where)) for one in kinds]


def _both(
    one: Mapping[str, Any] | None, other: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """A filter that holds where two do."""
    if one is None or other is None:
        return other if one is None else one
    return {"$and": [one, other]}
