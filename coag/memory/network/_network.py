"""The network of one scope: which records mention which entities."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from pydantic import Field

from coag.schema import Record, Value

from ._entities import LONGEST_NAME, entities_of, entity_named, words_of
from ._spreading import ASLEEP, Activation, spread


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
