"""The adapter for code work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import Annotated

from pydantic import BeforeValidator

from coag.awareness.injection import InjectionBlock, InjectionItem
from coag.awareness.observation import (
    Observation,
    ObservedAttention,
    ObservedEntity,
    ObservedEvent,
    ObservedFailure,
    ObservedRelationship,
)
from coag.awareness.state import (
    AttentionType,
    AwarenessState,
    CollaborationMode,
    Entity,
    Heard,
    HeardText,
    InteractionProtocol,
    Plain,
    ScanPattern,
    TransitionType,
    distinct,
    folded,
)
from coag.schema import Value

from .analysis import Analysis, HeardNames, StatedGoal
from .domain_adapter import MOST, DomainAdapter, KnownNames, PerEntity, Place, is_named

# ---- What is analysed of one message in work on software (SAGEN §5.2) ----


class CodingEntityType(StrEnum):
    """What software is made of."""

    FILE = "file"
    LIBRARY = "library"
    ERROR = "error"
    ENDPOINT = "endpoint"
    SERVICE = "service"
    CONCEPT = "concept"
    FUNCTION = "function"
    CONFIG = "config"


class CodingEdgeType(StrEnum):
    """How parts of software hang together."""

    IMPORTS = "imports"
    CALLS = "calls"
    DEPENDS_ON = "depends_on"
    RAISES = "raises"
    DEFINED_IN = "defined_in"
    CONNECTS_TO = "connects_to"
    BLOCKS = "blocks"
    ATTEMPTED_FIX = "attempted_fix"


class RaisedError(Value):
    """An error that shows."""

    name: Heard
    message: HeardText = ""


def _from_text(given: object) -> object:
    return {"name": given} if isinstance(given, str) else given


class CodingEdge(Value):
    """How two parts hang together, by their names."""

    source: Heard
    type: CodingEdgeType
    target: Heard


class CodingAnalysis(Analysis):
    """What one message about software says. Every part may be left out."""

    files: HeardNames = ()
    libraries: HeardNames = ()
    endpoints: HeardNames = ()
    services: HeardNames = ()
    concepts: HeardNames = ()
    functions: HeardNames = ()
    configs: HeardNames = ()
    errors: tuple[Annotated[RaisedError, BeforeValidator(_from_text)], ...] = ()
    """Errors that show now; a mere text is the name of one."""
    fixed: HeardNames = ()
    """Errors that are confirmed to be gone, by name."""
    conflicts: HeardNames = ()
    """Versions or libraries that do not go together, a sentence each."""
    relationships: tuple[CodingEdge, ...] = ()
    failure: ObservedFailure | None = None
    """Something that was tried and did not work, with what to learn from it."""


# ---- The life of errors: raised, fixed, back again; and what a fix brought ----


_STATUS, _RESOLVED_AT, _ALERT = "error_status", "resolved_step", "alert"
"""What the state of an error's entity keeps besides its message."""
MESSAGE = "message"
_UNRESOLVED, _RESOLVED = "unresolved", "resolved"
_TTL = 10
_SETTLED_TTL = 3
_NEW, _WORSE, _SCOPE, _CONFLICT, _SETTLED = 0.8, 0.9, 0.6, 0.7, 0.1
"""Urgencies: an error; one after a fix or back; new scope; a conflict; a fixed error."""


def is_error(entity: Entity) -> bool:
    """Whether it is an error, of whatever standing, even if it was taken for something else."""
    return _STATUS in entity.state


def is_resolved(error: Entity) -> bool:
    """Whether an error was confirmed as fixed and has not come back."""
    return error.state.get(_STATUS) == _RESOLVED


@dataclass(frozen=True, slots=True, kw_only=True)
class Debugging:
    """An analysis against the errors that are known."""

    step: int
    raised: tuple[RaisedError, ...]
    """Errors that show now and were not unresolved already."""
    lasting: tuple[RaisedError, ...]
    """Errors that show now and were unresolved already."""
    back: tuple[str, ...]
    """Those of `raised` that had been resolved."""
    fixed: tuple[str, ...]
    """Errors that are confirmed as fixed now."""
    fixed_before: tuple[str, ...]
    """Errors that were confirmed as fixed one step before."""
    open_before: tuple[str, ...]
    """Errors that were unresolved before, and are not fixed now."""
    new_scope: tuple[StatedGoal, ...]
    """Goals that nobody asked for before, while an error was unresolved."""
    known: dict[str, Entity]
    """What the names of errors mean."""
    analysis: CodingAnalysis

    @classmethod
    def of(
        cls,
        analysis: CodingAnalysis,
        state: AwarenessState,
        errors: tuple[Entity, ...],
        names: KnownNames,
    ) -> Debugging:
        """What the analysis says of new errors, and of those that the state knows.

        Args:
            analysis: What the message says.
            state: Where the work stands before it.
            errors: All errors of this state.
            names: Recognises errors.
        """
        raised = {folded(error.name): error for error in reversed(analysis.errors)}
        fixed = tuple(name for name in distinct(analysis.fixed) if folded(name) not in raised)
        known = names.find((*(error.name for error in raised.values()), *fixed), errors)
        gone = {known[name].name for name in fixed if name in known}
        unresolved = [one.name for one in errors if not is_resolved(one) and one.name not in gone]
        fresh = tuple(one for one in reversed(raised.values()) if _is_fresh(known.get(one.name)))
        return cls(
            step=state.step + 1,
            raised=fresh,
            lasting=tuple(one for one in reversed(raised.values()) if one not in fresh),
            back=tuple(one.name for one in fresh if one.name in known),
            fixed=fixed,
            fixed_before=tuple(
                one.name
                for one in errors
                if is_resolved(one) and one.state.get(_RESOLVED_AT) == state.step
            ),
            open_before=tuple(unresolved),
            new_scope=_new_scope(analysis.goals, unresolved, state),
            known=known,
            analysis=analysis,
        )

    @property
    def after_fix(self) -> tuple[str, ...]:
        """The errors whose fix was confirmed now, else right before."""
        return self.fixed or self.fixed_before

    def entities(self) -> tuple[ObservedEntity, ...]:
        """The errors with where they stand now."""
        raised = (
            _error(one, {_STATUS: _UNRESOLVED, _ALERT: self._alert(one.name)})
            for one in self.raised
        )
        lasting = (_error(one, {}) for one in self.lasting)
        fixed = (
            _error(RaisedError(name=name), {_STATUS: _RESOLVED, _RESOLVED_AT: self.step})
            for name in self.fixed
        )
        return (*raised, *lasting, *fixed)

    def attention(self) -> tuple[ObservedAttention, ...]:
        """A threat for each error that is new or back, an anomaly for new scope and conflicts.

        The threat of an error that is fixed now stays for a few steps, but is no longer urgent.
        """
        settled = [
            _threat(alert, _SETTLED, _SETTLED_TTL)
            for name in self.fixed
            if name in self.known and isinstance(alert := self.known[name].state.get(_ALERT), str)
        ]
        worse = {*self.back} if not self.after_fix else {one.name for one in self.raised}
        raised = [
            _threat(self._alert(one.name), _WORSE if one.name in worse else _NEW, _TTL)
            for one in self.raised
        ]
        odd = [
            ObservedAttention(
                type=AttentionType.ANOMALY,
                description=f"Dependency conflict: {conflict}",
                urgency=_CONFLICT,
                ttl=_TTL,
            )
            for conflict in self.analysis.conflicts
        ]
        if self.new_scope:
            odd.append(
                ObservedAttention(
                    type=AttentionType.ANOMALY,
                    description=f"{self._scope()} while unresolved: {', '.join(self.open_before)}",
                    urgency=_SCOPE,
                    ttl=_TTL,
                )
            )
        return (*settled, *raised, *odd)

    def event(self) -> ObservedEvent | None:
        """What of it counts most: an error back, one after a fix, a new one, new scope, a fix."""
        analysis = self.analysis
        raised = ", ".join(one.name for one in self.raised)
        if self.back:
            return _event(TransitionType.REVERSAL, f"Back again: {', '.join(self.back)}")
        if raised and self.after_fix:
            fixed = ", ".join(self.after_fix)
            return _event(TransitionType.DISCOVERY, f"New issue after fix of {fixed}: {raised}")
        if raised or self.lasting:
            lasting = ", ".join(one.name for one in self.lasting)
            told = f"Failed: {raised}" if raised else f"Still failing: {lasting}"
            return _event(TransitionType.FAILURE, told)
        if self.new_scope:
            return _event(TransitionType.BRANCH, self._scope())
        if analysis == CodingAnalysis():
            return None
        if self.fixed:
            return _event(TransitionType.PROGRESS, f"Resolved: {', '.join(self.fixed)}")
        goals = "; ".join(goal.description for goal in analysis.goals)
        return _event(TransitionType.PROGRESS, f"New goals: {goals}" if goals else "Working")

    def _alert(self, name: str) -> str:
        """How the threat of an error that shows now is told."""
        if name in self.back:
            return f"Error came back: {name}"
        if self.after_fix:
            return f"Regression: {name} right after the fix of {', '.join(self.after_fix)}"
        return f"Error: {name}"

    def _scope(self) -> str:
        return f"Scope expansion: {'; '.join(goal.description for goal in self.new_scope)}"


def _is_fresh(error: Entity | None) -> bool:
    return error is None or is_resolved(error)


def _new_scope(
    goals: Sequence[StatedGoal], unresolved: Sequence[str], state: AwarenessState
) -> tuple[StatedGoal, ...]:
    """The goals that widen the scope: no part of another, not known, not about the errors."""
    if not unresolved or not goals:
        return ()
    known = {folded(goal.description) for goal in state.goals.goals}
    return tuple(
        goal
        for goal in goals
        if goal.parent is None
        and folded(goal.description) not in known
        and not any(is_named(error, goal.description) for error in unresolved)
    )


def _error(raised: RaisedError, state: dict[str, Plain]) -> ObservedEntity:
    message: dict[str, Plain] = {MESSAGE: raised.message} if raised.message else {}
    return ObservedEntity(
        name=raised.name, type=CodingEntityType.ERROR.value, state={**state, **message}
    )


def _threat(description: str, urgency: float, ttl: int) -> ObservedAttention:
    return ObservedAttention(
        type=AttentionType.THREAT, description=description, urgency=urgency, ttl=ttl
    )


def _event(type: TransitionType, description: str) -> ObservedEvent:
    return ObservedEvent(type=type, description=description)


# ---- The domain of work on software (SAGEN §5.2) ----


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
