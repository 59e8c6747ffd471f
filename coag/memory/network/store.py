"""A store whose recall follows what ties one record to another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import islice

from pydantic import Field

from coag.schema import RecalledRecord, Record, ScoreParts, Value
from coag.store import RecordStore, Search, WrappedStore, ranked

from .network import DEFAULT_LIMITS, NetworkLimits, SemanticNetwork, with_name


class Association(Value):
    """How far recall follows what ties records."""

    weight: float = Field(default=0.85, ge=0.0, le=1.0)
    """What a score counts that was found by way of an entity which the query does not name."""
    bridges: int = Field(default=3, ge=1)
    """By way of so many entities recall goes, those that are most awake."""
    each: int = Field(default=2, ge=1)
    """By way of each at most so many further records are found, the best ones."""
    begin_with: int = Field(default=1, ge=0)
    """The entities of so many of the best records wake too, by their scores."""
    steps: int = Field(default=2, ge=1)
    """How many records deep activation goes; 2 for what two records together tell."""
    decay: float = Field(default=0.5, ge=0.0, le=1.0)
    """What is left of the activation when it leaves a record."""


class Associating(Value):
    """Puts an `AssociativeStore` around another store."""

    association: Association = Association()
    limits: NetworkLimits = DEFAULT_LIMITS

    def __call__(self, store: RecordStore, /) -> AssociativeStore:
        """The store around this one."""
        return AssociativeStore(store, association=self.association, limits=self.limits)


class AssociativeStore(WrappedStore):
    """Another store, with a semantic network of each scope beside it.

    Hybrid recall is asked as it is. Then activation spreads from what the query names, and from
    what the best record mentions; the entities that are most awake besides are bridges. The
    query is put to each of them, the bridge standing in the place of what led to it, and the
    best further records that mention it come in by their scores, lessened. A search without a
    ranking, or without a text, is the other store's alone.

    The networks are built at the first recall, from everything that the store holds, and kept
    current by what is written through here; what other processes write to the same store is
    known from the next opening on.

    Args:
        store: Where the records rest; closed by `close`.
        association: How far recall follows.
        limits: How large each network may grow.
    """

    def __init__(
        self,
        store: RecordStore,
        *,
        association: Association | None = None,
        limits: NetworkLimits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__(store)
        self.association = association or Association()
        self.limits = limits
        self._networks: dict[str, SemanticNetwork] | None = None
        self._changing = asyncio.Lock()

    def wrapping(self) -> Associating | None:
        """See `WrappedStore.wrapping`; the networks are built anew from the records."""
        if type(self) is not AssociativeStore:
            return None
        return Associating(association=self.association, limits=self.limits)

    async def network(self, scope: str) -> SemanticNetwork:
        """The network of a scope, as it is now.

        Raises:
            RecordStoreError: If the store cannot be read.
        """
        networks = await self._built()
        return self._network_in(networks, scope)

    async def add(self, records: Sequence[Record]) -> list[str]:
        """See `RecordStore.add`."""
        async with self._change():
            stored = await self.store.add(records)
            new = frozenset(stored)
            self._put(record for record in reversed(records) if record.id in new)
            return stored

    async def supersede(self, old_id: str, new: Record) -> Record:
        """See `RecordStore.supersede`."""
        async with self._change():
            stored = await self.store.supersede(old_id, new)
            self._drop([old_id])
            self._put([stored])
            return stored

    async def update(self, records: Sequence[Record]) -> list[Record]:
        """See `RecordStore.update`."""
        async with self._change():
            stored = await self.store.update(records)
            self._put(stored)
            return stored

    async def delete(self, ids: Sequence[str]) -> list[str]:
        """See `RecordStore.delete`."""
        async with self._change():
            gone = await self.store.delete(ids)
            self._drop(ids)
            return gone

    async def forget(self, scope: str) -> int:
        """See `RecordStore.forget`."""
        async with self._change():
            count = await self.store.forget(scope)
            if self._networks is not None:
                self._networks.pop(scope, None)
            return count

    async def search(self, search: Search) -> list[RecalledRecord]:
        """See `RecordStore.search`; with a ranking, by way of what the query leads to as well."""
        hits = await self.store.search(search)
        if search.text is None or search.is_empty or search.ranking is None:
            return hits
        networks = await self._built()
        scopes = networks if search.scopes is None else dict.fromkeys(search.scopes)
        best = {hit.record.id: hit for hit in hits}
        ways = [
            self._by_way(networks[scope], bridge, search, known=frozenset(best))
            for scope in scopes
            if scope in networks
            for bridge in self._bridges(networks[scope], search.text, hits)
        ]
        for found in await asyncio.gather(*ways):
            for hit in found:
                known = best.get(hit.record.id)
                if known is None or known.score < hit.score:
                    best[hit.record.id] = hit
        return ranked(best.values(), search.k)

    def _bridges(
        self, network: SemanticNetwork, text: str, hits: Sequence[RecalledRecord]
    ) -> list[tuple[str, str]]:
        """What is most awake besides what the query names, and the query put to it."""
        how = self.association
        named = network.named_in(text)
        seeds = dict.fromkeys(named, 1.0)
        for hit in hits[: how.begin_with]:
            mentioned = network.entities(hit.record.id)
            for entity in mentioned:
                seeds[entity] = seeds.get(entity, 0.0) + hit.score / len(mentioned)
        awake = network.activation(seeds, steps=how.steps, decay=how.decay).entities
        leading = [one for one in awake if one not in named and len(network.records_of(one)) > 1]
        best = sorted(leading, key=lambda one: (-awake[one], one))[: how.bridges]
        return [(one, _put_to(network, text, named, one)) for one in best]

    async def _by_way(
        self,
        network: SemanticNetwork,
        bridge: tuple[str, str],
        search: Search,
        known: Collection[str],
    ) -> list[RecalledRecord]:
        """What answers the query put to an entity, mentions it and is not known yet."""
        entity, text = bridge
        found = await self.store.search(replace(search, text=text, scopes=(network.scope,)))
        new = (hit for hit in found if hit.record.id not in known)
        good = (hit for hit in new if entity in network.mentioned_in(hit.record.id))
        less = (_lessened(hit, self.association.weight) for hit in good)
        least = 0.0 if search.min_score is None else search.min_score
        return [hit for hit in islice(less, self.association.each) if hit.score >= least]

    async def _built(self) -> dict[str, SemanticNetwork]:
        if self._networks is None:
            async with self._changing:
                if self._networks is None:  # nobody else built them meanwhile
                    self._networks = await self._read()
        return self._networks

    async def _read(self) -> dict[str, SemanticNetwork]:
        networks: dict[str, SemanticNetwork] = {}
        async for some in self.store.scan():
            for record in some:
                self._network_in(networks, record.scope).put([record])
        return networks

    @asynccontextmanager
    async def _change(self) -> AsyncGenerator[None]:
        """One write at a time; after one that was broken off, the networks are built anew."""
        async with self._changing:
            done = False
            try:
                yield
                done = True
            finally:
                if not done:
                    self._networks = None

    def _put(self, records: Iterable[Record]) -> None:
        if self._networks is not None:
            for record in records:
                self._network_in(self._networks, record.scope).put([record])

    def _drop(self, ids: Sequence[str]) -> None:
        for network in (self._networks or {}).values():
            network.drop(ids)

    def _network_in(self, networks: dict[str, SemanticNetwork], scope: str) -> SemanticNetwork:
        if scope not in networks:
            networks[scope] = SemanticNetwork(scope, limits=self.limits)
        return networks[scope]


def _put_to(network: SemanticNetwork, text: str, named: Sequence[str], entity: str) -> str:
    """The text with the entity in the place of the one that led to it."""
    old = next((one for one in named if network.ties(one, entity)), "")
    return with_name(text, old, entity)


def _lessened(hit: RecalledRecord, weight: float) -> RecalledRecord:
    why = hit.why
    if why is not None:
        parts = {name: round(weight * part, 4) for name, part in why.model_dump().items()}
        why = ScoreParts(**parts)
    return RecalledRecord(record=hit.record, score=weight * hit.score, why=why)
