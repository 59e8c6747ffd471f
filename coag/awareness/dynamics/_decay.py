"""Decay of a whole state."""

from __future__ import annotations

from collections.abc import Collection

from coag.awareness.state import (
    Attention,
    AttentionItem,
    AwarenessState,
    Entity,
    Goal,
    Relationship,
    Trajectory,
    Transition,
)
from coag.schema import Value

from ._activation import effective_priorities
from ._goal_decay import decayed_goals
from ._mentions import held_texts, salient_texts
from ._settings import DecaySettings
from ._world_decay import decayed_world


class Left(Value):
    """What left a state, each as it stood then."""

    goals: tuple[Goal, ...] = ()
    entities: tuple[Entity, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    attention: tuple[AttentionItem, ...] = ()
    transitions: tuple[Transition, ...] = ()


class Decayed(Value):
    """A state without what faded, and that."""

    state: AwarenessState
    left: Left = Left()


def decayed(
    state: AwarenessState, settings: DecaySettings, *, staying: Collection[str] = ()
) -> Decayed:
    """The state without what faded: goals first, then what nothing names any more.

    Pure: the same state and settings give the same. What the program declared, the protocol and
    the scan patterns stay as they are.

    Args:
        state: The state.
        settings: Thresholds and bounds.
        staying: Ids of goals that stay whatever happens, e.g. the one that is being pursued.
    """
    salient = salient_texts(state)
    goals = decayed_goals(state, settings, staying)
    transitions, old = _latest(state.trajectory, settings.most_transitions)
    attention, ignored = _most_urgent(state.attention, settings.most_attention)
    smaller = state.model_copy(
        update={"goals": goals.graph, "trajectory": transitions, "attention": attention}
    )
    world = decayed_world(
        state.world, state.step, settings, held=held_texts(smaller), salient=salient
    )
    return Decayed(
        state=smaller.model_copy(update={"world": world.world}),
        left=Left(
            goals=goals.goals,
            entities=world.entities,
            relationships=world.relationships,
            attention=ignored,
            transitions=old,
        ),
    )


def weighed(state: AwarenessState, settings: DecaySettings) -> AwarenessState:
    """The state as it is to be shown: each goal with its effective priority.

    It is a view; going on from it would let priorities fade twice.
    """
    weight = effective_priorities(state.goals, state.step, settings)
    goals = tuple(
        goal.model_copy(update={"priority": weight[goal.id]}) for goal in state.goals.goals
    )
    graph = state.goals.model_copy(update={"goals": goals})
    return state.model_copy(update={"goals": graph})


def _latest(trajectory: Trajectory, most: int) -> tuple[Trajectory, tuple[Transition, ...]]:
    over = len(trajectory.transitions) - most
    if over <= 0:
        return trajectory, ()
    kept = trajectory.transitions[over:]
    return trajectory.model_copy(update={"transitions": kept}), trajectory.transitions[:over]


def _most_urgent(attention: Attention, most: int) -> tuple[Attention, tuple[AttentionItem, ...]]:
    """The items there is room for, and the others; ids are suppressed while there is room."""
    if len(attention.items) <= most and len(attention.suppressed) <= most:
        return attention, ()
    order = sorted(attention.items, key=lambda item: (-item.urgency, -item.created_step))
    kept = {item.id for item in order[:most]}
    items = tuple(item for item in attention.items if item.id in kept)
    suppressed = attention.suppressed[max(0, len(attention.suppressed) - most) :]
    return (
        attention.model_copy(update={"items": items, "suppressed": suppressed}),
        tuple(item for item in attention.items if item.id not in kept),
    )
