"""What must hold among goals. Pure rules."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from coag.schema import one_line

from ._circles import circle_in
from ._goal import Goal, GoalStatus

_LISTED = 10
"""How many goals an error names."""


def problem_of(goals: tuple[Goal, ...]) -> str:
    """What keeps goals from being a graph; empty if nothing does."""
    by_id = {goal.id: goal for goal in goals}
    if len(by_id) < len(goals):
        return "two goals have the same id; give each its own"
    parents = {goal.id: (goal.parent_id,) for goal in goals if goal.parent_id}
    depends = {goal.id: goal.depends_on for goal in goals if goal.depends_on}
    for edges in (parents, depends):
        for id, ends in edges.items():
            for end in ends:
                if end not in by_id:
                    return f"goal {id!r} names {end!r}, which is no goal here"
        circle = circle_in(edges)
        if circle:
            return f"goals lead round in a circle: {' -> '.join(circle)}"
    for goal in goals:
        if not goal.depends_on and goal.status is not GoalStatus.BLOCKED:
            continue  # nearly every goal
        status = at_rest(goal, by_id)
        if status is not goal.status:
            return (
                f"goal {goal.id!r} is {goal.status.value}, but by what it depends on it is "
                f"{status.value}"
            )
    return ""


def at_rest(goal: Goal, by_id: Mapping[str, Goal]) -> GoalStatus:
    """The status that a goal has by what it depends on."""
    if goal.status not in (GoalStatus.ACTIVE, GoalStatus.BLOCKED):
        return goal.status
    done = all(by_id[on].status is GoalStatus.COMPLETED for on in goal.depends_on)
    return GoalStatus.ACTIVE if done else GoalStatus.BLOCKED


def freed(goal: Goal, gone: Collection[str]) -> Goal:
    """The goal without references to goals that are gone."""
    depends = tuple(on for on in goal.depends_on if on not in gone)
    parent = None if goal.parent_id in gone else goal.parent_id
    if parent == goal.parent_id and len(depends) == len(goal.depends_on):
        return goal
    return goal.model_copy(update={"parent_id": parent, "depends_on": depends})


def open_goals(goals: tuple[Goal, ...]) -> str:
    """The open goals for an error, newest first."""
    open_ones = [goal for goal in reversed(goals) if goal.is_open]
    named = [f"{goal.id} {one_line(goal.description, 60)!r}" for goal in open_ones[:_LISTED]]
    more = f" and {len(open_ones) - _LISTED} more" if len(open_ones) > _LISTED else ""
    return f"Open goals: {', '.join(named) or 'none'}{more}."
