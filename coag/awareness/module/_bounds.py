"""Keeping the state within its bounds."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest
from typing import Any, TypeVar

from coag.awareness.dynamics import Left
from coag.awareness.state import (
    Attention,
    AwarenessState,
    Belief,
    GoalGraph,
    SelfModel,
    Trajectory,
    WorldModel,
)

from ._settings import AwarenessSettings

_Thing = TypeVar("_Thing")


def bounded(
    state: AwarenessState, settings: AwarenessSettings, goal: str | None = None
) -> AwarenessState:
    """The state with no more of anything than the settings keep; itself where nothing is over.

    Args:
        state: The state.
        settings: The bounds.
        goal: Id of the goal that stays whatever it is.
    """
    changes: dict[str, object] = {}
    parts = (
        ("goals", state.goals, _goals(state.goals, settings.kept_goals, goal)),
        ("trajectory", state.trajectory, _trajectory(state.trajectory, settings.kept_transitions)),
        ("world", state.world, _world(state.world, settings)),
        ("attention", state.attention, _attention(state.attention, settings.kept_attention)),
        ("self_model", state.self_model, _self_model(state.self_model)),
    )
    for name, before, after in parts:
        if after is not before:
            changes[name] = after
    return state.model_copy(update=changes) if changes else state


def left_between(before: AwarenessState, after: AwarenessState) -> Left:
    """The goals, things and relationships of one state that the next one has no more."""
    goals = {one.id for one in after.goals.goals}
    names = {one.name for one in after.world.entities}
    edges = {(one.source, one.type, one.target) for one in after.world.relationships}
    return Left(
        goals=tuple(one for one in before.goals.goals if one.id not in goals),
        entities=tuple(one for one in before.world.entities if one.name not in names),
        relationships=tuple(
            one
            for one in before.world.relationships
            if (one.source, one.type, one.target) not in edges
        ),
    )


def _goals(graph: GoalGraph, keep: int, current: str | None) -> GoalGraph:
    """Without the goals that are over: closed ones first, then those that no goal waits for."""
    over = len(graph.goals) - keep
    if over <= 0:
        return graph
    awaited = {on for goal in graph.goals if goal.is_open for on in goal.depends_on}
    order = sorted(
        (goal for goal in graph.goals if goal.id != current),
        key=lambda goal: (goal.id in awaited, goal.is_open, goal.updated_step, goal.priority),
    )
    gone = {goal.id for goal in order[:over]}
    return graph.without(gone)


def _self_model(self_model: SelfModel) -> SelfModel:
    """With the same mistake once, as it was made last."""
    latest = {(one.action, one.reason): one for one in self_model.failures}
    if len(latest) == len(self_model.failures):
        return self_model
    failures = tuple(sorted(latest.values(), key=lambda one: one.step))
    return self_model.model_copy(update={"failures": failures})


def _trajectory(trajectory: Trajectory, keep: int) -> Trajectory:
    """Without the oldest transitions, sticky or not."""
    over = len(trajectory.transitions) - keep
    if over <= 0:
        return trajectory
    return trajectory.model_copy(update={"transitions": trajectory.transitions[over:]})


def _attention(attention: Attention, keep: int) -> Attention:
    """Without the least urgent items, of equals the oldest; suppressed ids of items only."""
    items = _best(
        attention.items, keep, [(item.urgency, item.created_step) for item in attention.items]
    )
    suppressed = attention.suppressed[-keep:]
    if items is attention.items and len(suppressed) == len(attention.suppressed):
        return attention
    return attention.model_copy(update={"items": items, "suppressed": suppressed})


def _world(world: WorldModel, settings: AwarenessSettings) -> WorldModel:
    """Without the things that were mentioned longest ago, and what leads to them."""
    entities = _best(
        world.entities,
        settings.kept_entities,
        [(one.last_step, one.mentions) for one in world.entities],
    )
    edges = world.relationships
    if entities is not world.entities:
        gone = {one.name for one in world.entities} - {one.name for one in entities}
        edges = tuple(one for one in edges if not gone & {one.source, one.target})
    changes = {
        "entities": entities,
        "relationships": _best(edges, settings.kept_relationships, [one.step for one in edges]),
        "assumptions": _beliefs(world.assumptions, settings.kept_beliefs),
        "unknowns": _beliefs(world.unknowns, settings.kept_beliefs),
    }
    if all(getattr(world, name) is after for name, after in changes.items()):
        return world
    return world.model_copy(update=changes)


def _beliefs(beliefs: tuple[Belief, ...], keep: int) -> tuple[Belief, ...]:
    return _best(beliefs, keep, [(one.resolved is None, one.step) for one in beliefs])


def _best(things: tuple[_Thing, ...], keep: int, worth: Sequence[Any]) -> tuple[_Thing, ...]:
    """The things of most worth, in their order; of equals the later ones."""
    if len(things) <= keep:
        return things
    best = nlargest(keep, range(len(things)), key=lambda place: (worth[place], place))
    return tuple(things[place] for place in sorted(best))
