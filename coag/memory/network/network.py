"""The semantic network: names in texts, and activation that spreads between them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Protocol

from pydantic import Field

from coag.schema import Record, Value

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
    """The entities that a record mentions, each once, those of its fields first.

    These are the subject and the value of its fact, the place of its event, and the names in its
    text: words written with a capital, several in a row being one name, with the numbers behind
    them. Who said it is none of them.

    Args:
        record: The record.
        most: At most so many; of a longer text the first ones count.
    """
    named = filter(None, map(entity_named, _mentions(record)))
    return tuple(dict.fromkeys(named))[:most]


def with_name(text: str, old: str, new: str) -> str:
    """A text in which one entity stands for another; behind it, where it names the other nowhere.

    Args:
        text: What is said, in any writing.
        old: The entity that it names.
        new: The entity to put in its place.
    """
    words = r"[\W_]+".join(map(re.escape, old.split()))
    put, count = re.subn(rf"(?<![^\W_]){words}(?![^\W_])", lambda _: new, text, flags=re.IGNORECASE)
    return put if old and count else f"{text} {new}"


def _mentions(record: Record) -> Iterator[str]:
    if record.fact is not None:
        yield record.fact.subject
        yield record.fact.value
    if record.event is not None:
        yield record.event.place
    yield from _names(record.text)


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


# ---- How activation spreads over a network of entities and records: a pure rule ----
#
# Each entity that is woken shares what it has out among the records that mention it, so that one
# which everything mentions says little of each (the fan effect, Anderson 1983). Each record
# shares what reached it, lessened by a decay, out among the entities that it mentions; these wake
# in turn (Collins and Loftus 1975). An entity wakes once: activation does not run in circles.


class Links(Protocol):
    """What is tied to what."""

    def records_of(self, entity: str) -> Collection[str]:
        """The records over which an entity spreads; none if it is too common to say anything."""
        ...

    def mentioned_in(self, record_id: str) -> Collection[str]:
        """The entities that a record mentions."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """How awake everything is that was reached; the rest is not awake at all."""

    entities: Mapping[str, float]
    """By entity, above 0; those that began have what they began with, all together 1."""
    records: Mapping[str, float]
    """By record id, above 0."""
    via: Mapping[str, str]
    """By record id, the entity from which it has most."""

    def best(self, most: int) -> list[str]:
        """The records that are most awake, best first; equal ones by id."""
        return _strongest(self.records, most)


ASLEEP = Activation(entities={}, records={}, via={})
"""Nothing is awake."""


def spread(
    seeds: Mapping[str, float],
    links: Links,
    *,
    steps: int = 2,
    decay: float = 0.5,
    least: float = 1e-4,
    most: int = 64,
) -> Activation:
    """What wakes when some entities are thought of.

    Args:
        seeds: The entities that begin, with weights above 0; only their proportions count.
        links: The network.
        steps: How many records deep it goes; 2 for what two records together tell.
        decay: What is left of the activation when it leaves a record, 0..1.
        least: An entity with less does not wake others.
        most: At each step only so many entities wake others, the strongest ones.
    """
    whole = sum(weight for _, weight in sorted(seeds.items()) if weight > 0.0)
    firing = {one: weight / whole for one, weight in seeds.items() if weight > 0.0}
    entities = dict(firing)
    records: dict[str, float] = {}
    strongest: dict[str, tuple[float, str]] = {}
    for _ in range(steps):
        reached: dict[str, float] = {}
        for entity in sorted(_strongest(firing, most, least)):
            among = links.records_of(entity)
            for one in among:
                given = firing[entity] / len(among)
                reached[one] = reached.get(one, 0.0) + given
                strongest[one] = max(strongest.get(one, (0.0, "")), (given, entity))
        for one, given in reached.items():
            records[one] = records.get(one, 0.0) + given
        firing = _woken(reached, links, decay, entities)
        entities.update(firing)
    via = {one: entity for one, (_, entity) in strongest.items()}
    return Activation(entities=entities, records=records, via=via)


def _woken(
    reached: Mapping[str, float], links: Links, decay: float, awake: Collection[str]
) -> dict[str, float]:
    """The entities that these records wake, besides those that are awake."""
    woken: dict[str, float] = {}
    for one in sorted(reached):
        mentioned = links.mentioned_in(one)
        for entity in mentioned:
            if entity not in awake:
                given = decay * reached[one] / len(mentioned)
                woken[entity] = woken.get(entity, 0.0) + given
    return {entity: given for entity, given in woken.items() if given > 0.0}


def _strongest(of: Mapping[str, float], most: int, least: float = 0.0) -> list[str]:
    enough: Iterable[str] = (one for one, given in of.items() if given >= least)
    return sorted(enough, key=lambda one: (-of[one], one))[:most]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """An entity that is tied to another one."""

    entity: str
    records: tuple[str, ...]
    """Ids of the records that mention both, in their order."""


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
        """How many records it knows."""
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
            for end in range(min(len(words), start + LONGEST_NAME), start, -1):
                name = " ".join(words[start:end])
                if name in self._records:
                    found[name] = None
                    start = end - 1
                    break
            start += 1
        return tuple(found)

    def neighbours(self, entity: str) -> tuple[Neighbour, ...]:
        """The entities that some record mentions together with this one, in their order."""
        tied: dict[str, list[str]] = {}
        own = entity_named(entity)
        for one in sorted(self._records.get(own, ())):
            for other in self._mentioned[one]:
                if other != own:
                    tied.setdefault(other, []).append(one)
        return tuple(Neighbour(entity=other, records=tuple(tied[other])) for other in sorted(tied))

    def ties(self, one: str, other: str) -> tuple[str, ...]:
        """Ids of the records that mention both entities, in their order."""
        both = self._of(one) & self._of(other)
        return tuple(sorted(both))

    def records_of(self, entity: str) -> Collection[str]:
        """The records over which an entity spreads; none if it is too common to say anything."""
        found = self._records.get(entity, frozenset[str]())
        share = self.limits.common * len(self._mentioned)
        return found if len(found) <= max(share, self.limits.never_common) else frozenset[str]()

    def mentioned_in(self, record_id: str) -> Collection[str]:
        """The entities that a record mentions."""
        return self._mentioned.get(record_id, ())

    def activation(
        self, seeds: str | Mapping[str, float], *, steps: int = 2, decay: float = 0.5
    ) -> Activation:
        """What wakes at the thought of something, see `spread`.

        Args:
            seeds: A text, of which every known entity that it names begins alike; or entities
                with their weights, of which unknown ones do nothing.
            steps: How many records deep it goes.
            decay: What is left of the activation when it leaves a record, 0..1.
        """
        weights = dict.fromkeys(self.named_in(seeds), 1.0) if isinstance(seeds, str) else seeds
        named = ((entity_named(one), weight) for one, weight in weights.items())
        known = {one: weight for one, weight in named if one in self._records}
        return spread(known, self, steps=steps, decay=decay) if known else ASLEEP

    def _of(self, entity: str) -> set[str]:
        return self._records.get(entity_named(entity), set())

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
