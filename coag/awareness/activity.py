"""An agent's activity: what percepts and outcomes change in its awareness, by rules.

Pure functions of what happened and when. `ActivityStep` is all that the module holds: the
awareness state and the status of the activity beside it. `Activity` gives the next one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import Field

from coag._util.text import well_formed
from coag.schema import (
    Executed,
    ExecutionOutcome,
    ExecutionStatus,
    Failure,
    Percept,
    PerceptKind,
    Trust,
    Value,
    folded,
    one_line,
)

from .adapters.tools import short
from .archive import ArchivedItem, archived
from .dynamics import (
    Ahead,
    DynamicsSettings,
    ProjectionSettings,
    best,
    bounded_focus,
    bounded_world,
    weighed_goals,
)
from .fields import Names, NonBlank
from .goals import Goal, GoalSource, GoalStatus
from .names import EngineSettings, NameResolver
from .observation import (
    GoalChange,
    Observation,
    ObservedAttention,
    ObservedEvent,
    ObservedFailure,
    ObservedGoal,
)
from .projection import project, with_readings, with_warnings
from .state import (
    AttentionType,
    AwarenessState,
    Reading,
    TransitionType,
    attention_id,
)
from .updating import advanced, updated


class AwarenessSettings(Value):
    """From when on something needs attention, and how much of the state is kept.

    The state is in every snapshot of a run, so it has bounds, which hold with and without decay.
    What is settled is removed first, then what was touched longest ago.
    """

    repeated_failures: int = Field(default=3, gt=0)
    """Failures of one action in a row from which it needs attention."""
    stalled_cycles: int = Field(default=6, gt=0)
    """Cycles without progress on the goal from which it needs attention."""
    attention_ttl: int = Field(default=20, gt=0)
    """Steps for which the module's own attention items last. A cycle has two or three."""
    engine: EngineSettings = EngineSettings(kept_failures=30, kept_merges=30)
    """How names are recognised, and how many failures and merges are kept."""
    own_actions: Names = ("respond", "tool_update_*", "transfer_to_*")
    """The agent's own actions, `*` for any characters: they need no declared capability, no
    permission and no resources, so that an agent can always answer. What is forbidden, or a
    limitation, holds for them, too."""
    goal_text: int = Field(default=200, gt=0)
    """Characters of a request in its goal's description: of a longer one its two ends."""
    kept_goals: int = Field(default=40, gt=0)
    """Goals, the closed ones among them; closed ones are removed first."""
    kept_entities: int = Field(default=100, gt=0)
    kept_relationships: int = Field(default=200, gt=0)
    kept_transitions: int = Field(default=40, gt=0)
    """Transitions, the sticky ones among them."""
    kept_attention: int = Field(default=40, gt=0)
    """Attention items; the least urgent are removed first."""
    kept_beliefs: int = Field(default=40, gt=0)
    """Assumptions and unknowns, each; settled ones are removed first."""


# ---- The status of the activity, beside the awareness state ----

_FAILING_KEPT = 50
"""Actions whose failures in a row are counted."""
_BY_TRUST = (Trust.UNTRUSTED, Trust.USER, Trust.DEVELOPER)


class FailingAction(Value):
    """An action that has failed since it last succeeded."""

    action: NonBlank
    times: int = Field(ge=1)


class ActivityStatus(Value):
    """What the module holds beside the awareness state."""

    goal: str | None = None
    """Id of the goal that the activity serves; closed ones too, until the next."""
    idle: int = Field(default=0, ge=0)
    """Cycles since there was progress."""
    cycles: int = Field(default=0, ge=0)
    """Cycles so far."""
    readings: tuple[Reading, ...] = ()
    """Resources in the last cycles; a reading's step is a cycle."""
    failing: tuple[FailingAction, ...] = ()
    """The most recent last."""
    serves: str | None = None
    """The person served, as a scope; empty while nobody is known, None if one has all."""
    trust: Trust = Trust.DEVELOPER
    """The least trust of any text in the state."""

    def times(self, action: str) -> int:
        """How often an action has failed in a row."""
        return next((one.times for one in self.failing if one.action == action), 0)

    def after(self, outcome: ExecutionOutcome) -> ActivityStatus:
        """With failures counted, and none any more of an action that succeeded."""
        status = self
        for done in outcome.executed:
            if done.status not in (ExecutionStatus.FAILED, ExecutionStatus.DONE):
                continue
            failing = [one for one in status.failing if one.action != done.action]
            if done.status is ExecutionStatus.FAILED:
                times = status.times(done.action) + 1
                failing.append(FailingAction(action=done.action, times=times))
                status = status.with_text_of(Trust.UNTRUSTED)
            status = status.model_copy(update={"failing": tuple(failing[-_FAILING_KEPT:])})
        idle = 0 if outcome.response is not None else self.idle + 1
        return status.model_copy(update={"idle": idle, "cycles": self.cycles + 1})

    def with_text_of(self, trust: Trust) -> ActivityStatus:
        """With text of this trust in the state."""
        least = min(self.trust, trust, key=_BY_TRUST.index)
        return self if least is self.trust else self.model_copy(update={"trust": least})


@dataclass(frozen=True, slots=True)
class ActivityStep:
    """All that the module holds, and what left the state with the last step."""

    state: AwarenessState
    status: ActivityStatus = field(default_factory=ActivityStatus)
    left: tuple[ArchivedItem, ...] = ()

    @property
    def goal(self) -> Goal | None:
        """The open goal that the activity serves."""
        goal = self.served
        return goal if goal and goal.is_open else None

    @property
    def served(self) -> Goal | None:
        """The goal that the activity serves, also one that is closed."""
        return next((one for one in self.state.goals.goals if one.id == self.status.goal), None)


# ---- What percepts mean, in every domain ----

_PRIORITY = 0.8
"""Of the goal that the activity serves."""
_IMPASSE, _UNKNOWN, _CHANGED = 0.6, 0.8, 0.5
_BETWEEN = " … "


def _event(type: TransitionType, text: str) -> ObservedEvent:
    return ObservedEvent(type=type, description=text)


def _item(
    type: AttentionType, text: str, urgency: float, settings: AwarenessSettings
) -> ObservedAttention:
    ttl = settings.attention_ttl
    return ObservedAttention(type=type, description=text, urgency=urgency, ttl=ttl)


def _had_effect(action: str) -> str:
    """The question that an unknown outcome leaves."""
    return f"Did {short(action)} have its effect?"


def _open_of(questions: Iterable[str], state: AwarenessState) -> tuple[str, ...]:
    """Those of the questions that are open."""
    open_ones = {folded(one.text) for one in state.world.open_unknowns}
    return tuple(one for one in dict.fromkeys(questions) if folded(one) in open_ones)


def goal_text(request: str, settings: AwarenessSettings) -> str:
    """A request as the description of a goal: on one line, of a long one its two ends.

    What a long request wants is as often at its end as at its beginning.
    """
    limit = settings.goal_text
    line = one_line(well_formed(request), 10 * len(request) + 1)
    if len(line) <= limit:
        return line or "(a request without text)"
    end = (limit - len(_BETWEEN)) // 2
    if end < 1:
        return line[:limit]
    return f"{line[: limit - len(_BETWEEN) - end].rstrip()}{_BETWEEN}{line[-end:].lstrip()}"


def _open_goal(state: AwarenessState, description: str) -> Goal | None:
    """The newest open goal of this description."""
    wanted, goals = folded(description), reversed(state.goals.goals)
    return next((one for one in goals if one.is_open and folded(one.description) == wanted), None)


def _pursued(description: str, state: AwarenessState) -> Observation:
    """That the activity serves this from now on."""
    known = _open_goal(state, description)
    changes: tuple[GoalChange, ...] = ()
    if known is not None and known.status is GoalStatus.DEFERRED:
        changes = (GoalChange(goal=known.id, status=GoalStatus.ACTIVE),)
    goal = ObservedGoal(description=description, source=GoalSource.EXPLICIT, priority=_PRIORITY)
    return Observation(goals=(goal,), goal_changes=changes)


def percept_by_rules(
    percept: Percept, step: ActivityStep, settings: AwarenessSettings, *, domain_reads_tools: bool
) -> Observation | None:
    """What a percept means besides what the domain reads in it; None for the agent's own words.

    Where the domain reads no tool results, each that is no failure is progress.
    """
    state, source = step.state, short(percept.source)
    text = f"{source}: {short(percept.content)}"
    match percept.kind:
        case PerceptKind.MESSAGE:
            is_own = percept.trust is Trust.DEVELOPER
            return None if is_own else _message(percept, step, settings)
        case PerceptKind.IMPASSE:
            problem = f"No action was possible: {short(percept.content)}"
            item = _item(AttentionType.ANOMALY, problem, _IMPASSE, settings)
            return Observation(attention_items=(item,))
        case PerceptKind.UNKNOWN_OUTCOME:
            doubt = f"Nobody knows whether {source} had its effect: look before doing it again"
            item = _item(AttentionType.ANOMALY, doubt, _UNKNOWN, settings)
            return Observation(attention_items=(item,), unknowns=(_had_effect(percept.source),))
        case PerceptKind.SETTLED:
            return Observation(
                event=_event(TransitionType.EXTERNAL_EVENT, text),
                resolved=_open_of([_had_effect(percept.source)], state),
            )
        case (
            PerceptKind.PROPERTY_CHANGE
            | PerceptKind.SIGNAL
            | PerceptKind.TIME_OUT
            | PerceptKind.REMINDER
            | PerceptKind.GAP
        ):
            news = f"{source} tells: {short(percept.content)}"
            return Observation(
                attention_items=(_item(AttentionType.TRANSITION, news, _CHANGED, settings),),
                event=_event(TransitionType.EXTERNAL_EVENT, text),
            )
        case PerceptKind.TOOL_RETURN:
            progress = not domain_reads_tools and not percept.is_error
            return Observation(event=_event(TransitionType.PROGRESS, text) if progress else None)


def _message(percept: Percept, step: ActivityStep, settings: AwarenessSettings) -> Observation:
    """A new goal, or a remark on the present one."""
    who, what = short(percept.source), short(percept.content)
    if not percept.sets_goal:
        text = f"{who} says: {what}"
        earlier = (one.description for one in reversed(step.state.trajectory.transitions))
        last = next((one for one in earlier if one.startswith(f"{who} says: ")), None)
        if text == last:  # "Continue." once more
            return Observation()
        return Observation(event=_event(TransitionType.EXTERNAL_EVENT, text))
    description = goal_text(percept.content, settings)
    current = step.goal
    pivots = current is not None and folded(current.description) != folded(description)
    type = TransitionType.PIVOT if pivots else TransitionType.EXTERNAL_EVENT
    return _pursued(description, step.state).plus(event=_event(type, f"{who} asks: {what}"))


def joined_observation(rules: Observation, domain: Observation) -> Observation:
    """Both; of two events the domain's, unless it only reports progress."""
    event = domain.event or rules.event
    if rules.event and domain.event and domain.event.type is TransitionType.PROGRESS:
        event = rules.event
    parts = {name: getattr(domain, name) for name in Observation.model_fields}
    return rules.plus(**parts | {"event": event, "failure": domain.failure or rules.failure})


# ---- What executions mean ----

_LESSONS = {
    Failure.DETERMINISTIC: "the same call fails again as things stand: change it, or what it "
    "needs, first",
    Failure.TRANSIENT: "it may work when tried again",
}


def _repeated(action: str) -> str:
    return f"{short(action)} fails again and again: find out why, or take another way"


def _stalled(goal: Goal) -> str:
    return f"No progress for a while on: {short(goal.description)}"


def _rising(beyond: int) -> float:
    return min(1.0, 0.7 + 0.1 * beyond)


def execution_by_rules(
    outcome: ExecutionOutcome,
    state: AwarenessState,
    status: ActivityStatus,
    goal: Goal | None,
    settings: AwarenessSettings,
) -> Iterator[Observation]:
    """What an execution means: one observation, and one for each further failure of a batch.

    The state is the one before it, the status the one after it; the goal is given if it is open.
    """
    failed = [done for done in outcome.executed if done.status is ExecutionStatus.FAILED]
    done = (one.action for one in outcome.executed if one.status is ExecutionStatus.DONE)
    items = [
        _item(AttentionType.THREAT, _repeated(action), _rising(beyond), settings)
        for action in dict.fromkeys(one.action for one in failed)
        if (beyond := status.times(action) - settings.repeated_failures) >= 0
    ]
    beyond = status.idle - settings.stalled_cycles
    if goal is not None and beyond >= 0:
        items.append(_item(AttentionType.ANOMALY, _stalled(goal), _rising(beyond), settings))
    change: dict[str, object] | None = None
    event: ObservedEvent | None = None
    if outcome.response is not None and outcome.ended_by in ("respond", None):
        change = {"status": GoalStatus.COMPLETED, "succeeded": True}
        event = _event(TransitionType.PROGRESS, "Answered")
    elif outcome.response is not None:
        change = {"status": GoalStatus.DEFERRED}
        event = _event(TransitionType.BRANCH, f"Handed over by {short(outcome.ended_by or '')}")
    elif failed:
        change = {"succeeded": False}
    changes = [{"goal": goal.id, **change}] if goal is not None and change else []
    yield Observation(
        goal_changes=tuple(map(GoalChange.model_validate, changes)),
        attention_items=tuple(items),
        resolved=_open_of(map(_had_effect, done), state),
        event=_failure_event(failed[0]) if failed else event,
        failure=_failure(failed[0], outcome) if failed else None,
    )
    for one in failed[1:]:
        yield Observation(event=_failure_event(one), failure=_failure(one, outcome))


def _failure_event(done: Executed) -> ObservedEvent:
    return _event(TransitionType.FAILURE, f"{short(done.action)} failed: {short(done.result)}")


def _failure(done: Executed, outcome: ExecutionOutcome) -> ObservedFailure:
    kinds = {percept.caused_by: percept.failure for percept in outcome.queued}
    kind = kinds.get(done.intent_id) if done.intent_id is not None else None
    reason = short(done.result)
    if done.arguments:
        arguments = json.dumps(done.arguments, ensure_ascii=False, sort_keys=True)
        reason = f"with {short(arguments)}: {reason}"
    lesson = f"{reason} ({_LESSONS[kind or Failure.TRANSIENT]})"
    return ObservedFailure(action=short(done.action), reason=reason, lesson=lesson)


# ---- Bounds, and what lies ahead in cycles ----

_NEARER = (TransitionType.PROGRESS, TransitionType.DISCOVERY)
"""Events that bring the goal nearer."""


def bounded(
    state: AwarenessState, settings: AwarenessSettings, goal: str | None = None
) -> AwarenessState:
    """The state with no more of anything than the settings keep; the goal of this id stays."""
    graph, world, own = state.goals, state.world, state.self_model
    over = len(graph.goals) - settings.kept_goals
    if over > 0:
        awaited = {on for one in graph.goals if one.is_open for on in one.depends_on}
        order = sorted(
            (one for one in graph.goals if one.id != goal),
            key=lambda one: (one.id in awaited, one.is_open, one.updated_step, one.priority),
        )
        graph = graph.without({one.id for one in order[:over]})
    entities = best(
        world.entities, settings.kept_entities, lambda one: (one.last_step, one.mentions)
    )
    if entities is not world.entities:
        gone = {one.name for one in world.entities} - {one.name for one in entities}
        edges = (one for one in world.relationships if gone.isdisjoint((one.source, one.target)))
        world = world.model_copy(update={"entities": entities, "relationships": tuple(edges)})
    latest = {(one.action, one.reason): one for one in own.failures}
    if len(latest) < len(own.failures):  # the same mistake is kept once, as it was made last
        failures = tuple(sorted(latest.values(), key=lambda one: one.step))
        own = own.model_copy(update={"failures": failures})
    world = bounded_world(world, settings.kept_relationships, settings.kept_beliefs)
    state = state.model_copy(update={"goals": graph, "world": world, "self_model": own})
    return bounded_focus(state, settings.kept_attention, settings.kept_transitions)


def _looked_ahead(
    state: AwarenessState, status: ActivityStatus, settings: ProjectionSettings
) -> tuple[AwarenessState, ActivityStatus]:
    """The state with what lies ahead in its attention, and the status with readings.

    Resources are read once a cycle, and a step of projection is a cycle: a cycle has two or three
    steps of the state, so an agent could not plan by those. Stalls and repeated failures are seen
    by the module's own rules.
    """
    looked_for = tuple(one for one in settings.of if one in (Ahead.RESOURCES, Ahead.DEADLINES))
    chosen = settings.model_copy(update={"of": looked_for})
    own = state.self_model.model_copy(update={"readings": status.readings})
    view = state.model_copy(update={"step": status.cycles, "self_model": own})
    view = with_readings(view, chosen)
    warnings = (
        item.model_copy(update={"created_step": state.step}) for item in project(view, chosen)
    )
    readings = view.self_model.readings
    return with_warnings(state, warnings), status.model_copy(update={"readings": readings})


# ---- The next step ----


@dataclass(frozen=True, slots=True)
class ActivityUpdater:
    """Gives the next step. Equal input gives equal results, on every machine."""

    settings: AwarenessSettings
    dynamics: DynamicsSettings
    resolver: NameResolver
    """A cache; it changes no result."""

    def perceived(
        self, before: ActivityStep, percept: Percept, observation: Observation
    ) -> ActivityStep:
        """After a percept with this observation; `AwarenessError` as `updated` raises it."""
        goal, served = before.goal, before.served
        status, event = before.status.with_text_of(percept.trust), observation.event
        is_message = percept.kind is PerceptKind.MESSAGE
        changes: tuple[GoalChange, ...] = ()
        settled = is_message and percept.sets_goal
        if is_message and not percept.sets_goal:
            if served is not None and served.status is GoalStatus.COMPLETED:
                # An answer ended it, and a message continues it.
                changes = (GoalChange(goal=served.id, status=GoalStatus.ACTIVE),)
        elif not is_message and event and event.type in _NEARER:
            status, settled = status.model_copy(update={"idle": 0}), True
            if goal is not None:
                changes = (GoalChange(goal=goal.id, succeeded=True),)
        state = self._updated(before.state, observation.plus(goal_changes=changes), percept.at)
        if is_message and percept.sets_goal:
            status = self._serving(percept.content, state, status)
        return self._step(before, state, status, stall_of=goal if settled else None)

    def executed(self, before: ActivityStep, outcome: ExecutionOutcome) -> ActivityStep:
        """After an execution."""
        goal, state, status = before.goal, before.state, before.status.after(outcome)
        for one in tuple(execution_by_rules(outcome, state, status, goal, self.settings)):
            state = self._updated(state, one, outcome.at)
        succeeded = [one.action for one in outcome.executed if not status.times(one.action)]
        ended = goal if outcome.response is not None else None
        return self._step(before, state, status, stall_of=ended, succeeded=succeeded)

    def adopted(self, before: ActivityStep, request: str) -> ActivityStep:
        """Serving the activity's goal, for a module that saw no percept of it."""
        description, known = goal_text(request, self.settings), before.served
        same = known is not None and folded(known.description) == folded(description)
        if same or not request.strip():
            return before
        observation = _pursued(description, before.state)
        state = self._updated(before.state, observation, before.state.at)
        status = self._serving(request, state, before.status).with_text_of(Trust.UNTRUSTED)
        return self._step(before, state, status)

    def _updated(
        self, state: AwarenessState, observation: Observation, at: datetime
    ) -> AwarenessState:
        observation = weighed_goals(observation, state, self.dynamics.learning)
        return updated(state, observation, at, resolver=self.resolver)

    def _serving(
        self, request: str, state: AwarenessState, status: ActivityStatus
    ) -> ActivityStatus:
        goal = _open_goal(state, goal_text(request, self.settings))
        return status.model_copy(update={"goal": goal.id if goal else None, "idle": 0})

    def _step(
        self,
        before: ActivityStep,
        after: AwarenessState,
        status: ActivityStatus,
        *,
        stall_of: Goal | None = None,
        succeeded: Iterable[str] = (),
    ) -> ActivityStep:
        """The step with what changes by itself, without settled attention, within bounds."""
        settled = [attention_id(AttentionType.THREAT, _repeated(one)) for one in succeeded]
        if stall_of is not None:
            settled.append(attention_id(AttentionType.ANOMALY, _stalled(stall_of)))
        after = after.model_copy(update={"attention": after.attention.without(*settled)})
        by_itself = self.dynamics.model_copy(update={"projection": None})
        pursued = () if status.goal is None else (status.goal,)
        state = advanced(before.state, after, by_itself, staying=pursued)
        if self.dynamics.projection is not None:
            state, status = _looked_ahead(state, status, self.dynamics.projection)
        state = bounded(state, self.settings, status.goal)
        return ActivityStep(state, status, archived(after, state))
