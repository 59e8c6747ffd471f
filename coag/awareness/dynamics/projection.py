"""What lies ahead: trends of resources, and goals that cannot be reached."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, time, timedelta
from heapq import nlargest
from itertools import combinations, pairwise
from statistics import median

from coag.awareness.resolving import words_of
from coag.awareness.state import (
    Attention,
    AttentionItem,
    AttentionType,
    AwarenessState,
    FailureNote,
    Goal,
    GoalStatus,
    Need,
    Reading,
    Resource,
    Step,
    attention_id,
    folded,
)
from coag.schema import Moment, Value, one_line

from .decay import PROJECTED, last_words
from .settings import Ahead, ProjectionSettings

# ---- What a goal's completion criteria say that can be reckoned with ----


_BY_STEP = re.compile(r"\bby step (\d{1,9})\b")
_BY = re.compile(
    r"\bby (\d{4}-\d{2}-\d{2})(?:[ t](\d{2}:\d{2}(?::\d{2})?)(z|[+-]\d{2}:\d{2})?)?(?![\w:+-])"
)
_NEEDS = re.compile(r"\bneeds (\d{1,12}(?:\.\d{1,6})?) (?:of )?")


class Criteria(Value):
    """What is told of a goal in a form that can be reckoned with."""

    by_step: Step | None = None
    """From `by step 40`."""
    by: Moment | None = None
    """From `by 2026-03-01` (the end of that day, UTC) or `by 2026-03-01T12:00Z`."""


def criteria_of(goal: Goal) -> Criteria:
    """The deadlines in a goal's completion criteria; other words in it are left alone."""
    text = folded(goal.completion_criteria or "")
    step = _BY_STEP.search(text)
    return Criteria(by_step=int(step[1]) if step else None, by=_moment(text))


def amount_needed(goal: Goal, resource: Resource, needs: tuple[Need, ...]) -> float | None:
    """How much of a resource a goal takes; None if nobody says that it takes any.

    Told by its completion criteria (`needs 30 battery`), or by what an action takes that the
    goal's description names (`Move to charger` for the action `move_to_charger`). The most counts.
    """
    text, name = folded(goal.completion_criteria or ""), folded(resource.name)
    said = [
        float(match[1])
        for match in _NEEDS.finditer(text)
        if re.match(rf"{re.escape(name)}(?!\w)", text[match.end() :])
    ]
    said += [
        need.amount
        for need in needs
        if folded(need.resource) == name and _names_action(goal.description, need.action)
    ]
    return max(said, default=None)


def _moment(text: str) -> datetime | None:
    """The deadline as a time, if the text tells one that exists."""
    match = _BY.search(text)
    if match is None:
        return None
    day, hour, zone = match.groups()
    try:
        if hour is None:
            return datetime.combine(datetime.fromisoformat(day), time.max, UTC)
        said = datetime.fromisoformat(f"{day}T{hour}{(zone or '').upper()}")
        return said.astimezone(UTC) if said.tzinfo else said.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None  # "by 2026-13-45" is no time; it stays what it was, words


def _names_action(text: str, action: str) -> bool:
    """Whether a text has the words of an action's name in a row; `*` stands for none."""
    said, wanted = words_of(text), words_of(action.replace("*", " "))
    starts = range(len(said) - len(wanted) + 1)
    return bool(wanted) and any(said[start : start + len(wanted)] == wanted for start in starts)


# ---- How fast a resource runs low: readings of earlier steps, and the trend that they show ----
#
# The trend is the median of the slopes between all pairs of readings (Sen 1968, "Estimates of the
# regression coefficient based on Kendall's tau"), which single odd readings hardly move; a fall
# that happened only once is no trend. Only readings since the last rise count: what was filled up
# begins anew.


_FALLS = 2
"""How often a resource falls before that is a trend."""


class Trend(Value):
    """How a resource went lately."""

    resource: Resource
    per_step: float | None = None
    """Change in a step, negative while it runs low; None where too little is known."""
    grows: bool = False
    """Whether it rose, and did not fall since."""

    def steps_until(self, amount: float) -> float | None:
        """Steps until so much is left, if it goes on like this; None if that is not to be seen.

        0 where there is no more than that already.
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
    read = [
        Reading(resource=one.name, step=state.step, remaining=one.remaining)
        for one in own.resources
        if one.depletable
    ]
    if not read and not own.readings:
        return state
    by_name: dict[str, list[Reading]] = {folded(one.resource): [] for one in read}
    for one in (*own.readings, *read):
        kept = by_name.get(folded(one.resource))
        if kept is not None:
            kept[:] = [*(each for each in kept if each.step != one.step), one]
    readings = [one for kept in by_name.values() for one in kept[-settings.readings :]]
    readings.sort(key=lambda one: one.step)
    changed = own.model_copy(update={"readings": tuple(readings)})
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


#
# SAGEN leaves projection to the model that reads the trajectory (§2.3). Here it is reckoned from
# what the state holds: resources that run low, goals that stall, actions that keep failing,
# deadlines.
_LENGTH = 80
"""Characters of a goal or an action in a warning."""


def project(
    state: AwarenessState, settings: ProjectionSettings | None = None
) -> tuple[AttentionItem, ...]:
    """What is to be seen ahead of a state, the most urgent first.

    Each item is there for one step, and has the same id as long as it is about the same thing, so
    that it can be suppressed. Pure: the same state and settings give the same.
    """
    chosen = settings or ProjectionSettings()
    found = [item for kind in dict.fromkeys(chosen.of) for item in _SEEN[kind](state, chosen)]
    found.sort(key=lambda item: (-item.urgency, item.id))
    return tuple(found[: chosen.most])


def with_projection(
    state: AwarenessState, settings: ProjectionSettings | None = None
) -> AwarenessState:
    """The state with what is to be seen ahead in its attention, in the place of what was before."""
    return with_warnings(state, project(state, settings))


def with_warnings(state: AwarenessState, warnings: Iterable[AttentionItem]) -> AwarenessState:
    """The state with these warnings in its attention, in the place of what projection raised."""
    others = tuple(item for item in state.attention.items if item.source != PROJECTED)
    attention: Attention = state.attention.model_copy(update={"items": others})
    for item in warnings:
        attention = attention.add(item)
    return state.model_copy(update={"attention": attention})


def _running_out(state: AwarenessState, settings: ProjectionSettings) -> Iterator[AttentionItem]:
    """Resources that will be used up, or fall under what an active goal needs."""
    needs = state.self_model.needs
    active = [one for one in state.goals.active_goals if needs or one.completion_criteria]
    for trend in trends(state, settings):
        name = one_line(trend.resource.name, _LENGTH)
        left = trend.steps_until(0.0)
        if left is not None and 0 < left <= settings.horizon:
            yield _warning(
                state,
                AttentionType.THREAT,
                f"{name} runs out",
                f"{name} runs out in about {_steps(left)}: {trend.resource.remaining:g} left",
                _urgency(left / settings.horizon, settings),
            )
        for goal in active:
            yield from _short_for(goal, trend, state, settings)


def _short_for(
    goal: Goal, trend: Trend, state: AwarenessState, settings: ProjectionSettings
) -> Iterator[AttentionItem]:
    """That a goal will not have what it needs."""
    amount = amount_needed(goal, trend.resource, state.self_model.needs)
    left = trend.steps_until(amount) if amount else None
    if amount is None or left is None or left > settings.horizon:
        return
    name, wanted = one_line(trend.resource.name, _LENGTH), one_line(goal.description, _LENGTH)
    short = trend.resource.remaining < amount
    when = "has" if short else f"in about {_steps(left)} has"
    yield _warning(
        state,
        AttentionType.THREAT,
        f"{name} for {goal.id}",
        f"{name} {when} less than the {amount:g} that this needs: {wanted}",
        _urgency(left / settings.horizon, settings),
    )


def _stalled(state: AwarenessState, settings: ProjectionSettings) -> Iterator[AttentionItem]:
    """Active goals of which nothing was heard for a while."""
    latest = last_words(state.goals)
    silent = [
        (goal, steps)
        for goal in state.goals.active_goals
        if (steps := state.step - latest[goal.id]) >= settings.stall_steps
    ]

    def urgency(one: tuple[Goal, int]) -> float:
        goal, steps = one
        return _urgency(settings.stall_steps / steps, settings) * goal.priority

    for goal, steps in nlargest(settings.most, silent, key=urgency):
        yield _warning(
            state,
            AttentionType.ANOMALY,
            f"{goal.id} stalls",
            f"No progress for {steps} steps: {one_line(goal.description, _LENGTH)}",
            urgency((goal, steps)),
        )


def _failing(state: AwarenessState, settings: ProjectionSettings) -> Iterator[AttentionItem]:
    """Actions that failed again and again lately: they will do so once more."""
    recent: dict[str, list[FailureNote]] = {}
    for note in state.self_model.failures:
        if state.step - note.step < settings.failure_steps:
            recent.setdefault(folded(note.action), []).append(note)
    for action, notes in recent.items():
        if len(notes) < settings.failures:
            continue
        last = notes[-1]
        why = one_line(last.lesson or last.reason, _LENGTH)
        yield _warning(
            state,
            AttentionType.THREAT,
            f"{action} fails",
            f"{one_line(last.action, _LENGTH)} failed {len(notes)} times in "
            f"{settings.failure_steps} steps{f': {why}' if why else ''}",
            _urgency(settings.failures / (len(notes) + 1), settings),
        )


def _deadlines(state: AwarenessState, settings: ProjectionSettings) -> Iterator[AttentionItem]:
    """Open goals whose time is nearly over, or is."""
    for goal in state.goals.goals:
        if not goal.is_open or goal.status is GoalStatus.DEFERRED or not goal.completion_criteria:
            continue
        told, wanted = criteria_of(goal), one_line(goal.description, _LENGTH)
        if told.by_step is not None:
            left = told.by_step - state.step
            due = f"due in {_steps(left)}" if left > 0 else f"was due at step {told.by_step}"
            share = left / settings.horizon
        elif told.by is not None:
            away = told.by - state.at
            due = (
                f"due in {_time(away)}"
                if away > timedelta()
                else f"was due at {told.by.isoformat(timespec='minutes')}"
            )
            share = away.total_seconds() / settings.horizon_seconds
        else:
            continue
        if share <= 1.0:
            yield _warning(
                state,
                AttentionType.THREAT,
                f"{goal.id} due",
                f"{due[0].upper()}{due[1:]}: {wanted}",
                _urgency(share, settings),
            )


_SEEN: Mapping[Ahead, Callable[[AwarenessState, ProjectionSettings], Iterator[AttentionItem]]] = {
    Ahead.RESOURCES: _running_out,
    Ahead.STALLS: _stalled,
    Ahead.FAILURES: _failing,
    Ahead.DEADLINES: _deadlines,
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


def _steps(count: float) -> str:
    whole = max(1, round(count))
    return f"{whole} step" if whole == 1 else f"{whole} steps"


def _time(away: timedelta) -> str:
    minutes = max(1, round(away.total_seconds() / 60))
    return f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"
