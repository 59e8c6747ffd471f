"""What leaves the goal graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from coag.awareness.state import AwarenessState, Goal, GoalGraph, GoalStatus
from coag.schema import Value

from ._activation import effective_priorities
from ._mentions import Attended
from ._settings import DecaySettings


class DecayedGoals(Value):
    """A graph without the goals that faded, and those."""

    graph: GoalGraph
    goals: tuple[Goal, ...] = ()


def decayed_goals(
    state: AwarenessState, settings: DecaySettings, staying: Collection[str] = ()
) -> DecayedGoals:
    """The goals without those that are over and those that faded.

    A closed goal leaves when it was not named for a while, an open one when its effective priority
    is under the threshold and no attention item names it. A goal stays while one that stays serves
    it or waits for it; only what is completed is waited for no more. Where there are too many
    goals, more leave, and what waited for them does so no longer.

    Args:
        state: The state.
        settings: Threshold and bounds.
        staying: Ids of goals that stay whatever happens.
    """
    graph, step = state.goals, state.step
    weight = effective_priorities(graph, step, settings)
    attended = Attended(state.attention)
    leaving = {
        goal.id
        for goal in graph.goals
        if goal.id not in staying and _is_over(goal, weight[goal.id], step, attended, settings)
    }
    leaving = _without_needed(graph, leaving)
    leaving |= _surplus(graph, leaving, weight, settings.most_goals, staying)
    if not leaving:
        return DecayedGoals(graph=graph)
    return DecayedGoals(
        graph=graph.without(leaving),
        goals=tuple(goal for goal in graph.goals if goal.id in leaving),
    )


def _is_over(
    goal: Goal, weight: float, step: int, attended: Attended, settings: DecaySettings
) -> bool:
    if not goal.is_open:
        return step - goal.updated_step >= settings.closed_goal_steps
    return weight < settings.goal_threshold and not attended.names(goal)


def _without_needed(graph: GoalGraph, leaving: set[str]) -> set[str]:
    """Those of the leaving goals that no staying one serves or waits for."""
    if not leaving:
        return leaving
    by_id = {goal.id: goal for goal in graph.goals}
    found = set(leaving)
    todo = [goal for goal in graph.goals if goal.id not in leaving]
    while todo:
        goal = todo.pop()
        needed = [on for on in goal.depends_on if by_id[on].status is not GoalStatus.COMPLETED]
        for id in (*needed, *((goal.parent_id,) if goal.parent_id else ())):
            if id in found:
                found.discard(id)
                todo.append(by_id[id])
    return found


def _surplus(
    graph: GoalGraph,
    leaving: set[str],
    weight: Mapping[str, float],
    most: int,
    staying: Collection[str],
) -> set[str]:
    """Goals beyond the room: first closed ones, then by effective priority; last what is needed."""
    over = len(graph.goals) - len(leaving) - most
    if over <= 0:
        return set()
    kept = [goal for goal in graph.goals if goal.id not in leaving]
    open_ones = [goal for goal in kept if goal.is_open]
    needed = {on for goal in open_ones for on in goal.depends_on}
    needed |= {goal.parent_id for goal in open_ones if goal.parent_id}
    order = sorted(
        (goal for goal in kept if goal.id not in staying),
        key=lambda goal: (
            goal.id in needed,
            goal.is_open,
            weight[goal.id] if goal.is_open else 0.0,
            goal.updated_step,
        ),
    )
    return {goal.id for goal in order[:over]}
