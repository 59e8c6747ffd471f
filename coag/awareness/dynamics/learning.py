"""Priorities of goals learned from how goals went (SAGEN §7.6, §8).

Successes and failures are counted by where goals come from and by what they are about. Each count
is a Beta-Bernoulli model: with a prior Beta(a, b), s successes and f failures give the expected
rate (s + a) / (s + f + a + b) (Gelman et al., Bayesian Data Analysis, §2.4). The prior of a type is
as strong as that of its source and lies at the source's rate, so that a type of which little is
known counts as its source does.
"""

from __future__ import annotations

from coag.awareness.observation import Observation, ObservedGoal
from coag.awareness.resolving import words_of
from coag.awareness.state import (
    AwarenessState,
    Goal,
    GoalGraph,
    GoalSource,
    GoalStatus,
    SelfModel,
    Tally,
    TallyOf,
)

from .settings import LearningSettings

_Key = tuple[TallyOf, str]


def goal_type(description: str) -> str:
    """What sort of goal a description says: its first word (`answer`, `build`, `understand`).

    Adapters and people write goals as `Verb thing`, so the first word tells the sort.
    """
    words = words_of(description)
    return words[0] if words else "other"


def learned(before: GoalGraph, after: AwarenessState, settings: LearningSettings) -> AwarenessState:
    """The state with its tallies brought up to date by what happened to goals in one step.

    What was done for a goal counts as it is scored; that a goal is completed counts as one more
    success, that it is abandoned as one more failure. A goal that left the graph counts no more.

    Args:
        before: The goals before the step.
        after: The state after the step.
        settings: How many types are counted.
    """
    known = {goal.id: goal for goal in before.goals}
    tallies = {(one.of, one.name): one for one in after.self_model.tallies}
    changed = False
    for goal in after.goals.goals:
        successes, failures = _news(known.get(goal.id), goal)
        if successes or failures:
            changed = True
            for key in _keys(goal.source, goal.description):
                tallies[key] = _counted(tallies.pop(key, None), key, successes, failures)
    if not changed:
        return after
    self_model = _with_tallies(after.self_model, tuple(tallies.values()), settings)
    return after.model_copy(update={"self_model": self_model})


def learned_priority(
    priority: float,
    source: GoalSource,
    description: str,
    tallies: tuple[Tally, ...],
    settings: LearningSettings,
) -> float:
    """A goal's priority, moved by how goals of its source and type went.

    Goals that always succeed move up by `influence`, goals that never do move down by it, and the
    rate of the prior moves nothing. An explicit goal is moved by `explicit_influence` at most.
    """
    most = settings.explicit_influence if source is GoalSource.EXPLICIT else settings.influence
    prior = settings.prior_successes / (settings.prior_successes + settings.prior_failures)
    rate = expected_rate(source, description, tallies, settings)
    room = 1.0 - prior if rate > prior else prior
    moved = priority + most * (rate - prior) / room
    return min(1.0, max(0.0, moved))


def expected_rate(
    source: GoalSource, description: str, tallies: tuple[Tally, ...], settings: LearningSettings
) -> float:
    """The rate of success to be expected of such a goal."""
    strength = settings.prior_successes + settings.prior_failures
    rate = settings.prior_successes / strength
    counted = {(one.of, one.name): one for one in tallies}
    for key in _keys(source, description):
        one = counted.get(key)
        if one is not None:
            trials = one.successes + one.failures
            rate = (one.successes + strength * rate) / (trials + strength)
    return rate


def weighed_goals(
    observation: Observation, state: AwarenessState, settings: LearningSettings
) -> Observation:
    """The observation with the priorities of its goals moved by what was learned.

    Changes of goals that are said in so many words stay as they are said.
    """
    tallies = state.self_model.tallies
    if not tallies or not observation.goals:
        return observation
    goals = tuple(_weighed(goal, tallies, settings) for goal in observation.goals)
    return observation.model_copy(update={"goals": goals})


def _weighed(
    goal: ObservedGoal, tallies: tuple[Tally, ...], settings: LearningSettings
) -> ObservedGoal:
    moved = learned_priority(goal.priority, goal.source, goal.description, tallies, settings)
    return goal.model_copy(update={"priority": moved})


def _news(before: Goal | None, goal: Goal) -> tuple[int, int]:
    """Successes and failures of a goal that were not there before."""
    was_open = before is None or before.is_open
    ended = was_open and not goal.is_open
    known = before.outcomes if before else None
    successes = goal.outcomes.successes - (known.successes if known else 0)
    failures = goal.outcomes.failures - (known.failures if known else 0)
    completed = ended and goal.status is GoalStatus.COMPLETED
    return max(0, successes) + completed, max(0, failures) + (ended and not completed)


def _keys(source: GoalSource, description: str) -> tuple[_Key, _Key]:
    return (TallyOf.SOURCE, source.value), (TallyOf.TYPE, goal_type(description))


def _counted(tally: Tally | None, key: _Key, successes: int, failures: int) -> Tally:
    known = tally or Tally(of=key[0], name=key[1])
    return known.model_copy(
        update={"successes": known.successes + successes, "failures": known.failures + failures}
    )


def _with_tallies(
    self_model: SelfModel, tallies: tuple[Tally, ...], settings: LearningSettings
) -> SelfModel:
    """With these tallies, of types only those that were counted last."""
    types = [one for one in tallies if one.of is TallyOf.TYPE]
    gone = {one.name for one in types[: max(0, len(types) - settings.most_types)]}
    kept = tuple(one for one in tallies if one.of is TallyOf.SOURCE or one.name not in gone)
    return self_model.model_copy(update={"tallies": kept})
