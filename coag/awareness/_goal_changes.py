"""What an observation changes in the goal graph."""

from __future__ import annotations

from coag.errors import GoalError

from ._observation import GoalChange, ObservedGoal
from .state import Goal, GoalGraph, GoalStatus, folded


def goals_with(graph: GoalGraph, seen: tuple[ObservedGoal, ...], step: int) -> GoalGraph:
    """The graph with the goals that were noticed, then with what each serves and waits for.

    A goal that is open already, by its description, is not made twice: it counts as named again,
    with the higher of the two priorities.

    Raises:
        GoalError: A parent or dependency is unknown, or would make a circle.
    """
    ids: list[str] = []
    for one in seen:
        graph, id = _spawned(graph, one, step)
        ids.append(id)
    for one, id in zip(seen, ids, strict=True):
        if one.parent is not None:
            graph = graph.adopt(id, graph.find(one.parent).id, step)
        for on in one.depends_on:
            graph = graph.depend(id, graph.find(on).id, step)
    return graph


def _spawned(graph: GoalGraph, seen: ObservedGoal, step: int) -> tuple[GoalGraph, str]:
    """The graph with this goal, and its id."""
    known = _open_one(graph, seen.description)
    if known is not None:
        priority = max(known.priority, seen.priority)
        return graph.reprioritise(known.id, priority, step), known.id
    goal = Goal(
        id=graph.fresh_id(seen.description, seen.source, step),
        description=seen.description,
        source=seen.source,
        priority=seen.priority,
        completion_criteria=seen.completion_criteria,
        created_step=step,
        updated_step=step,
    )
    return graph.spawn(goal), goal.id


def _open_one(graph: GoalGraph, description: str) -> Goal | None:
    """The open goal of this description."""
    wanted = folded(description)
    return next(
        (goal for goal in graph.goals if goal.is_open and folded(goal.description) == wanted), None
    )


def goals_changed(graph: GoalGraph, changes: tuple[GoalChange, ...], step: int) -> GoalGraph:
    """The graph with goals completed, abandoned, put off, taken up again or weighed anew.

    Raises:
        GoalError: A goal is unknown, or is said to be blocked.
    """
    for change in changes:
        id = graph.find(change.goal).id
        if change.succeeded is not None:
            graph = graph.score(id, succeeded=change.succeeded, step=step)
        if change.priority is not None:
            graph = graph.reprioritise(id, change.priority, step)
        if change.status is not None:
            graph = _moved(graph, id, change.status, step)
    return graph


def _moved(graph: GoalGraph, id: str, status: GoalStatus, step: int) -> GoalGraph:
    """The graph with this goal at this status, or where that leads it."""
    match status:
        case GoalStatus.COMPLETED | GoalStatus.ABANDONED:
            return graph.close(id, status, step)
        case GoalStatus.DEFERRED:
            return graph.defer(id, step)
        case GoalStatus.ACTIVE:
            return graph.resume(id, step)
        case GoalStatus.BLOCKED:
            raise GoalError(
                f"Goal {graph.get(id).description!r} cannot be set to blocked: say what it waits "
                "for with `depends_on`, or put it off as deferred."
            )
