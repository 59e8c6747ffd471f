"""What lies ahead: resources that run out, goals that stall or fall due, repeated failures.

SAGEN leaves projection to the model that reads the trajectory (§2.3). Here it is computed from
what the state holds, and raised as attention items.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, time, timedelta
from heapq import nlargest
from itertools import combinations, pairwise
from statistics import median

from coag.schema import Moment, Value, folded, one_line

from .dynamics import PROJECTED, Ahead, ProjectionSettings, last_mentions
from .fields import Step
from .goals import Goal, GoalStatus
from .names import words_of
from .state import (
    AttentionItem,
    AttentionType,
    AwarenessState,
    FailureNote,
    Need,
    Reading,
    Resource,
    attention_id,
)

# ---- Deadlines and amounts in a goal's completion criteria ----

_BY_STEP = re.compile(r"\bby step (\d{1,9})\b")
_BY = re.compile(
    r"\bby (\d{4}-\d{2}-\d{2})(?:[ t](\d{2}:\d{2}(?::\d{2})?)(z|[+-]\d{2}:\d{2})?)?(?![\w:+-])"
)
_NEEDS = re.compile(r"\bneeds (\d{1,12}(?:\.\d{1,6})?) (?:of )?")


class Criteria(Value):
    """The deadlines that a goal's completion criteria name."""

    by_step: Step | None = None
    """From `by step 40`."""
    by: Moment | None = None
    """From `by 2026-03-01` (the end of that day, UTC) or `by 2026-03-01T12:00Z`."""


def criteria_of(goal: Goal) -> Criteria:
    """The deadlines in a goal's completion criteria; other words in it are ignored."""
    text = folded(goal.completion_criteria or "")
    step = _BY_STEP.search(text)
    return Criteria(by_step=int(step[1]) if step else None, by=_moment(text))


def _moment(text: str) -> datetime | None:
    """The deadline as a time, if the text names one that exists."""
    match = _BY.search(text)
    if match is None:
        return None
    day, hour, zone = match.groups()
    try:
        if hour is None:
            return datetime.combine(datetime.fromisoformat(day), time.max, UTC)
        when = datetime.fromisoformat(f"{day}T{hour}{(zone or '').upper()}")
        return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None  # "by 2026-13-45" is no time


def _amount_needed(goal: Goal, resource: Resource, needs: tuple[Need, ...]) -> float | None:
    """How much of a resource a goal takes; None if nothing says that it takes any.

    From its completion criteria (`needs 30 battery`), or from the needs of an action that its
    description names (`Move to charger` for the action `move_to_charger`). The most counts.
    """
    text, name = folded(goal.completion_criteria or ""), folded(resource.name)
    amounts = [
        float(match[1])
        for match in _NEEDS.finditer(text)
        if re.match(rf"{re.escape(name)}(?!\w)", text[match.end() :])
    ]
    amounts += [
        need.amount
        for need in needs
        if folded(need.resource) == name and _names_action(goal.description, need.action)
    ]
    return max(amounts, default=None)


def _names_action(text: str, action: str) -> bool:
    """Whether a text has the words of an action's name in a row; `*` stands for none."""
    words, wanted = words_of(text), words_of(action.replace("*", " "))
    starts = range(len(words) - len(wanted) + 1)
    return bool(wanted) and any(words[start : start + len(wanted)] == wanted for start in starts)


# ---- Trends of resources ----
#
# The trend is the median of the slopes between all pairs of readings (Sen 1968, "Estimates of the
# regression coefficient based on Kendall's tau"), which single outliers hardly move; a fall that
# happened only once is no trend. Only readings since the last rise count.

_FALLS = 2
"""How often a resource falls before that is a trend."""


class Trend(Value):
    """How a resource changed recently."""

    resource: Resource
    per_step: float | None = None
    """Change in a step, negative while it decreases; None where too little is known."""
    grows: bool = False
    """Whether it rose, and did not fall since."""

    def steps_until(self, amount: float) -> float | None:
        """Steps until only so much remains, at this rate; 0 if there is no more already.

        None if that cannot be predicted.
        """
        if self.grows or self.per_step is None:
            return None
        above = self.resource.remaining - amount
        if above <= 0:
            return 0.0
        return above / -self.per_step if self.per_step < 0 else None


def with_readings(state: AwarenessState, settings: ProjectionSettings) -> AwarenessState:
    """The state with its resources read at its step; the latest readings of each are kept."""
    own = state.self_model
    new = [
        Reading(resource=one.name, step=state.step, remaining=one.remaining)
        for one in own.resources
        if one.depletable
    ]
    if not new and not own.readings:
        return state
    by_name: dict[str, dict[int, Reading]] = {folded(one.resource): {} for one in new}
    for one in (*own.readings, *new):
        of_resource = by_name.get(folded(one.resource))
        if of_resource is not None:
            of_resource.pop(one.step, None)
            of_resource[one.step] = one
    latest = [one for each in by_name.values() for one in [*each.values()][-settings.readings :]]
    latest.sort(key=lambda one: one.step)
    changed = own.model_copy(update={"readings": tuple(latest)})
    return state.model_copy(update={"self_model": changed})


def trends(state: AwarenessState, settings: ProjectionSettings) -> tuple[Trend, ...]:
    """The trend of each resource that can run out."""
    return tuple(
        _trend(one, state.self_model.readings, settings)
        for one in state.self_model.resources
        if one.depletable
    )


def _trend(
    resource: Resource, readings: tuple[Reading, ...], settings: ProjectionSettings
) -> Trend:
    name = folded(resource.name)
    own = [one for one in readings if folded(one.resource) == name][-settings.readings :]
    start = 0
    for place, (earlier, later) in enumerate(pairwise(own), 1):
        if later.remaining > earlier.remaining:
            start = place
    since = own[start:]
    grows = start > 0 and own[-1].remaining == own[start].remaining
    if len(since) < settings.least_readings:
        return Trend(resource=resource, grows=grows)
    if sum(later.remaining < earlier.remaining for earlier, later in pairwise(since)) < _FALLS:
        return Trend(resource=resource, per_step=0.0, grows=grows)
    slopes = [
        (later.remaining - earlier.remaining) / (later.step - earlier.step)
        for earlier, later in combinations(since, 2)
        if later.step > earlier.step
    ]
    return Trend(resource=resource, per_step=median(slopes) if slopes else None, grows=grows)


# ---- Warnings ----

_LENGTH = 80
"""Characters of a goal or an action in a warning."""


def project(
    state: AwarenessState, settings: ProjectionSettings | None = None
) -> tuple[AttentionItem, ...]:
    """Warnings of what lies ahead of a state, the most urgent first.

    Each lasts for one step, and keeps its id as long as it is about the same thing, so that it
    can be suppressed.
    """
    chosen = settings or ProjectionSettings()
    found = [item for kind in dict.fromkeys(chosen.of) for item in _WARNINGS[kind](state, chosen)]
    found.sort(key=lambda item: (-item.urgency, item.id))
    return tuple(found[: chosen.most])


def with_projection(
    state: AwarenessState, settings: ProjectionSettings | None = None
) -> AwarenessState:
    """The state with what lies ahead in its attention, in place of earlier warnings."""
    return with_warnings(state, project(state, settings))


def with_warnings(state: AwarenessState, warnings: Iterable[AttentionItem]) -> AwarenessState:
    """The state with these warnings in its attention, in place of earlier ones."""
    others = tuple(item for item in state.attention.items if item.source != PROJECTED)
    attention = state.attention.model_copy(update={"items": others}).add(*warnings)
    return state.model_copy(update={"attention": attention})


def _running_out(state: AwarenessState, settings: ProjectionSettings) -> Iterator[AttentionItem]:
    """Resources that will be used up, or fall under what an active goal needs."""
    needs = state.self_model.needs
    active = [one for one in state.goals.active_goals if needs or one.completion_criteria]
    for trend in trends(state, settings):
        name = one_line(trend.resource.name, _LENGTH)
        steps = trend.steps_until(0.0)
        if steps is not None and 0 < steps <= settings.horizon:
            text = f"{name} runs out in about {_steps(steps)}: {trend.resource.remaining:g} left"
            urgency = _urgency(steps / settings.horizon, settings)
            yield _warning(state, AttentionType.THREAT, f"{name} runs out", text, urgency)
        for goal in active:
            amount = _amount_needed(goal, trend.resource, needs)
            steps = trend.steps_until(amount) if amount else None
            if amount is None or steps is None or steps > settings.horizon:
                continue
            short = trend.resource.remaining < amount
            when = "has" if short else f"in about {_steps(steps)} has"
            text = f"{name} {when} less than the {amount:g} that this needs: {_shown(goal)}"
            urgency = _urgency(steps / settings.horizon, settings)
            yield _warning(state, AttentionType.THREAT, f"{name} for {goal.id}", text, urgency)


def _stalled(state: AwarenessState, settings: ProjectionSettings) -> Iterator[AttentionItem]:
    """Active goals that were not mentioned for a while."""
    latest = last_mentions(state.goals)
    silent = [
        (goal, steps)
        for goal in state.goals.active_goals
        if (steps := state.step - latest[goal.id]) >= settings.stall_steps
    ]

    def urgency(one: tuple[Goal, int]) -> float:
        goal, steps = one
        return _urgency(settings.stall_steps / steps, settings) * goal.priority

    for goal, steps in nlargest(settings.most, silent, key=urgency):
        text = f"No progress for {steps} steps: {_shown(goal)}"
        about = f"{goal.id} stalls"
        yield _warning(state, AttentionType.ANOMALY, about, text, urgency((goal, steps)))


def _failing(state: AwarenessState, settings: ProjectionSettings) -> Iterator[AttentionItem]:
    """Actions that failed repeatedly in the last steps."""
    recent: dict[str, list[FailureNote]] = {}
    for note in state.self_model.failures:
        if state.step - note.step < settings.failure_steps:
            recent.setdefault(folded(note.action), []).append(note)
    for action, notes in recent.items():
        if len(notes) < settings.failures:
            continue
        last = notes[-1]
        why = one_line(last.lesson or last.reason, _LENGTH)
        text = (
            f"{one_line(last.action, _LENGTH)} failed {len(notes)} times in "
            f"{settings.failure_steps} steps{f': {why}' if why else ''}"
        )
        urgency = _urgency(settings.failures / (len(notes) + 1), settings)
        yield _warning(state, AttentionType.THREAT, f"{action} fails", text, urgency)


def _due(state: AwarenessState, settings: ProjectionSettings) -> Iterator[AttentionItem]:
    """Open goals whose deadline is near or over."""
    for goal in state.goals.goals:
        if not goal.is_open or goal.status is GoalStatus.DEFERRED or not goal.completion_criteria:
            continue
        criteria = criteria_of(goal)
        if criteria.by_step is not None:
            steps = criteria.by_step - state.step
            over = f"Was due at step {criteria.by_step}"
            due = f"Due in {_steps(steps)}" if steps > 0 else over
            share = steps / settings.horizon
        elif criteria.by is not None:
            away = criteria.by - state.at
            over = f"Was due at {criteria.by.isoformat(timespec='minutes')}"
            due = f"Due in {_time(away)}" if away > timedelta() else over
            share = away.total_seconds() / settings.horizon_seconds
        else:
            continue
        if share <= 1.0:
            text, urgency = f"{due}: {_shown(goal)}", _urgency(share, settings)
            yield _warning(state, AttentionType.THREAT, f"{goal.id} due", text, urgency)


_WARNINGS: Mapping[
    Ahead, Callable[[AwarenessState, ProjectionSettings], Iterator[AttentionItem]]
] = {
    Ahead.RESOURCES: _running_out,
    Ahead.STALLS: _stalled,
    Ahead.FAILURES: _failing,
    Ahead.DEADLINES: _due,
}


def _warning(
    state: AwarenessState, type: AttentionType, about: str, description: str, urgency: float
) -> AttentionItem:
    return AttentionItem(
        id=attention_id(type, f"{PROJECTED}: {about}"),
        type=type,
        description=description,
        urgency=urgency,
        ttl=1,
        created_step=state.step,
        source=PROJECTED,
    )


def _urgency(share: float, settings: ProjectionSettings) -> float:
    """From the least urgency at the horizon (share 1) to 1 for what is here (share 0)."""
    near = 1.0 - min(1.0, max(0.0, share))
    return settings.least_urgency + (1.0 - settings.least_urgency) * near


def _shown(goal: Goal) -> str:
    return one_line(goal.description, _LENGTH)


def _steps(count: float) -> str:
    whole = max(1, round(count))
    return f"{whole} step" if whole == 1 else f"{whole} steps"


def _time(away: timedelta) -> str:
    minutes = max(1, round(away.total_seconds() / 60))
    return f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"
