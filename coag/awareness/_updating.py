"""The next state, as a pure function (SAGEN §4.2, algorithm 1)."""

from __future__ import annotations

from datetime import datetime

from coag.errors import AwarenessError, ObservationError

from ._goal_changes import goals_changed, goals_with
from ._observation import Observation, ObservedEvent
from ._resolving import NameResolver
from ._world_changes import beliefs_with, world_settled, world_with
from .state import (
    Attention,
    AttentionItem,
    AwarenessState,
    FailureNote,
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
    event, expiry. What the paper has no line for stands next to its module: relationships after
    entities, changes of goals after new goals, what is settled after what is unknown, the self
    model before the event, compression after it.

    Raises:
        AwarenessError: The observation names what does not exist, or would make a circle.
    """
    ticked = state.tick(now)
    step = ticked.step
    world = world_with(state.world, observation, step, resolver)
    goals = goals_with(state.goals, observation.goals, step)
    goals = goals_changed(goals, observation.goal_changes, step)
    attention = _noticed(state.attention, observation, step, state.domain)
    world = world.model_copy(
        update={
            "assumptions": beliefs_with(world.assumptions, observation.assumptions, step),
            "unknowns": beliefs_with(world.unknowns, observation.unknowns, step),
        }
    )
    world = world_settled(world, observation.resolved, step)
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


def _noticed(attention: Attention, observation: Observation, step: int, source: str) -> Attention:
    """Attention with the items that were noticed."""
    for seen in observation.attention_items:
        item = AttentionItem(
            id=attention_id(seen.type, seen.description),
            type=seen.type,
            description=seen.description,
            urgency=seen.urgency,
            ttl=seen.ttl,
            created_step=step,
            source=source,
        )
        attention = attention.add(item)
    return attention


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
