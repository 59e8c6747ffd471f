"""How activation spreads over a network of entities and records: a pure rule.

Each entity that is woken shares what it has out among the records that mention it, so that one
which everything mentions says little of each (the fan effect, Anderson 1983). Each record shares
what reached it, lessened by a decay, out among the entities that it mentions; these wake in turn
(Collins and Loftus 1975). An entity wakes once: activation does not run in circles.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol


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
