"""What several domains observed in one step, as one observation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coag.awareness._observation import Observation, ObservedEvent, ObservedFailure
from coag.awareness.state import TransitionType, distinct

_BY_WEIGHT = (
    TransitionType.FAILURE,
    TransitionType.REVERSAL,
    TransitionType.DISCOVERY,
    TransitionType.PIVOT,
    TransitionType.BRANCH,
    TransitionType.EXTERNAL_EVENT,
    TransitionType.PROGRESS,
)
"""Of several events in one step the one with most consequence gives the type."""


def merged_observation(found: Mapping[str, Observation]) -> Observation:
    """All that was observed. A step has one event and one failure: several are told in one.

    Args:
        found: What each domain observed, by its name.
    """
    seen = tuple(found.values())
    return Observation(
        entities=tuple(entity for one in seen for entity in one.entities),
        relationships=tuple(edge for one in seen for edge in one.relationships),
        goals=tuple(goal for one in seen for goal in one.goals),
        goal_changes=tuple(change for one in seen for change in one.goal_changes),
        attention_items=tuple(item for one in seen for item in one.attention_items),
        assumptions=distinct(text for one in seen for text in one.assumptions),
        unknowns=distinct(text for one in seen for text in one.unknowns),
        resolved=distinct(text for one in seen for text in one.resolved),
        event=_one_event({name: one.event for name, one in found.items() if one.event}),
        resources=tuple(resource for one in seen for resource in one.resources),
        spent=tuple(spent for one in seen for spent in one.spent),
        failure=_one_failure([one.failure for one in seen if one.failure]),
    )


def _one_event(events: Mapping[str, ObservedEvent]) -> ObservedEvent | None:
    if not events:
        return None
    ordered = sorted(events, key=lambda name: _BY_WEIGHT.index(events[name].type))
    first = events[ordered[0]]
    if len(ordered) == 1:
        return first
    return ObservedEvent(
        type=first.type,
        description="; ".join(f"{name}: {events[name].description}" for name in ordered),
        detail={
            f"{name}:{key}": value for name in ordered for key, value in events[name].detail.items()
        },
    )


def _one_failure(failures: Sequence[ObservedFailure]) -> ObservedFailure | None:
    if len(failures) < 2:
        return failures[0] if failures else None
    return ObservedFailure(
        action="; ".join(one.action for one in failures),
        reason="; ".join(one.reason for one in failures if one.reason),
        lesson="; ".join(one.lesson for one in failures if one.lesson),
    )
