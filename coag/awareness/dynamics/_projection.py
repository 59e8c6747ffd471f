"""What will happen next, as far as it can be seen: the third level of awareness (Endsley 1995).

SAGEN leaves projection to the model that reads the trajectory (§2.3). Here it is reckoned from
what the state holds: resources that run low, goals that stall, actions that keep failing,
deadlines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from heapq import nlargest

from coag.awareness.state import (
    Attention,
    AttentionItem,
    AttentionType,
    AwarenessState,
    FailureNote,
    Goal,
    GoalStatus,
    attention_id,
    folded,
)
from coag.schema import one_line

from ._activation import last_words
from ._criteria import amount_needed, criteria_of
from ._mentions import PROJECTED
from ._settings import Ahead, ProjectionSettings
from ._trend import Trend, trends

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
