"""Several domains on one state, which the paper leaves open (SAGEN §7.6, §8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from coag.awareness._observation import Observation
from coag.awareness.injection import InjectionBlock, merge_blocks
from coag.awareness.state import (
    AwarenessState,
    CollaborationMode,
    InteractionProtocol,
    Names,
    ScanPattern,
    distinct,
)
from coag.errors import ConfigurationError, ObservationError

from ._domain_adapter import DomainAdapter
from ._merged_observation import merged_observation
from ._namespace import Namespace

_BY_STRICTNESS = (
    CollaborationMode.AUTONOMOUS,
    CollaborationMode.COLLABORATIVE,
    CollaborationMode.SUPERVISED,
    CollaborationMode.ADVISORY,
)


class CompositeAdapter(DomainAdapter):
    """Several domains as one: one state, one set of goals, one attention, one budget.

    `parse_observation` takes what each domain takes under its name: `{"coding": {...},
    "conversation": {...}}`. Types become `coding:file`. A thing that two domains know is one
    entity; each domain sees of it what it noted itself. The budget of an injection is shared by
    urgency: goals, attention and trajectory are common, and what the domains show besides
    competes for its place by how urgent and how fresh it is.

    Args:
        parts: The domains, at least two, each with another name. What they show is their
            `domain_blocks`; a `format_for_injection` of their own is not used.

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
        self._parts = {part.domain_name: (part, Namespace(part.domain_name)) for part in parts}

    @property
    def domain_name(self) -> str:
        """The domains' names, as `coding+conversation`."""
        return "+".join(self._parts)

    def define_entity_types(self) -> tuple[str, ...]:
        """Those of all domains as `coding:file`; any, if one of them takes any."""
        return _all_or_any(
            tuple(map(space.outward, part.define_entity_types()))
            for part, space in self._parts.values()
        )

    def define_relationship_types(self) -> tuple[str, ...]:
        """Those of all domains as `coding:imports`; any, if one of them takes any."""
        return _all_or_any(
            tuple(map(space.outward, part.define_relationship_types()))
            for part, space in self._parts.values()
        )

    def define_scan_patterns(self) -> tuple[ScanPattern, ...]:
        """Those of all domains, named as `coding: scope creep`."""
        return tuple(
            ScanPattern(name=f"{name}: {pattern.name}", description=pattern.description)
            for name, (part, _) in self._parts.items()
            for pattern in part.define_scan_patterns()
        )

    def define_protocol_defaults(self) -> InteractionProtocol:
        """All rules of all domains, and the strictest mode: advisory, supervised, collaborative."""
        given = [part.define_protocol_defaults() for part, _ in self._parts.values()]
        return InteractionProtocol(
            style="; ".join(distinct(one.style for one in given if one.style)),
            output_format="; ".join(
                distinct(one.output_format for one in given if one.output_format)
            ),
            escalation=_every([one.escalation for one in given]),
            mode=max((one.mode for one in given), key=_BY_STRICTNESS.index),
            hard_constraints=_every([one.hard_constraints for one in given]),
        )

    def parse_observation(self, raw: Mapping[str, object], state: AwarenessState) -> Observation:
        """What each domain makes of its part of the input, as one observation.

        Raises:
            ObservationError: A domain is unknown, or its part breaks that domain's schema.
        """
        for name in raw:
            if name not in self._parts:
                raise ObservationError(
                    str(name), f"there is no such domain; known are {', '.join(self._parts)}."
                )
        found: dict[str, Observation] = {}
        for name, (part, space) in self._parts.items():
            if name in raw:
                given = _mapping(name, raw[name])
                try:
                    seen = part.parse_observation(given, space.view(state))
                except ObservationError as error:
                    path = ".".join(filter(None, (name, error.path)))
                    raise ObservationError(path, error.problem) from error
                found[name] = space.observed(seen)
        return merged_observation(found)

    def domain_blocks(self, state: AwarenessState) -> tuple[InjectionBlock, ...]:
        """What each domain shows of its own view of the state."""
        return merge_blocks(
            block
            for part, space in self._parts.values()
            for block in part.domain_blocks(space.view(state))
        )


def _all_or_any(declared: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """All declared types; none, which stands for any, where one declares none."""
    every = tuple(declared)
    return tuple(type for types in every for type in types) if all(every) else ()


def _every(given: Iterable[Names]) -> Names:
    return distinct(rule for rules in given for rule in rules)


def _mapping(name: str, given: object) -> Mapping[str, object]:
    if not isinstance(given, Mapping):
        raise ObservationError(
            name, f"must be a mapping, what the domain takes, not {type(given).__name__}."
        )
    return cast("Mapping[str, object]", given)
