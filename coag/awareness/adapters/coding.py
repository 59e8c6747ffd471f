"""The domain of work on software (SAGEN §5.2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from operator import attrgetter
from typing import Annotated

from coag.awareness.fields import Foreign, ForeignText, Scalar, distinct
from coag.awareness.injection import InjectionBlock
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
    Entity,
    InteractionProtocol,
    TransitionType,
)
from coag.schema import Value, folded

from .domain_adapter import (
    MOST,
    Analysis,
    DomainAdapter,
    ForeignNames,
    KnownNames,
    PerEntity,
    Place,
    StatedGoal,
    block,
    from_text,
    is_named,
)

# ---- The analysis of one message ----


class CodingEntityType(StrEnum):
    """The parts of software."""

    FILE = "file"
    LIBRARY = "library"
    ERROR = "error"
    ENDPOINT = "endpoint"
    SERVICE = "service"
    CONCEPT = "concept"
    FUNCTION = "function"
    CONFIG = "config"


class CodingEdgeType(StrEnum):
    """How parts of software are related."""

    IMPORTS = "imports"
    CALLS = "calls"
    DEPENDS_ON = "depends_on"
    RAISES = "raises"
    DEFINED_IN = "defined_in"
    CONNECTS_TO = "connects_to"
    BLOCKS = "blocks"
    ATTEMPTED_FIX = "attempted_fix"


class RaisedError(Value):
    """An error that occurs."""

    name: Foreign
    message: ForeignText = ""


class CodingEdge(Value):
    """How two parts are related, by their names."""

    source: Foreign
    type: CodingEdgeType
    target: Foreign


class CodingAnalysis(Analysis):
    """The analysis of one message about software. Every part may be left out."""

    files: ForeignNames = ()
    libraries: ForeignNames = ()
    endpoints: ForeignNames = ()
    services: ForeignNames = ()
    concepts: ForeignNames = ()
    functions: ForeignNames = ()
    configs: ForeignNames = ()
    errors: tuple[Annotated[RaisedError, from_text("name")], ...] = ()
    """Errors that occur now; a mere text is the name of one."""
    fixed: ForeignNames = ()
    """Errors that are confirmed to be gone, by name."""
    conflicts: ForeignNames = ()
    """Versions or libraries that are incompatible, a sentence each."""
    relationships: tuple[CodingEdge, ...] = ()
    failure: ObservedFailure | None = None
    """Something that was tried and did not work, with its lesson."""


# ---- Errors: raised, fixed, back again; and what follows a fix ----

_STATUS, _RESOLVED_AT, _ALERT, _MESSAGE = "error_status", "resolved_step", "alert", "message"
"""Keys of the state of an error's entity."""
_UNRESOLVED, _RESOLVED = "unresolved", "resolved"
_TTL = 10
_SETTLED_TTL = 3
_NEW, _WORSE, _SCOPE, _CONFLICT, _SETTLED = 0.8, 0.9, 0.6, 0.7, 0.1
"""Urgencies: an error; one after a fix or back; new scope; a conflict; a fixed error."""


def _is_resolved(error: Entity) -> bool:
    """Whether an error was confirmed as fixed and has not come back."""
    return error.state.get(_STATUS) == _RESOLVED


class _Debugging:
    """An analysis compared with all errors of the state before it."""

    def __init__(
        self,
        analysis: CodingAnalysis,
        state: AwarenessState,
        errors: Sequence[Entity],
        names: KnownNames,
    ) -> None:
        raised = {folded(error.name): error for error in reversed(analysis.errors)}
        now = tuple(reversed(raised.values()))
        self.analysis = analysis
        self.step = state.step + 1
        self.fixed = [name for name in distinct(analysis.fixed) if folded(name) not in raised]
        """Errors that are confirmed as fixed now."""
        self.known = names.find((*(error.name for error in now), *self.fixed), tuple(errors))
        """The entities that the names of errors mean."""
        open_now = {
            one.name
            for one in now
            if one.name in self.known and not _is_resolved(self.known[one.name])
        }
        self.raised = [one for one in now if one.name not in open_now]
        """Errors that occur now and were not unresolved already."""
        self.lasting = [one for one in now if one.name in open_now]
        """Errors that occur now and were unresolved already."""
        self.back = [one.name for one in self.raised if one.name in self.known]
        """Those of `raised` that had been resolved."""
        gone = {self.known[name].name for name in self.fixed if name in self.known}
        self.open_before = [
            one.name for one in errors if not _is_resolved(one) and one.name not in gone
        ]
        """Errors that were unresolved before, and are not fixed now."""
        self.after_fix = self.fixed or [
            one.name
            for one in errors
            if _is_resolved(one) and one.state.get(_RESOLVED_AT) == state.step
        ]
        """The errors whose fix was confirmed now, else in the step before."""
        self.scope = "; ".join(_new_scope(analysis.goals, self.open_before, state))

    def entities(self) -> tuple[ObservedEntity, ...]:
        changes: list[tuple[RaisedError, dict[str, Scalar]]] = [
            (one, {_STATUS: _UNRESOLVED, _ALERT: self._alert(one.name)}) for one in self.raised
        ]
        changes += [(one, {}) for one in self.lasting]
        resolved: dict[str, Scalar] = {_STATUS: _RESOLVED, _RESOLVED_AT: self.step}
        changes += [(RaisedError(name=name), resolved) for name in self.fixed]
        return tuple(
            ObservedEntity(
                name=error.name,
                type=CodingEntityType.ERROR.value,
                state=state | ({_MESSAGE: error.message} if error.message else {}),
            )
            for error, state in changes
        )

    def attention(self) -> tuple[ObservedAttention, ...]:
        """A threat for each error that is new or back, an anomaly for new scope and conflicts.

        The threat of an error that is fixed now stays for a few steps, but is no longer urgent.
        """
        threat, anomaly = AttentionType.THREAT, AttentionType.ANOMALY
        alerts = (self.known[name].state.get(_ALERT) for name in self.fixed if name in self.known)
        rows = [
            (threat, alert, _SETTLED, _SETTLED_TTL) for alert in alerts if isinstance(alert, str)
        ]
        for one in self.raised:
            urgency = _WORSE if self.after_fix or one.name in self.back else _NEW
            rows.append((threat, self._alert(one.name), urgency, _TTL))
        rows += [
            (anomaly, f"Dependency conflict: {conflict}", _CONFLICT, _TTL)
            for conflict in self.analysis.conflicts
        ]
        if self.scope:
            text = f"Scope expansion: {self.scope} while unresolved: {', '.join(self.open_before)}"
            rows.append((anomaly, text, _SCOPE, _TTL))
        return tuple(
            ObservedAttention(type=type, description=text, urgency=urgency, ttl=ttl)
            for type, text, urgency, ttl in rows
        )

    def event(self) -> ObservedEvent | None:
        """The most important event: an error back, one after a fix, a new one, scope, a fix."""
        raised = ", ".join(one.name for one in self.raised)
        lasting = ", ".join(one.name for one in self.lasting)
        goals = "; ".join(goal.description for goal in self.analysis.goals)
        if self.back:
            type, text = TransitionType.REVERSAL, f"Back again: {', '.join(self.back)}"
        elif raised and self.after_fix:
            type = TransitionType.DISCOVERY
            text = f"New issue after fix of {', '.join(self.after_fix)}: {raised}"
        elif raised or lasting:
            type = TransitionType.FAILURE
            text = f"Failed: {raised}" if raised else f"Still failing: {lasting}"
        elif self.scope:
            type, text = TransitionType.BRANCH, f"Scope expansion: {self.scope}"
        elif self.analysis == CodingAnalysis():
            return None
        elif self.fixed:
            type, text = TransitionType.PROGRESS, f"Resolved: {', '.join(self.fixed)}"
        else:
            type, text = TransitionType.PROGRESS, f"New goals: {goals}" if goals else "Working"
        return ObservedEvent(type=type, description=text)

    def _alert(self, name: str) -> str:
        """The description of the threat of an error that occurs now."""
        if name in self.back:
            return f"Error came back: {name}"
        if self.after_fix:
            return f"Regression: {name} right after the fix of {', '.join(self.after_fix)}"
        return f"Error: {name}"


def _new_scope(
    goals: Sequence[StatedGoal], unresolved: Sequence[str], state: AwarenessState
) -> Iterator[str]:
    """The goals that widen the scope: no part of another, not known, not about the errors."""
    known = {folded(goal.description) for goal in state.goals.goals} if unresolved else set[str]()
    for goal in goals if unresolved else ():
        is_new = goal.parent is None and folded(goal.description) not in known
        if is_new and not any(is_named(error, goal.description) for error in unresolved):
            yield goal.description


# ---- The domain ----

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
    """Follows work on software: its parts, what fails, what was fixed, what is new.

    `parse_observation` takes a `CodingAnalysis` as a mapping. An error is unresolved until it is
    confirmed as fixed. A new one is a failure; right after a fix it is a discovery, and a resolved
    one that comes back is a reversal. Goals that are stated while an older error is unresolved,
    serve no known goal and do not name the error, widen the scope: a branch.
    """

    name = "coding"
    entity_types = tuple(CodingEntityType)
    relationship_types = tuple(CodingEdgeType)
    patterns = (
        ("error recurrence", "An error that was resolved shows again."),
        ("scope creep", "New goals come while errors are unresolved."),
        ("dependency conflict", "Libraries or their versions do not go together."),
        ("solution regression", "The fix of one issue brings another."),
    )
    protocol = InteractionProtocol(
        style="precise, technical", output_format="code with short explanations"
    )

    def __init__(self) -> None:
        self._kinds = PerEntity(_kind)
        self._names = KnownNames()

    def parse_observation(self, raw: Mapping[str, object], state: AwarenessState) -> Observation:
        """See `DomainAdapter.parse_observation`."""
        analysis = CodingAnalysis.parse(raw)
        errors = self._by_kind(state)[CodingEntityType.ERROR]
        debugging = _Debugging(analysis, state, errors, self._names)
        parts = tuple(
            ObservedEntity(name=name, type=type.value)
            for type, plural in _KINDS
            for name in distinct(getattr(analysis, plural))
        )
        return Observation(
            entities=(*parts, *debugging.entities()),
            relationships=tuple(
                ObservedRelationship(source=edge.source, type=edge.type.value, target=edge.target)
                for edge in analysis.relationships
            ),
            attention_items=debugging.attention(),
            event=debugging.event(),
            failure=analysis.failure,
            **analysis.common_parts(),
        )

    def domain_blocks(self, state: AwarenessState) -> tuple[InjectionBlock, ...]:
        """Errors with their status, and the parts of the project."""
        by_kind, step = self._by_kind(state), max(1, state.step)
        errors = by_kind[CodingEntityType.ERROR]
        latest = sorted(errors, key=lambda one: (not _is_resolved(one), one.last_step))[-MOST:]
        return (
            block(
                "ERRORS",
                Place.ERRORS,
                ((_error_line(one), 0.1 if _is_resolved(one) else 0.9) for one in latest[::-1]),
                of=len(errors),
            ),
            block(
                "PROJECT",
                Place.TOPICS,
                (
                    (_kind_line(plural, parts), max(one.last_step for one in parts) / step)
                    for kind, plural in _KINDS
                    if (parts := by_kind[kind])
                ),
                first=4,
            ),
        )

    def _by_kind(self, state: AwarenessState) -> defaultdict[str, list[Entity]]:
        by_name: defaultdict[str, list[Entity]] = defaultdict(list)
        entities = state.world.entities
        for entity, kind in zip(entities, self._kinds(entities), strict=True):
            by_name[kind].append(entity)
        return by_name


def _kind(entity: Entity) -> str:
    """Its type; an error has that kind only, even if it was first seen as something else."""
    return CodingEntityType.ERROR if _STATUS in entity.state else entity.type


def _error_line(error: Entity) -> str:
    message = error.state.get(_MESSAGE)
    status = _RESOLVED if _is_resolved(error) else _UNRESOLVED
    return f"[{status}] {error.name}" + (f": {message}" if message else "")


def _kind_line(plural: str, parts: Sequence[Entity]) -> str:
    """The parts of one kind that were mentioned last, and how many more there are."""
    latest = sorted(parts, key=attrgetter("last_step"))[-8:]
    names = ", ".join(part.name for part in reversed(latest))
    more = len(parts) - len(latest)
    return f"{plural}: {names}" + (f" and {more} more" if more else "")
