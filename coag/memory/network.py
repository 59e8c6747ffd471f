"""A semantic network: what records are about, and what ties one thing to another.

Its nodes are entities (the subjects and values of facts, the places of events, names in texts)
and records; a record ties the entities that it mentions. A question activates the entities that it
names, and from there activation spreads: over the records that mention an entity to the other
entities of these, weaker at every step, and the weaker the more records mention it. So a memory
finds the second fact of a question that needs two: who the manager is of the person who owns
the boat.

Spreading activation is Collins and Loftus's (1975, "A spreading-activation theory of semantic
processing", Psychological Review 82); that what an entity gives is shared out among all that
mention it is the fan effect as ACT-R has it (Anderson 1983, "A spreading activation theory of
memory", Journal of Verbal Learning and Verbal Behavior 22).

`SemanticNetwork` is the network of one scope, in RAM, built from its records and kept current
with them. `AssociativeStore` puts one beside any `RecordStore` and lets recall follow it.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from heapq import heapify, heappop, heappush, nsmallest
from itertools import chain, islice

from pydantic import Field

from coag.schema import RecalledRecord, Record, ScoreParts, Value
from coag.store import LinkSource, RecordStore, Search, WrappedStore, ranked

from .dynamics.links import passed_on

# ---- What a record is about: the entities that it mentions, by simple rules of writing ----


LONGEST_NAME = 6
"""Words; what is longer is a sentence, no name."""

_WORD = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"['\u2019]s\b")
_TOKEN = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*|[.!?:;,\n()\[\]\"]")
_SMALL_WORDS = (
    "a an the i you he she it we they my your his her its our their this that these those and but"
    " or so if when where what who which how why as at by for from in of on to with is are was"
    " were do does did has have had can could will would not no yes there here then"
)
_LEADING = frozenset(_SMALL_WORDS.split())
"""Words that a sentence begins with, written large there; a name does not begin with them."""


def words_of(text: str) -> list[str]:
    """The words of a text in small letters, without possessive endings."""
    return _WORD.findall(_POSSESSIVE.sub(" ", text).casefold())


def entity_named(name: str) -> str:
    """The one form of an entity's name: small letters, single blanks, no punctuation.

    A possessive ending is no part of it; what has no letter (a number) is no entity, and gives
    an empty text.
    """
    words = words_of(name)
    if len(words) > LONGEST_NAME or not any(any(map(str.isalpha, word)) for word in words):
        return ""
    return " ".join(words)


def entities_of(record: Record, most: int) -> tuple[str, ...]:
    """The first entities that a record mentions, each once, those of its fields first.

    These are the subject and the value of its fact, the place of its event, and the names in its
    text: words written with a capital, several in a row being one name, with the numbers behind
    them. Who said it is none of them.
    """
    mentions: list[str] = [] if record.fact is None else [record.fact.subject, record.fact.value]
    mentions += [] if record.event is None else [record.event.place]
    named = map(entity_named, [*mentions, *_names(record.text)])
    return tuple({name: None for name in named if name})[:most]


def _names(text: str) -> Iterator[str]:
    """Runs of words with capitals; in a script without capitals there are none."""
    run: list[str] = []
    for token in _TOKEN.findall(text):
        word = _POSSESSIVE.sub("", token)
        capital = word[:1].isupper()
        if (run and word.isdecimal()) or (capital and (run or word.casefold() not in _LEADING)):
            run.append(word)
        elif run:
            yield " ".join(run)
            run = []
        if run and word != token:  # what comes after a possessive is another name
            yield " ".join(run)
            run = []
    if run:
        yield " ".join(run)


# ---- The network of one scope: which records mention which entities ----


class NetworkLimits(Value):
    """How large a network may grow, and what in it is too common to say anything."""

    records: int = Field(default=100_000, ge=1)
    """It knows at most so many records of a scope, the newest ones."""
    entities: int = Field(default=24, ge=1)
    """Of one record."""
    common: float = Field(default=0.05, gt=0.0, le=1.0)
    """An entity that more than this share of the records mention spreads nothing."""
    never_common: int = Field(default=50, ge=1)
    """An entity that at most so many records mention is not too common, however few there are."""


DEFAULT_LIMITS = NetworkLimits()
_SLACK = 1000
_LEAST_ACTIVATION = 1e-4
"""An entity with less activates no others."""
_MOST_FIRING = 64
"""At each step only so many entities activate others, the strongest ones."""


class SemanticNetwork:
    """The entities of one scope's current records, tied by the records that mention them.

    Records that another one superseded are no part of it. What it answers depends on the records
    alone, not on the order in which they came.

    Args:
        scope: Whose records; others are refused.
        limits: How large it may grow.
    """

    def __init__(self, scope: str, *, limits: NetworkLimits = DEFAULT_LIMITS) -> None:
        self.scope = scope
        self.limits = limits
        self._mentioned: dict[str, tuple[str, ...]] = {}
        self._records: dict[str, set[str]] = {}
        self._made: dict[str, float] = {}
        self._oldest: list[tuple[float, str]] = []
        """A heap of when each record was made; some that were removed are there yet."""

    def __len__(self) -> int:
        return len(self._mentioned)

    def put(self, records: Iterable[Record]) -> None:
        """Takes in records as they are now, in place of what it knew of them.

        Raises:
            ValueError: If a record is another scope's; then those before it were taken in.
        """
        for record in records:
            if record.scope != self.scope:
                raise ValueError(
                    f"Record {record.id!r} is of scope {record.scope!r}; this is the network of "
                    f"{self.scope!r} and knows no others."
                )
            self._remove(record.id)
            if record.superseded_by is None:
                self._insert(record)
        while len(self._mentioned) > self.limits.records:
            made, oldest = heappop(self._oldest)
            if self._made.get(oldest) == made:
                self._remove(oldest)

    def drop(self, ids: Iterable[str]) -> None:
        """Forgets records; unknown ones do no harm."""
        for one in ids:
            self._remove(one)

    def entities(self, record_id: str | None = None) -> tuple[str, ...]:
        """All entities in their order, or those that one record mentions, none if unknown."""
        if record_id is None:
            return tuple(sorted(self._records))
        return self._mentioned.get(record_id, ())

    def named_in(self, text: str) -> tuple[str, ...]:
        """The known entities that a text names, the longest name counting where several fit."""
        words = words_of(text)
        found: dict[str, None] = {}
        start = 0
        while start < len(words):
            ends = range(min(len(words), start + LONGEST_NAME), start, -1)
            end = next((e for e in ends if " ".join(words[start:e]) in self._records), None)
            if end is not None:
                found[" ".join(words[start:end])] = None
            start = end or start + 1
        return tuple(found)

    def neighbours(self, entity: str) -> dict[str, tuple[str, ...]]:
        """The entities that some record mentions together with this one, and these records' ids."""
        own = entity_named(entity)
        mentions = {one: self._mentioned[one] for one in sorted(self._records.get(own, ()))}
        others = sorted({other for some in mentions.values() for other in some} - {own})
        return {o: tuple(one for one, some in mentions.items() if o in some) for o in others}

    def ties(self, one: str, other: str) -> tuple[str, ...]:
        """Ids of the records that mention both entities, in their order."""
        first, second = (self._records.get(entity_named(name), set()) for name in (one, other))
        return tuple(sorted(first & second))

    def records_of(self, entity: str) -> Collection[str]:
        """The records over which an entity spreads; none if it is too common to say anything."""
        found = self._records.get(entity, frozenset[str]())
        share = self.limits.common * len(self._mentioned)
        return found if len(found) <= max(share, self.limits.never_common) else frozenset[str]()

    def activation(
        self,
        seeds: str | Mapping[str, float],
        *,
        steps: int = 2,
        decay: float = 0.5,
        links: LinkSource | None = None,
    ) -> dict[str, float]:
        """The activation of every entity that is reached from some, above 0; the seeds' sum is 1.

        Each entity shares what it has out among the records that mention it, so that one which
        everything mentions says little of each (the fan effect). Each record shares what reached
        it, lessened by the decay, out among the entities that it mentions; these are the next to
        share. An entity is activated once: activation does not run in circles.

        Args:
            seeds: A text, of which every known entity that it names begins alike; or entities
                with weights above 0, of which only the proportions count.
            steps: How many records deep it goes.
            decay: What is left of the activation when it leaves a record, 0..1.
            links: Ties between records; over each of them activation also passes, lessened by
                the decay, to the entities of the record at its other end.
        """
        weights = dict.fromkeys(self.named_in(seeds), 1.0) if isinstance(seeds, str) else seeds
        named = sorted((entity_named(one), weight) for one, weight in weights.items())
        known = {one: weight for one, weight in named if weight > 0.0 and one in self._records}
        whole = sum(known.values())
        firing = {one: weight / whole for one, weight in known.items()}
        reached = dict(firing)
        passed: set[str] = set()
        for _ in range(steps):
            records = self._shared_out(firing)
            if links is not None:
                records |= self._over_links(records, links, passed, decay)
            firing = self._fired(records, reached, decay)
            reached.update(firing)
        return reached

    def _shared_out(self, firing: Mapping[str, float]) -> dict[str, float]:
        """The records that mention these entities, with what each gets of their activation."""
        records: dict[str, float] = defaultdict(float)
        enough = [one for one, activation in firing.items() if activation >= _LEAST_ACTIVATION]
        strongest = nsmallest(_MOST_FIRING, enough, key=lambda one: (-firing[one], one))
        for entity in sorted(strongest):
            among = self.records_of(entity)
            for one in among:
                records[one] += firing[entity] / len(among)
        return records

    def _over_links(
        self, records: Mapping[str, float], links: LinkSource, passed: set[str], decay: float
    ) -> dict[str, float]:
        """The records that the strongest of these are tied to; each passes activation on once."""
        strongest = nsmallest(_MOST_FIRING, records, key=lambda one: (-records[one], one))
        firing = {one: records[one] for one in strongest if one not in passed}
        passed.update(firing)
        given = passed_on(firing, links.neighbours(firing), passed | records.keys())
        return {one: decay * given[one] for one in given if one in self._mentioned}

    def _fired(
        self, records: Mapping[str, float], reached: Collection[str], decay: float
    ) -> dict[str, float]:
        """The entities that these records mention, and that were not activated before."""
        fired: dict[str, float] = defaultdict(float)
        for one in sorted(records):
            mentioned = self._mentioned[one]
            for entity in mentioned:
                if entity not in reached:
                    fired[entity] += decay * records[one] / len(mentioned)
        return {entity: activation for entity, activation in fired.items() if activation > 0.0}

    def _insert(self, record: Record) -> None:
        mentioned = entities_of(record, self.limits.entities)
        self._mentioned[record.id] = mentioned
        self._made[record.id] = record.created_at.timestamp()
        heappush(self._oldest, (self._made[record.id], record.id))
        if len(self._oldest) > 2 * len(self._mentioned) + _SLACK:  # what was removed is there yet
            self._oldest = [(made, one) for one, made in self._made.items()]
            heapify(self._oldest)
        for entity in mentioned:
            self._records.setdefault(entity, set()).add(record.id)

    def _remove(self, record_id: str) -> None:
        self._made.pop(record_id, None)
        for entity in self._mentioned.pop(record_id, ()):
            mentioning = self._records[entity]
            mentioning.discard(record_id)
            if not mentioning:
                del self._records[entity]


# ---- A store whose recall follows the network ----


class Association(Value):
    """How far recall follows what ties records."""

    weight: float = Field(default=0.85, ge=0.0, le=1.0)
    """What a score counts that was found by way of an entity which the query does not name."""
    bridges: int = Field(default=3, ge=1)
    """By way of so many entities recall goes, the most active ones."""
    each: int = Field(default=2, ge=1)
    """By way of each at most so many further records are found, the best ones."""
    begin_with: int = Field(default=1, ge=0)
    """The entities of so many of the best records are activated too, by their scores."""
    steps: int = Field(default=2, ge=1)
    """How many records deep activation goes; 2 for what two records say together."""
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
    what the best record mentions; the most active entities besides are bridges. The
    query is put to each of them, the bridge standing in the place of what led to it, and the
    best further records that mention it come in by their scores, lessened. A search without a
    ranking, or without a text, is the other store's alone.

    The networks are built at the first recall, from everything that the store holds, and kept
    current by what is written through here; what other processes write to the same store is
    known from the next opening on.

    Args:
        store: Where the records are; closed by `close`.
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
        """See `WrappedStore.wrapping`; the networks are built again from the records."""
        if type(self) is not AssociativeStore:
            return None
        return Associating(association=self.association, limits=self.limits)

    async def network(self, scope: str) -> SemanticNetwork:
        """The network of a scope, as it is now."""
        return self._network_in(await self._built(), scope)

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
            for bridge in self._bridges(networks[scope], search, hits)
        ]
        for hit in chain.from_iterable(await asyncio.gather(*ways)):
            known = best.setdefault(hit.record.id, hit)
            if known.score < hit.score:
                best[hit.record.id] = hit
        return ranked(best.values(), search.k)

    def _bridges(
        self, network: SemanticNetwork, search: Search, hits: Sequence[RecalledRecord]
    ) -> list[tuple[str, str]]:
        """The most active entities besides those the query names, and the query put to each.

        There the entity takes the place of the one that led to it, or follows the query.
        """
        how, text = self.association, search.text or ""
        named = network.named_in(text)
        seeds = dict.fromkeys(named, 1.0)
        for hit in hits[: how.begin_with]:
            mentioned = network.entities(hit.record.id)
            for entity in mentioned:
                seeds[entity] = seeds.get(entity, 0.0) + hit.score / len(mentioned)
        active = network.activation(seeds, steps=how.steps, decay=how.decay, links=search.links)
        leading = [one for one in active if one not in named and len(network.records_of(one)) > 1]
        best = nsmallest(how.bridges, leading, key=lambda one: (-active[one], one))
        led = ((one, next((n for n in named if network.ties(n, one)), "")) for one in best)
        return [(one, with_name(text, old, one)) for one, old in led]

    async def _by_way(
        self,
        network: SemanticNetwork,
        bridge: tuple[str, str],
        search: Search,
        known: Collection[str],
    ) -> list[RecalledRecord]:
        """What answers the query put to an entity, mentions it and is not known yet."""
        (entity, text), how = bridge, self.association
        found = await self.store.search(replace(search, text=text, scopes=(network.scope,)))
        new = (hit for hit in found if hit.record.id not in known)
        good = (hit for hit in new if entity in network.entities(hit.record.id))
        less = [_lessened(hit, how.weight) for hit in islice(good, how.each)]
        return [hit for hit in less if hit.score >= (search.min_score or 0.0)]

    async def _built(self) -> dict[str, SemanticNetwork]:
        if self._networks is None:
            async with self._changing:
                if self._networks is None:  # nobody else built them meanwhile
                    networks: dict[str, SemanticNetwork] = {}
                    async for some in self.store.scan():
                        for record in some:
                            self._network_in(networks, record.scope).put([record])
                    self._networks = networks
        return self._networks

    @asynccontextmanager
    async def _change(self) -> AsyncGenerator[None]:
        """One write at a time; after one that failed, the networks are built again."""
        async with self._changing:
            try:
                yield
            except BaseException:
                self._networks = None
                raise

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


def with_name(text: str, old: str, new: str) -> str:
    """A text with one entity in the place of another, or behind it if the other is not named."""
    words = r"[\W_]+".join(map(re.escape, old.split()))
    put, count = re.subn(rf"(?<![^\W_]){words}(?![^\W_])", lambda _: new, text, flags=re.IGNORECASE)
    return put if old and count else f"{text} {new}"


def _lessened(hit: RecalledRecord, weight: float) -> RecalledRecord:
    why = hit.why
    if why is not None:
        parts = {name: round(weight * part, 4) for name, part in why.model_dump().items()}
        why = ScoreParts(**parts)
    return RecalledRecord(record=hit.record, score=weight * hit.score, why=why)
