"""One domain's part of a state that several share: what it is called outside, and its own view."""

from __future__ import annotations

from coag.awareness._observation import Observation, ObservedEntity
from coag.awareness.state import AwarenessState, Entity, Plain

from ._per_entity import PerEntity

_TYPE = "type"


class Namespace:
    """The names of a domain's types and of what it notes on entities: `coding:file`.

    An entity's type is that of the domain that saw it first. What each domain takes it for stands
    in the entity's state as `coding:type`, beside what the domain notes there.
    """

    def __init__(self, domain: str) -> None:
        self._domain = domain
        self._prefix = f"{domain}:"
        self._views = PerEntity(self._inward)

    def outward(self, name: str) -> str:
        """A name of the domain as it stands in the shared state."""
        return f"{self._prefix}{name}"

    def observed(self, observation: Observation) -> Observation:
        """What the domain observed, as it goes into the shared state."""
        return observation.model_copy(
            update={
                "entities": tuple(map(self._entity_outward, observation.entities)),
                "relationships": tuple(
                    edge.model_copy(update={"type": self.outward(edge.type)})
                    for edge in observation.relationships
                ),
            }
        )

    def view(self, state: AwarenessState) -> AwarenessState:
        """The state as the domain alone would have it; goals, attention and the rest are common."""
        views = self._views(state.world.entities)
        world = state.world.model_copy(
            update={
                "entities": tuple(one for one in views if one is not None),
                "relationships": tuple(
                    edge.model_copy(update={"type": edge.type.removeprefix(self._prefix)})
                    for edge in state.world.relationships
                    if edge.type.startswith(self._prefix)
                ),
            }
        )
        return state.model_copy(update={"domain": self._domain, "world": world})

    def _entity_outward(self, seen: ObservedEntity) -> ObservedEntity:
        state: dict[str, Plain] = {self.outward(key): value for key, value in seen.state.items()}
        state[self.outward(_TYPE)] = seen.type
        return seen.model_copy(update={"type": self.outward(seen.type), "state": state})

    def _inward(self, entity: Entity) -> Entity | None:
        """The entity as the domain noted it; None if it never did."""
        type = entity.state.get(self.outward(_TYPE))
        if not isinstance(type, str):
            return None
        state = {
            key.removeprefix(self._prefix): value
            for key, value in entity.state.items()
            if key.startswith(self._prefix) and key != self.outward(_TYPE)
        }
        return entity.model_copy(update={"type": type, "state": state})
