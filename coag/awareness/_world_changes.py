"""What an observation changes in the world model."""

from __future__ import annotations

from coag.errors import ObservationError

from ._observation import Observation, ObservedEntity, ObservedRelationship
from ._resolving import Found, NameIndex, NameResolver
from .state import Belief, Entity, Merge, Relationship, WorldModel, folded


def world_with(
    world: WorldModel, observation: Observation, step: int, resolver: NameResolver
) -> WorldModel:
    """The world with the entities and relationships that were noticed.

    An entity that is known, by whatever of its names, is brought up to date; another is added.
    """
    if not observation.entities and not observation.relationships:
        return world
    entities = list(world.entities)
    index = resolver.index_of(world.entities)
    merges: list[Merge] = []
    for seen in observation.entities:
        found = index.find(seen.name, seen.type)
        if found is None:
            entity = _new(seen, step)
            entities.append(entity)
            index.add(entity)
            continue
        known = entities[found.position]
        if seen.name != known.name and seen.name not in known.aliases:
            merges.append(_merge(seen.name, known, found, step))
            if len(known.aliases) < resolver.settings.kept_aliases:
                known = known.model_copy(update={"aliases": (*known.aliases, seen.name)})
                index.learn(found.position, seen.name)
        entities[found.position] = _brought_up_to_date(known, seen, step)
    edges = _edges(world, observation.relationships, entities, index, step)
    kept = tuple(entities)
    resolver.keep(kept, index)
    known_merges = (*world.merges, *merges)
    recent = known_merges[max(0, len(known_merges) - resolver.settings.kept_merges) :]
    return world.model_copy(update={"entities": kept, "relationships": edges, "merges": recent})


def _new(seen: ObservedEntity, step: int) -> Entity:
    return Entity(
        name=seen.name,
        type=seen.type,
        state=seen.state,
        affordances=seen.affordances,
        first_step=step,
        last_step=step,
    )


def _brought_up_to_date(known: Entity, seen: ObservedEntity, step: int) -> Entity:
    """The entity with its state overlaid and its affordances added to; its type stays."""
    new = tuple(one for one in seen.affordances if one not in known.affordances)
    return known.model_copy(
        update={
            "state": {**known.state, **seen.state},
            "affordances": known.affordances + new,
            "last_step": step,
            "mentions": known.mentions + 1,
        }
    )


def _merge(name: str, known: Entity, found: Found, step: int) -> Merge:
    return Merge(name=name, entity=known.name, how=found.how, score=found.score, step=step)


def _edges(
    world: WorldModel,
    seen: tuple[ObservedRelationship, ...],
    entities: list[Entity],
    index: NameIndex,
    step: int,
) -> tuple[Relationship, ...]:
    """The relationships with those that were noticed; one that is known is only seen again."""
    if not seen:
        return world.relationships
    edges = {(edge.source, edge.type, edge.target): edge for edge in world.relationships}
    for edge in seen:
        source, target = (
            end if position is None else entities[position].name
            for end, position in (
                (end, index.position_of(end)) for end in (edge.source, edge.target)
            )
        )
        edges[source, edge.type, target] = Relationship(
            source=source, type=edge.type, target=target, step=step
        )
    return tuple(edges.values())


def beliefs_with(known: tuple[Belief, ...], said: tuple[str, ...], step: int) -> tuple[Belief, ...]:
    """The beliefs with those that are new; one that is open already is not said twice."""
    open_ones = {folded(one.text) for one in known if one.resolved is None}
    new: list[Belief] = []
    for text in said:
        if folded(text) not in open_ones:
            open_ones.add(folded(text))
            new.append(Belief(text=text, step=step))
    return (*known, *new) if new else known


def world_settled(world: WorldModel, resolved: tuple[str, ...], step: int) -> WorldModel:
    """The world with these assumptions and unknowns settled.

    Raises:
        ObservationError: One of them is not open.
    """
    if not resolved:
        return world
    open_ones = {folded(one.text) for one in (*world.open_assumptions, *world.open_unknowns)}
    for place, text in enumerate(resolved):
        if folded(text) not in open_ones:
            raise ObservationError(
                f"resolved[{place}]",
                f"no open assumption or unknown says {text!r}; give it as it was said.",
            )
    settled = {folded(text) for text in resolved}
    return world.model_copy(
        update={
            "assumptions": _settled(world.assumptions, settled, step),
            "unknowns": _settled(world.unknowns, settled, step),
        }
    )


def _settled(known: tuple[Belief, ...], settled: set[str], step: int) -> tuple[Belief, ...]:
    return tuple(
        one.model_copy(update={"resolved": step})
        if one.resolved is None and folded(one.text) in settled
        else one
        for one in known
    )
