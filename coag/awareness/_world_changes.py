"""What an observation changes in the world model."""

from __future__ import annotations

from coag.errors import ObservationError

from ._observation import Observation, ObservedEntity, ObservedRelationship
from ._resolving import NameIndex, NameResolver, WorldIndex
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
    index = resolver.index_of(world)
    merges = [
        merge
        for seen in observation.entities
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
