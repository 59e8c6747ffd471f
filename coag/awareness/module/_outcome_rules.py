"""What an execution says of where the agent stands, by rules."""

from __future__ import annotations

import json
from collections.abc import Mapping

from coag.awareness._observation import (
    GoalChange,
    Observation,
    ObservedAttention,
    ObservedEvent,
    ObservedFailure,
)
from coag.awareness.state import AwarenessState, Goal, GoalStatus, TransitionType, folded
from coag.schema import Executed, ExecutionOutcome, ExecutionStatus, Failure

from ._noticing import repeated, stalled
from ._percept_rules import had_effect
from ._settings import AwarenessSettings
from ._standing import Standing
from ._texts import short

_RESPOND = "respond"
_LESSONS: Mapping[Failure, str] = {
    Failure.DETERMINISTIC: "the same call fails again as things stand: change it, or what it "
    "needs, first",
    Failure.TRANSIENT: "it may work when tried again",
}


def standing_after(standing: Standing, outcome: ExecutionOutcome) -> Standing:
    """How the activity goes after an execution: failures in a row, and cycles without progress."""
    for done in outcome.executed:
        if done.status is ExecutionStatus.FAILED:
            standing = standing.failed(done.action)
        elif done.status is ExecutionStatus.DONE:
            standing = standing.succeeded(done.action)
    idle = 0 if outcome.response is not None else standing.idle + 1
    return standing.model_copy(update={"idle": idle, "cycles": standing.cycles + 1})


def observations_of(
    outcome: ExecutionOutcome,
    state: AwarenessState,
    standing: Standing,
    goal: Goal | None,
    settings: AwarenessSettings,
) -> tuple[Observation, ...]:
    """What an execution says: one observation, and one more for each further failure of a batch.

    Args:
        outcome: The execution.
        state: Where things stand.
        standing: As it is after this execution.
        goal: The goal of the activity, if it is open.
        settings: What needs attention.
    """
    failed = [done for done in outcome.executed if done.status is ExecutionStatus.FAILED]
    first = Observation(
        goal_changes=_goal_changes(outcome, failed, goal),
        attention_items=_attention(failed, standing, goal, settings),
        resolved=_resolved(outcome, state),
        event=_event(outcome, failed),
        failure=_failure(failed[0], outcome) if failed else None,
    )
    further = (
        Observation(event=_failure_event(done), failure=_failure(done, outcome))
        for done in failed[1:]
    )
    return (first, *further)


def _goal_changes(
    outcome: ExecutionOutcome, failed: list[Executed], goal: Goal | None
) -> tuple[GoalChange, ...]:
    """An answer reaches the goal, a handoff puts it off, a failure counts against it."""
    if goal is None:
        return ()
    if outcome.response is None:
        return (GoalChange(goal=goal.id, succeeded=False),) if failed else ()
    if outcome.ended_by in (_RESPOND, None):
        return (GoalChange(goal=goal.id, status=GoalStatus.COMPLETED, succeeded=True),)
    return (GoalChange(goal=goal.id, status=GoalStatus.DEFERRED),)


def _attention(
    failed: list[Executed], standing: Standing, goal: Goal | None, settings: AwarenessSettings
) -> tuple[ObservedAttention, ...]:
    actions = dict.fromkeys(done.action for done in failed)
    items = [
        repeated(action, standing.times(action), settings)
        for action in actions
        if standing.times(action) >= settings.repeated_failures
    ]
    if goal is not None and standing.idle >= settings.stalled_cycles:
        items.append(stalled(goal, standing.idle, settings))
    return tuple(items)


def _resolved(outcome: ExecutionOutcome, state: AwarenessState) -> tuple[str, ...]:
    """Questions whether an action had its effect, once the action has been done again."""
    done = [one.action for one in outcome.executed if one.status is ExecutionStatus.DONE]
    asked = {folded(had_effect(action)): had_effect(action) for action in done}
    open_ones = {folded(one.text) for one in state.world.open_unknowns}
    return tuple(text for key, text in asked.items() if key in open_ones)


def _event(outcome: ExecutionOutcome, failed: list[Executed]) -> ObservedEvent | None:
    if failed:
        return _failure_event(failed[0])
    if outcome.response is None:
        return None
    if outcome.ended_by in (_RESPOND, None):
        return ObservedEvent(type=TransitionType.PROGRESS, description="Answered")
    told = f"Handed over by {short(outcome.ended_by or '')}"
    return ObservedEvent(type=TransitionType.BRANCH, description=told)


def _failure_event(done: Executed) -> ObservedEvent:
    told = f"{short(done.action)} failed: {short(done.result)}"
    return ObservedEvent(type=TransitionType.FAILURE, description=told)


def _failure(done: Executed, outcome: ExecutionOutcome) -> ObservedFailure:
    """The mistake, with what is to be learnt from it."""
    kinds = {percept.caused_by: percept.failure for percept in outcome.queued}
    kind = kinds.get(done.intent_id) if done.intent_id is not None else None
    given = json.dumps(done.arguments or {}, ensure_ascii=False, sort_keys=True)
    told = f"with {short(given)}: {short(done.result)}" if done.arguments else short(done.result)
    return ObservedFailure(
        action=short(done.action),
        reason=told,
        lesson=f"{told} ({_LESSONS[kind or Failure.TRANSIENT]})",
    )
