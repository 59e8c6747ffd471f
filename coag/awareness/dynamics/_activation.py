"""How present a thing or a goal still is.

Entities: base-level learning of ACT-R (Anderson et al. 2004, equation 2), B = ln of the sum of
t^-d over all uses, t being the age of a use. The state holds the first and the last mention and
their number, so the mentions before the last are taken as spread evenly since the first: the
hybrid approximation of Petrov (2006, "Computationally efficient approximation of the base-level
learning equation in ACT-R") with one exact use. It is exact for one mention and for two.

Goals: the paper says that the effective priority of what is not referenced is reduced (SAGEN
§6.6), but not how; here it halves with each half-life.
"""

from __future__ import annotations

import math
from bisect import bisect_left

from coag.awareness.state import Entity, Goal, GoalGraph, GoalSource

from ._settings import DecaySettings


def base_level(mentions: int, first_age: float, last_age: float, decay: float) -> float:
    """Base-level activation of something that was mentioned this often.

    Args:
        mentions: How often, at least once.
        first_age: Steps since the first mention, 1 for the present step.
        last_age: Steps since the last mention, 1 for the present step.
        decay: The exponent d, between 0 and 1.
    """
    recent = last_age**-decay
    if mentions <= 1:
        return math.log(recent)
    before = mentions - 1
    if first_age <= last_age:
        return math.log(recent + before * recent)
    if before == 1:
        return math.log(recent + first_age**-decay)
    power = 1.0 - decay
    evenly = (first_age**power - last_age**power) / (power * (first_age - last_age))
    return math.log(recent + before * evenly)


def activation_of(entity: Entity, step: int, settings: DecaySettings, *, salient: bool) -> float:
    """Base-level activation of an entity at a step.

    Args:
        entity: The thing.
        step: The present step.
        settings: The exponents.
        salient: Whether a failure or a discovery names it.
    """
    return base_level(
        entity.mentions,
        _age(entity.first_step, step),
        _age(entity.last_step, step),
        settings.salient_decay if salient else settings.decay,
    )


def fresh_since(step: int, settings: DecaySettings) -> float:
    """The earliest step of a last mention that by itself keeps something over the threshold.

    Of what was mentioned before it, only more mentions can. Infinity if not even the present step
    is enough.
    """
    ages = range(1, step + 2)
    enough = bisect_left(
        ages, True, key=lambda age: base_level(1, age, age, settings.decay) < settings.threshold
    )
    return step - enough + 1 if enough else math.inf


def effective_priorities(graph: GoalGraph, step: int, settings: DecaySettings) -> dict[str, float]:
    """What each goal's priority comes to at a step, by the goal's id.

    It halves with each half-life since the goal, or an open goal that serves it, was last named or
    changed; being named brings it back to the priority itself.
    """
    latest = last_words(graph)
    return {goal.id: _faded(goal, step - latest[goal.id], settings) for goal in graph.goals}


def last_words(graph: GoalGraph) -> dict[str, int]:
    """By goal id the step when it, or an open goal that serves it, was last named or changed."""
    latest = {goal.id: goal.updated_step for goal in graph.goals}
    parents = {goal.id: goal.parent_id for goal in graph.goals if goal.parent_id is not None}
    told: set[str] = set()
    # From the latest word on: whoever was told before has one at least as late.
    serving = [goal for goal in graph.goals if goal.parent_id is not None and goal.is_open]
    for goal in sorted(serving, key=lambda goal: -goal.updated_step):
        above = goal.parent_id
        while above is not None and above not in told:
            told.add(above)
            latest[above] = max(latest[above], goal.updated_step)
            above = parents.get(above)
    return latest


def _faded(goal: Goal, age: int, settings: DecaySettings) -> float:
    explicit = goal.source is GoalSource.EXPLICIT
    half_life = settings.explicit_half_life if explicit else settings.half_life
    return goal.priority * 0.5 ** (max(0, age) / half_life)


def _age(then: int, now: int) -> float:
    """Steps since then, the present one counted; a step to come counts as the present one."""
    return float(max(0, now - then) + 1)
