"""The domain of work on software (SAGEN §5.2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from operator import attrgetter

from coag.awareness._observation import Observation, ObservedEntity, ObservedRelationship
from coag.awareness.injection import InjectionBlock, InjectionItem
from coag.awareness.state import (
    AwarenessState,
    CollaborationMode,
    Entity,
    InteractionProtocol,
    ScanPattern,
    distinct,
)

from ._blocks import MOST, Place
from ._coding_analysis import CodingAnalysis, CodingEdgeType, CodingEntityType
from ._debugging import MESSAGE, Debugging, is_error, is_resolved
from ._domain_adapter import DomainAdapter
from ._known import KnownNames
from ._per_entity import PerEntity

_SHOWN_OF_A_KIND = 8
_KINDS = (
    (CodingEntityType.FILE, "files"),
    (CodingEntityType.SERVICE, "services"),
    (CodingEntityType.LIBRARY, "libraries"),
    (CodingEntityType.ENDPOINT, "endpoints"),
    (CodingEntityType.CONFIG, "configs"),
    (CodingEntityType.FUNCTION, "functions"),
    (CodingEntityType.CONCEPT, "concepts"),
)
"""The types of a project's parts, in the order in which they are shown, each with its plural."""


class CodingAdapter(DomainAdapter):
    """Follows work on software: what it is made of, what fails, what was fixed, what is new.

    `parse_observation` takes a `CodingAnalysis` as a mapping. An error is unresolved until it is
    confirmed as fixed. A new one is a failure; right after a fix it is a discovery, and a resolved
    one that comes back is a reversal. Goals that are stated while an older error is unresolved,
    serve no known goal and do not name the error, widen the scope: a branch.
    """

    def __init__(self) -> None:
        self._kinds = PerEntity(_kind)
        self._names = KnownNames()

    @property
    def domain_name(self) -> str:
        """`coding`."""
        return "coding"

    def define_entity_types(self) -> tuple[str, ...]:
        """File, library, error, endpoint, service, concept, function, config."""
        return tuple(CodingEntityType)

    def define_relationship_types(self) -> tuple[str, ...]:
        """Eight, technical."""
        return tuple(CodingEdgeType)

    def define_scan_patterns(self) -> tuple[ScanPattern, ...]:
        """The four of section 5.2."""
        return (
            ScanPattern(
                name="error recurrence", description="An error that was resolved shows again."
            ),
            ScanPattern(
                name="scope creep", description="New goals come while errors are unresolved."
            ),
            ScanPattern(
                name="dependency conflict",
                description="Libraries or their versions do not go together.",
            ),
            ScanPattern(
                name="solution regression", description="The fix of one issue brings another."
            ),
        )

    def define_protocol_defaults(self) -> InteractionProtocol:
        """Precise and technical, with code, deciding together."""
        return InteractionProtocol(
            style="precise, technical",
            output_format="code with short explanations",
            mode=CollaborationMode.COLLABORATIVE,
        )

    def parse_observation(self, raw: Mapping[str, object], state: AwarenessState) -> Observation:
        """What a message says where the work stands so.

        Raises:
            ObservationError: It is no `CodingAnalysis`; the error names the place.
        """
        analysis = CodingAnalysis.parse(raw)
        errors = tuple(self._by_kind(state)[CodingEntityType.ERROR])
        debugging = Debugging.of(analysis, state, errors, self._names)
        return Observation(
            entities=(*_parts(analysis), *debugging.entities()),
            relationships=tuple(
                ObservedRelationship(source=edge.source, type=edge.type.value, target=edge.target)
                for edge in analysis.relationships
            ),
            goals=analysis.observed_goals(),
            goal_changes=analysis.goal_changes(),
            attention_items=debugging.attention(),
            assumptions=analysis.assumptions,
            unknowns=analysis.unknowns,
            resolved=analysis.resolved,
            event=debugging.event(),
            failure=analysis.failure,
        )

    def domain_blocks(self, state: AwarenessState) -> tuple[InjectionBlock, ...]:
        """Errors with where they stand, and the parts of the project."""
        by_kind = self._by_kind(state)
        errors = by_kind[CodingEntityType.ERROR]
        latest = sorted(errors, key=lambda error: (not is_resolved(error), error.last_step))[-MOST:]
        return (
            InjectionBlock(
                heading="ERRORS",
                priority=Place.ERRORS,
                items=tuple(
                    InjectionItem(text=_error_line(one), urgency=0.1 if is_resolved(one) else 0.9)
                    for one in reversed(latest)
                ),
                more=len(errors) - len(latest),
            ),
            InjectionBlock(
                heading="PROJECT",
                priority=Place.TOPICS,
                items=tuple(
                    InjectionItem(text=_kind_line(plural, parts), urgency=_freshness(parts, state))
                    for kind, plural in _KINDS
                    if (parts := by_kind[kind])
                ),
                first=4,
            ),
        )

    def _by_kind(self, state: AwarenessState) -> defaultdict[str, list[Entity]]:
        """The entities by what they are; what is an error is nothing else."""
        found: defaultdict[str, list[Entity]] = defaultdict(list)
        entities = state.world.entities
        for entity, kind in zip(entities, self._kinds(entities), strict=True):
            found[kind].append(entity)
        return found


def _parts(analysis: CodingAnalysis) -> tuple[ObservedEntity, ...]:
    """The parts of the project that are mentioned, each once."""
    named = {
        CodingEntityType.FILE: analysis.files,
        CodingEntityType.SERVICE: analysis.services,
        CodingEntityType.LIBRARY: analysis.libraries,
        CodingEntityType.ENDPOINT: analysis.endpoints,
        CodingEntityType.CONFIG: analysis.configs,
        CodingEntityType.FUNCTION: analysis.functions,
        CodingEntityType.CONCEPT: analysis.concepts,
    }
    return tuple(
        ObservedEntity(name=name, type=type.value)
        for type, names in named.items()
        for name in distinct(names)
    )


def _kind(entity: Entity) -> str:
    return CodingEntityType.ERROR if is_error(entity) else entity.type


def _freshness(parts: Sequence[Entity], state: AwarenessState) -> float:
    """From 0 to 1: 1 for what was mentioned in the last step."""
    return max(part.last_step for part in parts) / max(1, state.step)


def _error_line(error: Entity) -> str:
    message = error.state.get(MESSAGE)
    told = f": {message}" if message else ""
    return f"[{'resolved' if is_resolved(error) else 'unresolved'}] {error.name}{told}"


def _kind_line(plural: str, parts: Sequence[Entity]) -> str:
    """The parts of one kind that were mentioned last, and how many more there are."""
    latest = sorted(parts, key=attrgetter("last_step"))[-_SHOWN_OF_A_KIND:]
    names = ", ".join(part.name for part in reversed(latest))
    more = len(parts) - len(latest)
    return f"{plural}: {names}" + (f" and {more} more" if more else "")
