"""Warnings: resources that run out, goals that stall or fall due, repeated failures.

SAGEN leaves projection to the model that reads the trajectory (§2.3). Here it is computed from
what the state holds, and raised as attention items.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from heapq import nlargest
from itertools import combinations, pairwise
from operator import itemgetter
from statistics import median

from coag.schema import folded, one_line

from .dynamics import PROJECTED, Ahead, ProjectionSettings, last_mentions
from .fields import occurs_in_row
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


def deadline_of(goal: Goal) -> int | datetime | None:
    """The deadline in a goal's completion criteria, a step or a time; other words are ignored.

    `by step 40`, `by 2026-03-01` (the end of that day, UTC) or `by 2026-03-01T12:00Z`.
    """
    text = folded(goal.completion_criteria or "")
    if step := _BY_STEP.search(text):
        return int(step[1])
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


def _amount_needed(goal: Goal, resource: Resource, needs: tuple[Need, ...]) -> float:
    """How much of a resource a goal takes; 0 if nothing says that it takes any.

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
        if folded(need.resource) == name
        and occurs_in_row(words_of(need.action.replace("*", " ")), words_of(goal.description))
    ]
    return max(amounts, default=0.0)


# ---- Trends of resources ----
#
# The trend is the median of the slopes between all pairs of readings (Sen 1968, "Estimates of the
# regression coefficient based on Kendall's tau"), which single outliers hardly move; a fall that
# happened only once is no trend. Only readings since the last rise count.

_FALLS = 2
"""How often a resource falls before that is a trend."""


def with_readings(state: AwarenessState, settings: ProjectionSettings) -> AwarenessState:
    """The state with its resources read at its step; the latest readings of each are kept."""
    own = state.self_model
    by_name: dict[str, dict[int, Reading]] = {
        folded(one.name): {} for one in own.resources if one.depletable
    }
    new = [
        Reading(resource=one.name, step=state.step, remaining=one.remaining)
        for one in own.resources
        if one.depletable
    ]
    if not new and not own.readings:
        return state
    for one in (*own.readings, *new):
        of_resource = by_name.get(folded(one.resource))
        if of_resource is not None:
            of_resource.pop(one.step, None)
            of_resource[one.step] = one
    latest = [one for each in by_name.values() for one in [*each.values()][-settings.readings :]]
    latest.sort(key=lambda one: one.step)
    changed = own.model_copy(update={"readings": tuple(latest)})
    return state.model_copy(update={"self_model": changed})


def _steps_until(
    amount: float, resource: Resource, own: Sequence[Reading], settings: ProjectionSettings
) -> float | None:
    """Steps until only so much of a resource remains, by its readings; 0 if that is so already.

    None if that cannot be predicted: it rose and did not fall since, or too little is known.
    """
    start = 0
    for place, (earlier, later) in enumerate(pairwise(own), 1):
        if later.remaining > earlier.remaining:
            start = place
    since = own[start:]
    if start > 0 and own[-1].remaining == own[start].remaining:
        return None
    if len(since) < settings.least_readings:
        return None
    per_step = 0.0
    if sum(later.remaining < earlier.remaining for earlier, later in pairwise(since)) >= _FALLS:
        slopes = [
            (later.remaining - earlier.remaining) / (later.step - earlier.step)
            for earlier, later in combinations(since, 2)
            if later.step > earlier.step
        ]
        if not slopes:
            return None
        per_step = median(slopes)
    above = resource.remaining - amount
    if above <= 0:
        return 0.0
    return above / -per_step if per_step < 0 else None


# ---- Warnings ----

_LENGTH = 80
"""Characters of a goal or an action in a warning."""
_Warning = tuple[str, str, float]
"""What it is about, by which it is known again; its text; its urgency."""


def project(
    state: AwarenessState, settings: ProjectionSettings | None = None
) -> tuple[AttentionItem, ...]:
    """Warnings of what comes next, the most urgent first.

    Each lasts for one step, and keeps its id as long as it is about the same thing, so that it
    can be suppressed.
    """
    chosen = settings or ProjectionSettings()
    items: list[AttentionItem] = []
    for kind in dict.fromkeys(chosen.of):
        type = AttentionType.ANOMALY if kind is Ahead.STALLS else AttentionType.THREAT
        items += [
            AttentionItem(
                id=attention_id(type, f"{PROJECTED}: {about}"),
                type=type,
                description=text,
                urgency=urgency,
                ttl=1,
                created_step=state.step,
                source=PROJECTED,
            )
            for about, text, urgency in _WARNINGS[kind](state, chosen)
        ]
    items.sort(key=lambda item: (-item.urgency, item.id))
    return tuple(items[: chosen.most])


def with_warnings(state: AwarenessState, warnings: Iterable[AttentionItem]) -> AwarenessState:
    """The state with these warnings in its attention, in place of earlier ones."""
    others = tuple(item for item in state.attention.items if item.source != PROJECTED)
    attention = state.attention.model_copy(update={"items": others}).add(*warnings)
    return state.model_copy(update={"attention": attention})


def _running_out(state: AwarenessState, settings: ProjectionSettings) -> Iterator[_Warning]:
    """Resources that will be used up, or fall under what an active goal needs."""
    own = state.self_model
    active = [one for one in state.goals.active_goals if own.needs or one.completion_criteria]
    for resource in own.resources:
        if not resource.depletable:
            continue
        wanted, name = folded(resource.name), one_line(resource.name, _LENGTH)
        read = [one for one in own.readings if folded(one.resource) == wanted]
        read = read[-settings.readings :]
        steps = _steps_until(0.0, resource, read, settings)
        if steps and steps <= settings.horizon:
            text = f"{name} runs out in about {_steps(steps)}: {resource.remaining:g} left"
            yield f"{name} runs out", text, _urgency(steps / settings.horizon, settings)
        for goal in active:
            amount = _amount_needed(goal, resource, own.needs)
            steps = _steps_until(amount, resource, read, settings) if amount else None
            if steps is None or steps > settings.horizon:
                continue
            when = "has" if resource.remaining < amount else f"in about {_steps(steps)} has"
            text = f"{name} {when} less than the {amount:g} that this needs: {_short(goal)}"
            yield f"{name} for {goal.id}", text, _urgency(steps / settings.horizon, settings)


def _stalled(state: AwarenessState, settings: ProjectionSettings) -> Iterator[_Warning]:
    """Active goals that were not mentioned for a while."""
    latest, silent = last_mentions(state.goals), list[tuple[float, int, Goal]]()
    for goal in state.goals.active_goals:
        steps = state.step - latest[goal.id]
        if steps >= settings.stall_steps:
            urgency = _urgency(settings.stall_steps / steps, settings) * goal.priority
            silent.append((urgency, steps, goal))
    for urgency, steps, goal in nlargest(settings.most, silent, key=itemgetter(0)):
        yield f"{goal.id} stalls", f"No progress for {steps} steps: {_short(goal)}", urgency


def _failing(state: AwarenessState, settings: ProjectionSettings) -> Iterator[_Warning]:
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
        yield f"{action} fails", text, _urgency(settings.failures / (len(notes) + 1), settings)


def _due(state: AwarenessState, settings: ProjectionSettings) -> Iterator[_Warning]:
    """Open goals whose deadline is near or over."""
    for goal in state.goals.goals:
        if not goal.is_open or goal.status is GoalStatus.DEFERRED:
            continue
        deadline = deadline_of(goal) if goal.completion_criteria else None
        if isinstance(deadline, int):
            steps = deadline - state.step
            due = f"Due in {_steps(steps)}" if steps > 0 else f"Was due at step {deadline}"
            share = steps / settings.horizon
        elif deadline is not None:
            away = deadline - state.at
            over = f"Was due at {deadline.isoformat(timespec='minutes')}"
            due = f"Due in {_time(away)}" if away > timedelta() else over
            share = away.total_seconds() / settings.horizon_seconds
        else:
            continue
        if share <= 1.0:
            yield f"{goal.id} due", f"{due}: {_short(goal)}", _urgency(share, settings)


_WARNINGS: Mapping[Ahead, Callable[[AwarenessState, ProjectionSettings], Iterator[_Warning]]] = {
    Ahead.RESOURCES: _running_out,
    Ahead.STALLS: _stalled,
    Ahead.FAILURES: _failing,
    Ahead.DEADLINES: _due,
}


def _urgency(share: float, settings: ProjectionSettings) -> float:
    """From the least urgency at the horizon (share 1) to 1 for what is here (share 0)."""
    near = 1.0 - min(1.0, max(0.0, share))
    return settings.least_urgency + (1.0 - settings.least_urgency) * near


def _short(goal: Goal) -> str:
    return one_line(goal.description, _LENGTH)


def _steps(count: float) -> str:
    rounded = max(1, round(count))
    return f"{rounded} step" if rounded == 1 else f"{rounded} steps"


def _time(away: timedelta) -> str:
    minutes = max(1, round(away.total_seconds() / 60))
    return f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"
