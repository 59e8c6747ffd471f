"""What every percept says of where the agent stands, by rules, whatever the domain."""

from __future__ import annotations

from coag.awareness._observation import (
    GoalChange,
    Observation,
    ObservedEvent,
    ObservedGoal,
)
from coag.awareness.state import (
    AwarenessState,
    Goal,
    GoalSource,
    GoalStatus,
    TransitionType,
    folded,
)
from coag.schema import Percept, PerceptKind, Trust

from ._noticing import changed, impasse, outcome_unknown
from ._settings import AwarenessSettings
from ._texts import both_ends, short

_PRIORITY = 0.8
"""Of the goal that the activity serves."""


def by_rules(
    percept: Percept, state: AwarenessState, current: Goal | None, settings: AwarenessSettings
) -> Observation | None:
    """What a percept says besides what the domain makes of it; None for the agent's own words.

    Args:
        percept: What arrived.
        state: Where things stand.
        current: The goal of the activity so far, if it is still open.
        settings: What needs attention.
    """
    match percept.kind:
        case PerceptKind.MESSAGE:
            return (
                None
                if percept.trust is Trust.DEVELOPER
                else _said(percept, state, current, settings)
            )
        case PerceptKind.IMPASSE:
            return Observation(attention_items=(impasse(percept.content, settings),))
        case PerceptKind.UNKNOWN_OUTCOME:
            return Observation(
                attention_items=(outcome_unknown(percept.source, settings),),
                unknowns=(had_effect(percept.source),),
            )
        case PerceptKind.SETTLED:
            told = f"{short(percept.source)}: {short(percept.content)}"
            return Observation(
                event=ObservedEvent(type=TransitionType.EXTERNAL_EVENT, description=told),
                resolved=_if_open(had_effect(percept.source), state),
            )
        case PerceptKind.PROPERTY_CHANGE | PerceptKind.SIGNAL:
            told = f"{short(percept.source)}: {short(percept.content)}"
            return Observation(
                attention_items=(changed(percept.source, percept.content, settings),),
                event=ObservedEvent(type=TransitionType.EXTERNAL_EVENT, description=told),
            )
        case PerceptKind.TOOL_RETURN:
            return Observation()


def with_return(rules: Observation, percept: Percept) -> Observation:
    """For a domain that reads no tool results: any that is no failure is progress."""
    if percept.kind is not PerceptKind.TOOL_RETURN or percept.is_error:
        return rules
    told = f"{short(percept.source)}: {short(percept.content)}"
    event = ObservedEvent(type=TransitionType.PROGRESS, description=told)
    return rules.model_copy(update={"event": event})


def goal_text(request: str, settings: AwarenessSettings) -> str:
    """A request as the description of a goal."""
    return both_ends(request, settings.goal_text, "(a request without text)")


def open_goal(state: AwarenessState, description: str) -> Goal | None:
    """The open goal of this description, the newest."""
    wanted = folded(description)
    goals = reversed(state.goals.goals)
    return next((one for one in goals if one.is_open and folded(one.description) == wanted), None)


def pursued(description: str, state: AwarenessState) -> Observation:
    """That this is what the activity is for from now on."""
    known = open_goal(state, description)
    changes: tuple[GoalChange, ...] = ()
    if known is not None and known.status is GoalStatus.DEFERRED:
        changes = (GoalChange(goal=known.id, status=GoalStatus.ACTIVE),)
    goal = ObservedGoal(description=description, source=GoalSource.EXPLICIT, priority=_PRIORITY)
    return Observation(goals=(goal,), goal_changes=changes)


def had_effect(action: str) -> str:
    """The question that an unknown outcome leaves."""
    return f"Did {short(action)} have its effect?"


def _if_open(question: str, state: AwarenessState) -> tuple[str, ...]:
    open_ones = {folded(one.text) for one in state.world.open_unknowns}
    return (question,) if folded(question) in open_ones else ()


def _said(
    percept: Percept, state: AwarenessState, current: Goal | None, settings: AwarenessSettings
) -> Observation:
    """A message: a new goal, or something said on the one there is."""
    who, what = short(percept.source), short(percept.content)
    if not percept.sets_goal:
        told = f"{who} says: {what}"
        if told == _last_said(state, who):  # "Continue." once more
            return Observation()
        event = ObservedEvent(type=TransitionType.EXTERNAL_EVENT, description=told)
        return Observation(event=event)
    description = goal_text(percept.content, settings)
    leaves = current is not None and folded(current.description) != folded(description)
    event = ObservedEvent(
        type=TransitionType.PIVOT if leaves else TransitionType.EXTERNAL_EVENT,
        description=f"{who} asks: {what}",
    )
    return pursued(description, state).model_copy(update={"event": event})


def _last_said(state: AwarenessState, who: str) -> str | None:
    """What somebody said last, as the trajectory tells it."""
    told = (one.description for one in reversed(state.trajectory.transitions))
    return next((one for one in told if one.startswith(f"{who} says: ")), None)
