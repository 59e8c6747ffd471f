"""The goal graph: objectives, what serves what, what waits for what (SAGEN §3.1)."""

from __future__ import annotations

from coag.schema import Value

from ._goal import Goal, GoalStatus


class GoalGraph(Value):
    """The agent's goals. Neither `parent_id` nor `depends_on` ever leads round in a circle.

    A goal is blocked exactly while it is open, not deferred, and something that it depends on is
    not completed.
    """

    goals: tuple[Goal, ...] = ()
    """In the order in which they were made."""

    @property
    def active_goals(self) -> tuple[Goal, ...]:
        """Goals with the status active."""
        return tuple(goal for goal in self.goals if goal.status is GoalStatus.ACTIVE)
