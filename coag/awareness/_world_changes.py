"""What an observation changes in the world model."""

from __future__ import annotations

from ._beliefs import settle_all
from ._observation import Observation, ObservedEntity, ObservedRelationship
from ._resolving import NameIndex, NameResolver, WorldIndex
from ._telling_apart import told_apart
from .state import Entity, Merge, Relationship, WorldModel


def world_with(
    world: WorldModel, observation: Observation, step: int, resolver: NameResolver
) -> WorldModel:
    """The world with the entities and relationships that were noticed.

    An entity that is known, by whatever of its names, is brought up to date; another is added.
    """
    if not observation.entities and not observation.relationships:
        return world
    entities = list(world.entities)
    index = resolver.index_of(world)
    merges = [
        merge
        for seen in told_apart(observation.entities, index.names)
        if (merge := _upsert(entities, index.names, seen, step, resolver.settings.kept_aliases))
    ]
    edges = _edges(world.relationships, observation.relationships, entities, index, step)
    known_merges = (*world.merges, *merges)
    recent = known_merges[max(0, len(known_merges) - resolver.settings.kept_merges) :]
    changed = world.model_copy(
        update={"entities": tuple(entities), "relationships": edges, "merges": recent}
    )
    resolver.keep(changed, index)
    return changed


def _upsert(
    entities: list[Entity], names: NameIndex, seen: ObservedEntity, step: int, kept_aliases: int
) -> Merge | None:
    """Adds what was noticed, or brings it up to date; the merge, if its name is another one."""
    found = names.find(seen.name, seen.type)
    if found is None:
        entities.append(_new(seen, step))
        names.add(entities[-1])
        return None
    known = entities[found.position]
    merge = None
    if seen.name != known.name and seen.name not in known.aliases:
        merge = Merge(
            name=seen.name, entity=known.name, how=found.how, score=found.score, step=step
        )
        if len(known.aliases) < kept_aliases:
            known = known.model_copy(update={"aliases": (*known.aliases, seen.name)})
            names.learn(found.position, seen.name)
    entities[found.position] = _brought_up_to_date(known, seen, step)
    return merge


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


def _edges(
    known: tuple[Relationship, ...],
    seen: tuple[ObservedRelationship, ...],
    entities: list[Entity],
    index: WorldIndex,
    step: int,
) -> tuple[Relationship, ...]:
    """The relationships with those that were noticed; one that is known is only seen again."""
    if not seen:
        return known
    edges = list(known)
    for edge in seen:
        source, target = (
            end if position is None else entities[position].name
            for end, position in (
                (end, index.names.position_of(end)) for end in (edge.source, edge.target)
            )
        )
        now = Relationship(source=source, type=edge.type, target=target, step=step)
        place = index.edges.setdefault((source, edge.type, target), len(edges))
        edges[place : place + 1] = [now]
    return tuple(edges)


def with_beliefs(
    world: WorldModel, observation: Observation, step: int, resolver: NameResolver
) -> WorldModel:
    """The world with what is assumed, what is not known, and what of both is settled now.

    Raises:
        ObservationError: What is settled was not open.
    """
    if not (observation.assumptions or observation.unknowns or observation.resolved):
        return world
    assumptions, unknowns = resolver.beliefs_of(world)
    assumptions.say(observation.assumptions, step)
    unknowns.say(observation.unknowns, step)
    settle_all(assumptions, unknowns, observation.resolved, step)
    resolver.keep_beliefs(assumptions, unknowns)
    return world.model_copy(
        update={"assumptions": assumptions.beliefs, "unknowns": unknowns.beliefs}
    )
