"""The goal graph: objectives, what serves what, what waits for what (SAGEN §3.1)."""

from __future__ import annotations

from collections.abc import Collection

from pydantic import model_validator

from coag.schema import Value

from ._goal import Goal, GoalSource, GoalStatus
from ._goal_draft import GoalDraft
from ._goal_rules import at_rest, freed, problem_of


class WaitsFor(Value):
    """Why a goal is blocked: one thing that it depends on and that is not completed."""

    goal: str
    """Id of the goal that is blocked."""
    on: str
    """Id of the goal that it waits for."""
    description: str
    """Of the goal that it waits for."""
    status: GoalStatus
    """Of the goal that it waits for; `abandoned` means that it waits in vain."""

    @property
    def reason(self) -> str:
        """The same as a sentence."""
        said = f"It waits for {self.description!r} ({self.on}), which is {self.status.value}"
        if self.status is GoalStatus.ABANDONED:
            return f"{said}: take that up again, or abandon this goal, too."
        return f"{said}."


class GoalGraph(Value):
    """The agent's goals. Neither `parent_id` nor `depends_on` ever leads round in a circle.

    A goal is blocked exactly while it is open, not deferred, and something that it depends on is
    not completed. The graph sets this by itself with every change.
    """

    goals: tuple[Goal, ...] = ()
    """In the order in which they were made."""

    @model_validator(mode="after")
    def _holds_together(self) -> GoalGraph:
        problem = problem_of(self.goals)
        if problem:
            raise ValueError(problem)
        return self

    @property
    def active_goals(self) -> tuple[Goal, ...]:
        """Goals with the status active."""
        return tuple(goal for goal in self.goals if goal.status is GoalStatus.ACTIVE)

    @property
    def root_goals(self) -> tuple[Goal, ...]:
        """Goals without a parent: what is wanted for its own sake."""
        return tuple(goal for goal in self.goals if goal.parent_id is None)

    @property
    def blocked(self) -> tuple[Goal, ...]:
        """Goals with the status blocked; `why_blocked` says why."""
        return tuple(goal for goal in self.goals if goal.status is GoalStatus.BLOCKED)

    def children_of(self, id: str) -> tuple[Goal, ...]:
        """The goals that serve this one directly."""
        return tuple(goal for goal in self.goals if goal.parent_id == id)

    def get(self, id: str) -> Goal:
        """The goal of this id.

        Raises:
            GoalError: There is none.
        """
        return GoalDraft(self.goals).get(id)

    def find(self, reference: str) -> Goal:
        """The goal of this id or, without case and spacing, description.

        Of several with one description an open one goes before a closed one, then the newest.

        Raises:
            GoalError: There is none.
        """
        return GoalDraft(self.goals).find(reference)

    def why_blocked(self, id: str) -> tuple[WaitsFor, ...]:
        """What a goal waits for; empty where everything that it depends on is completed.

        Raises:
            GoalError: There is no such goal.
        """
        draft = GoalDraft(self.goals)
        return tuple(
            WaitsFor(goal=id, on=goal.id, description=goal.description, status=goal.status)
            for goal in map(draft.get, draft.get(id).depends_on)
            if goal.status is not GoalStatus.COMPLETED
        )

    def fresh_id(self, description: str, source: GoalSource, step: int) -> str:
        """The id that a new goal gets; the same history gives the same one."""
        return GoalDraft(self.goals).fresh_id(description, source, step)

    def spawn(self, goal: Goal) -> GoalGraph:
        """With one more goal; where it is open, whether it is blocked follows from the graph.

        Raises:
            GoalError: Its id is taken, or its parent or something it depends on is unknown.
        """
        draft = GoalDraft(self.goals)
        draft.spawn(goal)
        return self.drafted(draft)

    def close(self, id: str, status: GoalStatus, step: int) -> GoalGraph:
        """With a goal completed or abandoned; what waits for it is freed or stays blocked.

        Raises:
            GoalError: There is no such goal, or the status is none that ends a goal.
        """
        draft = GoalDraft(self.goals)
        draft.close(id, status, step)
        return self.drafted(draft)

    def defer(self, id: str, step: int) -> GoalGraph:
        """With a goal put off until it is resumed.

        Raises:
            GoalError: There is no such goal.
        """
        draft = GoalDraft(self.goals)
        draft.defer(id, step)
        return self.drafted(draft)

    def resume(self, id: str, step: int) -> GoalGraph:
        """With a goal taken up again that was put off or closed: active, or blocked.

        Raises:
            GoalError: There is no such goal.
        """
        draft = GoalDraft(self.goals)
        draft.resume(id, step)
        return self.drafted(draft)

    def reprioritise(self, id: str, priority: float, step: int) -> GoalGraph:
        """With another priority, 0 to 1, for a goal.

        Raises:
            GoalError: There is no such goal, or the priority is out of range.
        """
        draft = GoalDraft(self.goals)
        draft.reprioritise(id, priority, step)
        return self.drafted(draft)

    def score(self, id: str, *, succeeded: bool, step: int) -> GoalGraph:
        """With one more success or failure of what was done for a goal.

        Raises:
            GoalError: There is no such goal.
        """
        draft = GoalDraft(self.goals)
        draft.score(id, succeeded=succeeded, step=step)
        return self.drafted(draft)

    def adopt(self, id: str, parent_id: str, step: int) -> GoalGraph:
        """With a goal made to serve another one.

        Raises:
            GoalError: One of them is unknown, or the parent serves the goal itself.
        """
        draft = GoalDraft(self.goals)
        draft.adopt(id, parent_id, step)
        return self.drafted(draft)

    def depend(self, id: str, on: str, step: int) -> GoalGraph:
        """With a goal made to wait for another one; it is blocked until that is completed.

        Raises:
            GoalError: One of them is unknown, or the other waits for this one.
        """
        draft = GoalDraft(self.goals)
        draft.depend(id, on, step)
        return self.drafted(draft)

    def without(self, ids: Collection[str]) -> GoalGraph:
        """Without some goals; what served or awaited one of them does so no longer."""
        kept = {goal.id: freed(goal, ids) for goal in self.goals if goal.id not in ids}
        for goal in tuple(kept.values()):
            status = at_rest(goal, kept)
            if status is not goal.status:
                kept[goal.id] = goal.model_copy(update={"status": status})
        return GoalGraph(goals=tuple(kept.values()))

    def drafted(self, draft: GoalDraft) -> GoalGraph:
        """With the goals of a draft that began with this graph's; itself where nothing changed."""
        if draft.goals is self.goals:
            return self
        return self.model_copy(update={"goals": draft.goals})
