"""Several domains on one state, which the paper leaves open (SAGEN §7.6, §8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from coag.awareness.fields import Scalar, distinct
from coag.awareness.injection import InjectionBlock, merge_blocks
from coag.awareness.observation import Observation, ObservedEntity, ObservedEvent, ObservedFailure
from coag.awareness.state import (
    AwarenessState,
    CollaborationMode,
    Entity,
    InteractionProtocol,
    ScanPattern,
    TransitionType,
)
from coag.errors import ConfigurationError, ObservationError

from .domain_adapter import DomainAdapter, PerEntity

# ---- One domain's part of the shared state ----

_TYPE = "type"


class _Namespace:
    """The names of a domain's types and of the keys in entities' states: `coding:file`.

    An entity's type is that of the domain that saw it first. The type that each domain gives it is
    in the entity's state as `coding:type`, beside that domain's other keys.
    """

    def __init__(self, domain: str) -> None:
        self._domain = domain
        self._prefix = f"{domain}:"
        self._views = PerEntity(self._inward)

    def outward(self, name: str) -> str:
        return f"{self._prefix}{name}"

    def observed(self, observation: Observation) -> Observation:
        """An observation of the domain, for the shared state."""

        def entity(observed: ObservedEntity) -> ObservedEntity:
            state = {self.outward(key): value for key, value in observed.state.items()}
            state[self.outward(_TYPE)] = observed.type
            type = self.outward(observed.type)
            return observed.model_copy(update={"type": type, "state": state})

        edges = (
            edge.model_copy(update={"type": self.outward(edge.type)})
            for edge in observation.relationships
        )
        return observation.model_copy(
            update={
                "entities": tuple(map(entity, observation.entities)),
                "relationships": tuple(edges),
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

    def _inward(self, entity: Entity) -> Entity | None:
        """The entity as the domain observed it; None if it never did."""
        type = entity.state.get(self.outward(_TYPE))
        if not isinstance(type, str):
            return None
        state: dict[str, Scalar] = {
            key.removeprefix(self._prefix): value
            for key, value in entity.state.items()
            if key.startswith(self._prefix) and key != self.outward(_TYPE)
        }
        return entity.model_copy(update={"type": type, "state": state})


# ---- Several observations as one ----

_BY_WEIGHT = (
    TransitionType.FAILURE,
    TransitionType.REVERSAL,
    TransitionType.DISCOVERY,
    TransitionType.PIVOT,
    TransitionType.BRANCH,
    TransitionType.EXTERNAL_EVENT,
    TransitionType.PROGRESS,
)
"""Of several events in one step the one of most consequence gives the type."""


def _merged(found: Mapping[str, Observation]) -> Observation:
    """All that the domains observed. A step has one event and one failure: several are joined."""
    merged: dict[str, Any] = {
        name: tuple(one for each in found.values() for one in getattr(each, name))
        for name in Observation.model_fields
        if name not in ("event", "failure")
    }
    for name in ("assumptions", "unknowns", "resolved"):
        merged[name] = distinct(merged[name])
    events = {name: one.event for name, one in found.items() if one.event}
    failures = [one.failure for one in found.values() if one.failure]
    return Observation(**merged, event=_one_event(events), failure=_one_failure(failures))


def _one_event(events: Mapping[str, ObservedEvent]) -> ObservedEvent | None:
    ordered = sorted(events, key=lambda name: _BY_WEIGHT.index(events[name].type))
    if len(ordered) < 2:
        return events[ordered[0]] if ordered else None
    return ObservedEvent(
        type=events[ordered[0]].type,
        description="; ".join(f"{name}: {events[name].description}" for name in ordered),
        detail={
            f"{name}:{key}": value for name in ordered for key, value in events[name].detail.items()
        },
    )


def _one_failure(failures: Sequence[ObservedFailure]) -> ObservedFailure | None:
    if len(failures) < 2:
        return failures[0] if failures else None
    parts = {
        name: "; ".join(filter(None, (getattr(one, name) for one in failures)))
        for name in ObservedFailure.model_fields
    }
    return ObservedFailure(**parts)


# ---- The composite ----

_BY_STRICTNESS = (
    CollaborationMode.AUTONOMOUS,
    CollaborationMode.COLLABORATIVE,
    CollaborationMode.SUPERVISED,
    CollaborationMode.ADVISORY,
)


class CompositeAdapter(DomainAdapter):
    """Several domains as one: one state, one set of goals, one attention, one budget.

    `parse_observation` takes the input of each domain under its name: `{"coding": {...},
    "conversation": {...}}`. Types become `coding:file`. A thing that two domains know is one
    entity; each domain sees of it what it observed itself. The budget of an injection is shared by
    urgency: goals, attention and trajectory are common, and the domains' own blocks compete by how
    urgent and how recent their items are.

    Args:
        parts: The domains, at least two, each with another name. Their `domain_blocks` are shown;
            a `format_for_injection` of their own is not used.

    Raises:
        ConfigurationError: There are fewer than two, two have the same name, or one has `:` in it.
    """

    def __init__(self, parts: Sequence[DomainAdapter]) -> None:
        names = [part.domain_name for part in parts]
        if len(parts) < 2 or len(set(names)) < len(names) or any(":" in name for name in names):
            raise ConfigurationError(
                "A CompositeAdapter takes two adapters or more, with domain names that differ "
                f"and have no ':' in them, not {names!r}."
            )
        self._parts = {part.domain_name: (part, _Namespace(part.domain_name)) for part in parts}

    @property
    def domain_name(self) -> str:
        """The domains' names, as `coding+conversation`."""
        return "+".join(self._parts)

    def define_entity_types(self) -> tuple[str, ...]:
        """Those of all domains as `coding:file`; any, if one of them takes any."""
        return self._all_or_any(lambda part: part.define_entity_types())

    def define_relationship_types(self) -> tuple[str, ...]:
        """Those of all domains as `coding:imports`; any, if one of them takes any."""
        return self._all_or_any(lambda part: part.define_relationship_types())

    def define_scan_patterns(self) -> tuple[ScanPattern, ...]:
        """Those of all domains, named as `coding: scope creep`."""
        return tuple(
            ScanPattern(name=f"{name}: {pattern.name}", description=pattern.description)
            for name, (part, _) in self._parts.items()
            for pattern in part.define_scan_patterns()
        )

    def define_protocol_defaults(self) -> InteractionProtocol:
        """All rules of all domains, and the strictest mode: advisory, supervised, collaborative."""
        protocols = [part.define_protocol_defaults() for part, _ in self._parts.values()]
        formats = distinct(one.output_format for one in protocols if one.output_format)
        return InteractionProtocol(
            style="; ".join(distinct(one.style for one in protocols if one.style)),
            output_format="; ".join(formats),
            escalation=distinct(rule for one in protocols for rule in one.escalation),
            mode=max((one.mode for one in protocols), key=_BY_STRICTNESS.index),
            hard_constraints=distinct(rule for one in protocols for rule in one.hard_constraints),
        )

    def parse_observation(self, raw: Mapping[str, object], state: AwarenessState) -> Observation:
        """What each domain reads in its part of the input, as one observation."""
        for name in raw:
            if name not in self._parts:
                raise ObservationError(
                    str(name), f"there is no such domain; known are {', '.join(self._parts)}."
                )
        observations: dict[str, Observation] = {}
        for name, (part, space) in self._parts.items():
            if name not in raw:
                continue
            value = raw[name]
            if not isinstance(value, Mapping):
                raise ObservationError(
                    name,
                    f"must be a mapping, what the domain takes, not {type(value).__name__}.",
                )
            fields = cast("Mapping[str, object]", value)
            try:
                seen = part.parse_observation(fields, space.view(state))
            except ObservationError as error:
                path = ".".join(filter(None, (name, error.path)))
                raise ObservationError(path, error.problem) from error
            observations[name] = space.observed(seen)
        return _merged(observations)

    def domain_blocks(self, state: AwarenessState) -> tuple[InjectionBlock, ...]:
        """The blocks of each domain, for its own view of the state."""
        return merge_blocks(
            block
            for part, space in self._parts.values()
            for block in part.domain_blocks(space.view(state))
        )

    def _all_or_any(self, of: Callable[[DomainAdapter], tuple[str, ...]]) -> tuple[str, ...]:
        every = [(space, of(part)) for part, space in self._parts.values()]
        if not all(types for _, types in every):
            return ()
        return tuple(space.outward(type) for space, types in every for type in types)
