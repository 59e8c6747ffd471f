"""What an observation changes in the goal graph."""

from __future__ import annotations

from coag.errors import GoalError

from ._observation import GoalChange, ObservedGoal
from .state import Goal, GoalDraft, GoalStatus


def add_goals(draft: GoalDraft, seen: tuple[ObservedGoal, ...], step: int) -> None:
    """Adds the goals that were noticed, then says what each serves and waits for.

    A goal that is open already, by its description, is not made twice: it counts as named again,
    with the higher of the two priorities.

    Raises:
        GoalError: A parent or dependency is unknown, or would make a circle.
    """
    ids = [_spawned(draft, one, step) for one in seen]
    for one, id in zip(seen, ids, strict=True):
        if one.parent is not None:
            draft.adopt(id, draft.find(one.parent).id, step)
        for on in one.depends_on:
            draft.depend(id, draft.find(on).id, step)


def _spawned(draft: GoalDraft, seen: ObservedGoal, step: int) -> str:
    """The id of this goal, which is in the draft then."""
    known = draft.open_one(seen.description)
    if known is not None:
        draft.reprioritise(known.id, max(known.priority, seen.priority), step)
        return known.id
    goal = Goal(
        id=draft.fresh_id(seen.description, seen.source, step),
        description=seen.description,
        source=seen.source,
        priority=seen.priority,
        completion_criteria=seen.completion_criteria,
        created_step=step,
        updated_step=step,
    )
    draft.spawn(goal)
    return goal.id


def change_goals(draft: GoalDraft, changes: tuple[GoalChange, ...], step: int) -> None:
    """Completes, abandons, puts off, takes up again or weighs anew.

    Raises:
        GoalError: A goal is unknown, or is said to be blocked.
    """
    for change in changes:
        id = draft.find(change.goal).id
        if change.succeeded is not None:
            draft.score(id, succeeded=change.succeeded, step=step)
        if change.priority is not None:
            draft.reprioritise(id, change.priority, step)
        if change.status is not None:
            _move(draft, id, change.status, step)


def _move(draft: GoalDraft, id: str, status: GoalStatus, step: int) -> None:
    """Brings a goal to this status, or where that leads it."""
    match status:
        case GoalStatus.COMPLETED | GoalStatus.ABANDONED:
            draft.close(id, status, step)
        case GoalStatus.DEFERRED:
            draft.defer(id, step)
        case GoalStatus.ACTIVE:
            draft.resume(id, step)
        case GoalStatus.BLOCKED:
            raise GoalError(
                f"Goal {draft.get(id).description!r} cannot be set to blocked: say what it waits "
                "for with `depends_on`, or put it off as deferred."
            )
