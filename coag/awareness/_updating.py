"""The next state, as a pure function (SAGEN §4.2, algorithm 1)."""

from __future__ import annotations

from datetime import datetime

from coag.errors import AwarenessError, ObservationError

from ._goal_changes import add_goals, change_goals
from ._observation import Observation, ObservedEvent
from ._resolving import NameResolver
from ._world_changes import with_beliefs, world_with
from .state import (
    Attention,
    AttentionItem,
    AwarenessState,
    FailureNote,
    GoalGraph,
    SelfModel,
    Trajectory,
    Transition,
    attention_id,
)


def updated(
    state: AwarenessState, observation: Observation, now: datetime, *, resolver: NameResolver
) -> AwarenessState:
    """The state one step later, with what was observed.

    In the order of algorithm 1: tick, entities, goals, attention, assumptions, unknowns, the
    event, expiry. What the paper has no line for stands next to its module: numbers of different
    types are told apart before entities, relationships come after them, changes of goals after new
    goals, what is settled after what is unknown, the self model before the event, compression
    after it.

    Raises:
        AwarenessError: The observation names what does not exist, or would make a circle.
    """
    ticked = state.tick(now)
    step = ticked.step
    world = world_with(state.world, observation, step, resolver)
    goals = _pursued(state.goals, observation, step, resolver)
    attention = _noticed(state.attention, observation, step, state.domain)
    world = with_beliefs(world, observation, step, resolver)
    self_model = _self_with(state.self_model, observation, step, resolver.settings.kept_failures)
    return ticked.model_copy(
        update={
            "world": world,
            "goals": goals,
            "self_model": self_model,
            "trajectory": _recorded(state.trajectory, observation.event, step),
            "attention": attention.expire(step),
        }
    )


def _pursued(
    graph: GoalGraph, observation: Observation, step: int, resolver: NameResolver
) -> GoalGraph:
    """The goals with those that were noticed, and with what became of earlier ones."""
    if not observation.goals and not observation.goal_changes:
        return graph
    draft = resolver.goals_of(graph)
    add_goals(draft, observation.goals, step)
    change_goals(draft, observation.goal_changes, step)
    resolver.keep_goals(draft)
    return graph.drafted(draft)


def _noticed(attention: Attention, observation: Observation, step: int, source: str) -> Attention:
    """Attention with the items that were noticed."""
    if not observation.attention_items:
        return attention
    return attention.add(
        *(
            AttentionItem(
                id=attention_id(seen.type, seen.description, seen.slot),
                type=seen.type,
                description=seen.description,
                urgency=seen.urgency,
                ttl=seen.ttl,
                created_step=step,
                source=source,
            )
            for seen in observation.attention_items
        )
    )


def _recorded(trajectory: Trajectory, event: ObservedEvent | None, step: int) -> Trajectory:
    """The trajectory with the event, compressed."""
    if event is None:
        return trajectory
    transition = Transition(
        step=step, type=event.type, description=event.description, detail=event.detail
    )
    return trajectory.record(transition).compress()


def _self_with(
    self_model: SelfModel, observation: Observation, step: int, kept_failures: int
) -> SelfModel:
    """The self model with resources read and spent, and a mistake noted."""
    for resource in observation.resources:
        self_model = self_model.read(resource)
    for place, spent in enumerate(observation.spent):
        try:
            self_model = self_model.spend(spent.resource, spent.amount)
        except AwarenessError as error:
            raise ObservationError(f"spent[{place}].resource", str(error)) from error
    if observation.failure is None:
        return self_model
    note = FailureNote(step=step, **observation.failure.model_dump())
    return self_model.note(note, keep=kept_failures)
