"""What leaves the world model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from coag.awareness.state import Belief, Entity, Relationship, WorldModel
from coag.schema import Value

from ._activation import activation_of, freshness_of
from ._mentions import Named
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
    activation = _activations(world, step, settings, Named(salient))
    edges = _latest(world.relationships, settings.most_relationships)
    staying = _strong(activation, settings)
    if len(staying) < len(world.entities):
        named = Named(held)
        staying |= {one.name for one in world.entities if named.names(one)}
        fresh = [one for one in edges if freshness_of(one, step, settings) >= settings.threshold]
        staying = _with_neighbours(staying, fresh, activation.keys())
    kept = tuple(one for one in world.entities if one.name in staying)
    gone = {one.name for one in world.entities} - staying
    left = tuple(one for one in edges if not _leaves(one, activation, gone, step, settings))
    changed = world.model_copy(
        update={
            "entities": kept if gone else world.entities,
            "relationships": left if len(left) < len(world.relationships) else world.relationships,
            "assumptions": _settled_first_gone(world.assumptions, settings.most_beliefs),
            "unknowns": _settled_first_gone(world.unknowns, settings.most_beliefs),
        }
    )
    remaining = {id(one) for one in left}
    return DecayedWorld(
        world=changed,
        entities=tuple(one for one in world.entities if one.name in gone),
        relationships=tuple(one for one in world.relationships if id(one) not in remaining),
    )


def _activations(
    world: WorldModel, step: int, settings: DecaySettings, salient: Named
) -> dict[str, float]:
    """Each entity's activation by its name; only one that would leave is looked for in texts."""
    found: dict[str, float] = {}
    for entity in world.entities:
        plain = activation_of(entity, step, settings, salient=False)
        if plain < settings.threshold and salient.names(entity):
            plain = activation_of(entity, step, settings, salient=True)
        found[entity.name] = plain
    return found


def _strong(activation: Mapping[str, float], settings: DecaySettings) -> set[str]:
    """The names over the threshold, the most active ones as far as there is room."""
    strong = [name for name, value in activation.items() if value >= settings.threshold]
    if len(strong) > settings.most_entities:
        strong.sort(key=lambda name: -activation[name])
    return set(strong[: settings.most_entities])


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


def _leaves(
    edge: Relationship,
    activation: Mapping[str, float],
    gone: set[str],
    step: int,
    settings: DecaySettings,
) -> bool:
    ends = (edge.source, edge.target)
    if any(end in activation for end in ends):
        return any(end in gone for end in ends)
    return freshness_of(edge, step, settings) < settings.threshold


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
