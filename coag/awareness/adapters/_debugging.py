"""The life of errors: raised, fixed, back again; and what a fix brought."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coag.awareness._observation import ObservedAttention, ObservedEntity, ObservedEvent
from coag.awareness.state import (
    AttentionType,
    AwarenessState,
    Entity,
    Plain,
    TransitionType,
    distinct,
    folded,
)

from ._analysis import StatedGoal
from ._coding_analysis import CodingAnalysis, CodingEntityType, RaisedError
from ._known import KnownNames, is_named

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
