"""What leaves the world model."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from coag.awareness.state import Belief, Entity, Relationship, WorldModel
from coag.schema import Value

from ._activation import activation_of, fresh_since
from ._mentions import named_by
from ._settings import DecaySettings


class DecayedWorld(Value):
    """A world without what faded, and that."""

    world: WorldModel
    entities: tuple[Entity, ...] = ()
    relationships: tuple[Relationship, ...] = ()


def decayed_world(
    world: WorldModel,
    step: int,
    settings: DecaySettings,
    *,
    held: Iterable[str] = (),
    salient: Iterable[str] = (),
) -> DecayedWorld:
    """The world without what faded.

    An entity leaves whose activation is under the threshold, or for which there is no room, unless
    a held text names it, or a fresh relationship leads to it from one that stays. A relationship
    leaves with one of its ends, or where no end is an entity when it is stale.

    Args:
        world: The world.
        step: The present step.
        settings: Threshold and bounds.
        held: Texts; what they name stays.
        salient: Texts; what they name fades more slowly.
    """
    edges = _latest(world.relationships, settings.most_relationships)
    since = fresh_since(step, settings)
    others = _faded(world.entities, step, settings, since, salient)
    if others:
        names = {one.name for one in world.entities}
        staying = names.difference(one.name for one in others) | named_by(held, others)
        staying = _with_neighbours(staying, [one for one in edges if one.step >= since], names)
        others = [one for one in others if one.name not in staying]
    gone = {one.name for one in others}
    left = _linked(edges, world, gone, since)
    all_left = len(left) == len(world.relationships)
    changed = world.model_copy(
        update={
            "entities": tuple(one for one in world.entities if one.name not in gone)
            if gone
            else world.entities,
            "relationships": world.relationships if all_left else left,
            "assumptions": _settled_first_gone(world.assumptions, settings.most_beliefs),
            "unknowns": _settled_first_gone(world.unknowns, settings.most_beliefs),
        }
    )
    remaining = set[int]() if all_left else {id(one) for one in left}
    lost = () if all_left else world.relationships
    return DecayedWorld(
        world=changed,
        entities=tuple(others),
        relationships=tuple(one for one in lost if id(one) not in remaining),
    )


def _faded(
    entities: tuple[Entity, ...],
    step: int,
    settings: DecaySettings,
    since: float,
    salient: Iterable[str],
) -> list[Entity]:
    """Those that are under the threshold, or among the least active where there is no room.

    Only what would leave is looked for in texts, and only where there are too many is it reckoned
    by how much they are over it.
    """
    weak = [
        one
        for one in entities
        if one.last_step < since
        and (one.mentions <= 1 or _activation(one, step, settings) < settings.threshold)
    ]
    if not weak and len(entities) <= settings.most_entities:
        return weak
    told = named_by(salient, weak)
    out = {
        one.name
        for one in weak
        if one.name not in told or _activation(one, step, settings, told) < settings.threshold
    }
    strong = [one for one in entities if one.name not in out]
    if len(strong) > settings.most_entities:
        strong.sort(key=lambda one: -_activation(one, step, settings, told))
        out |= {one.name for one in strong[settings.most_entities :]}
    return [one for one in entities if one.name in out]


def _activation(
    entity: Entity, step: int, settings: DecaySettings, told: Collection[str] = ()
) -> float:
    return activation_of(entity, step, settings, salient=entity.name in told)


def _with_neighbours(
    staying: set[str], edges: list[Relationship], entities: Collection[str]
) -> set[str]:
    """The names with those of entities that edges lead to from them, however many edges away."""
    beside: dict[str, list[str]] = {}
    for edge in edges:
        beside.setdefault(edge.source, []).append(edge.target)
        beside.setdefault(edge.target, []).append(edge.source)
    found, todo = set(staying), list(staying)
    while todo:
        for name in beside.get(todo.pop(), ()):
            if name in entities and name not in found:
                found.add(name)
                todo.append(name)
    return found


def _linked(
    edges: tuple[Relationship, ...], world: WorldModel, gone: Collection[str], since: float
) -> tuple[Relationship, ...]:
    """The relationships that stay: with both ends, or, where no end is an entity, while fresh."""
    if not gone and all(one.step >= since for one in edges):
        return edges
    names = {one.name for one in world.entities}
    return tuple(
        one
        for one in edges
        if (
            one.source not in gone and one.target not in gone
            if one.source in names or one.target in names
            else one.step >= since
        )
    )


def _latest(edges: tuple[Relationship, ...], most: int) -> tuple[Relationship, ...]:
    """The relationships seen last, in the order in which they stood."""
    if len(edges) <= most:
        return edges
    places = sorted(range(len(edges)), key=lambda place: (edges[place].step, place))
    kept = sorted(places[len(edges) - most :])
    return tuple(edges[place] for place in kept)


def _settled_first_gone(beliefs: tuple[Belief, ...], most: int) -> tuple[Belief, ...]:
    """The beliefs that there is room for: open ones first, then the latest."""
    if len(beliefs) <= most:
        return beliefs
    places = sorted(
        range(len(beliefs)),
        key=lambda place: (beliefs[place].resolved is None, beliefs[place].step, place),
    )
    kept = sorted(places[len(beliefs) - most :])
    return tuple(beliefs[place] for place in kept)
