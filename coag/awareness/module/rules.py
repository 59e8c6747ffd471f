"""What the module notices by itself of percepts and outcomes."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from pydantic import Field

from coag.awareness.observation import (
    GoalChange,
    Observation,
    ObservedAttention,
    ObservedEvent,
    ObservedFailure,
    ObservedGoal,
)
from coag.awareness.state import (
    Attention,
    AttentionType,
    AwarenessState,
    Goal,
    GoalSource,
    GoalStatus,
    Reading,
    Said,
    TransitionType,
    attention_id,
    folded,
)
from coag.schema import (
    Executed,
    ExecutionOutcome,
    ExecutionStatus,
    Failure,
    Percept,
    PerceptKind,
    Trust,
    Value,
    one_line,
    well_formed,
)

from .settings import AwarenessSettings

# ---- Texts from outside, short enough to be one item ----


_SHORT = 120
"""Characters of what was said or came back."""


_BETWEEN = " … "


def both_ends(text: str, limit: int, otherwise: str) -> str:
    """A text on one line, of one that is longer its beginning and its end.

    What a long request wants stands as often at its end as at its beginning.
    """
    line = one_line(well_formed(text), 10 * len(text) + 1)
    if len(line) <= limit:
        return line or otherwise
    end = (limit - len(_BETWEEN)) // 2
    if end < 1:
        return line[:limit]
    return f"{line[: limit - len(_BETWEEN) - end].rstrip()}{_BETWEEN}{line[-end:].lstrip()}"


def short(text: str, limit: int = _SHORT, otherwise: str = "(nothing that can be read)") -> str:
    """The beginning of a text on one line; something in its place where nothing can be read."""
    return one_line(well_formed(text), limit) or otherwise


# ---- What the module itself keeps beside the awareness state ----


FAILING_KEPT = 50
"""Actions whose failures in a row are counted."""

_BY_TRUST = (Trust.UNTRUSTED, Trust.USER, Trust.DEVELOPER)


class Failing(Value):
    """An action that has failed since it last succeeded."""

    action: Said
    times: int = Field(ge=1)


class Standing(Value):
    """How the activity goes, as far as no module of the awareness state tells it."""

    goal: str | None = None
    """Id of the goal that the activity serves; closed ones too, until the next."""
    idle: int = Field(default=0, ge=0)
    """Cycles since there was progress."""
    cycles: int = Field(default=0, ge=0)
    """Cycles so far."""
    readings: tuple[Reading, ...] = ()
    """What was left of resources in the last cycles; a reading's step is a cycle."""
    failing: tuple[Failing, ...] = ()
    """The most recent last."""
    serves: str | None = None
    """Whom the agent serves, as a scope; empty while nobody is known, None where one has all."""
    trust: Trust = Trust.DEVELOPER
    """The least trust of any text that went into the state."""

    def times(self, action: str) -> int:
        """How often an action has failed in a row."""
        return next((one.times for one in self.failing if one.action == action), 0)

    def failed(self, action: str) -> Standing:
        """With one more failure of this action."""
        others = tuple(one for one in self.failing if one.action != action)
        failing = (*others, Failing(action=action, times=self.times(action) + 1))
        return self.model_copy(update={"failing": failing[-FAILING_KEPT:]})

    def succeeded(self, action: str) -> Standing:
        """With no failure of this action any more."""
        others = tuple(one for one in self.failing if one.action != action)
        return self.model_copy(update={"failing": others})

    def with_text_of(self, trust: Trust) -> Standing:
        """With text of this trust in the state."""
        least = min(self.trust, trust, key=_BY_TRUST.index)
        return self if least is self.trust else self.model_copy(update={"trust": least})


# ---- The attention items that the module raises by itself, and takes away again ----


_IMPASSE, _UNKNOWN, _CHANGED = 0.6, 0.8, 0.5


def impasse(content: str, settings: AwarenessSettings) -> ObservedAttention:
    """That nothing could be done, and why."""
    return ObservedAttention(
        type=AttentionType.ANOMALY,
        description=f"No action was possible: {short(content)}",
        urgency=_IMPASSE,
        ttl=settings.attention_ttl,
    )


def outcome_unknown(action: str, settings: AwarenessSettings) -> ObservedAttention:
    """That an action may or may not have had its effect."""
    return ObservedAttention(
        type=AttentionType.ANOMALY,
        description=f"Nobody knows whether {short(action)} had its effect: look before doing it "
        "again",
        urgency=_UNKNOWN,
        ttl=settings.attention_ttl,
    )


def changed(source: str, content: str, settings: AwarenessSettings) -> ObservedAttention:
    """That something outside changed by itself."""
    return ObservedAttention(
        type=AttentionType.TRANSITION,
        description=f"{short(source)} tells: {short(content)}",
        urgency=_CHANGED,
        ttl=settings.attention_ttl,
    )


def repeated(action: str, times: int, settings: AwarenessSettings) -> ObservedAttention:
    """That an action keeps failing: the more often, the more urgent."""
    return ObservedAttention(
        type=AttentionType.THREAT,
        description=_repeated(action),
        urgency=_rising(times - settings.repeated_failures),
        ttl=settings.attention_ttl,
    )


def stalled(goal: Goal, idle: int, settings: AwarenessSettings) -> ObservedAttention:
    """That a goal makes no progress: the longer, the more urgent."""
    return ObservedAttention(
        type=AttentionType.ANOMALY,
        description=_stalled(goal),
        urgency=_rising(idle - settings.stalled_cycles),
        ttl=settings.attention_ttl,
    )


def id_of_repeated(action: str) -> str:
    """The id of the item that says so."""
    return attention_id(AttentionType.THREAT, _repeated(action))


def id_of_stalled(goal: Goal) -> str:
    """The id of the item that says so."""
    return attention_id(AttentionType.ANOMALY, _stalled(goal))


def without(attention: Attention, ids: Collection[str]) -> Attention:
    """Attention without what is settled."""
    items = tuple(item for item in attention.items if item.id not in ids)
    if len(items) == len(attention.items):
        return attention
    return attention.model_copy(update={"items": items})


def _repeated(action: str) -> str:
    return f"{short(action)} fails again and again: find out why, or take another way"


def _stalled(goal: Goal) -> str:
    return f"No progress for a while on: {short(goal.description)}"


def _rising(beyond: int) -> float:
    return min(1.0, 0.7 + 0.1 * max(0, beyond))


# ---- What every percept says of where the agent stands, by rules, whatever the domain ----


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


# ---- What an execution says of where the agent stands, by rules ----


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
