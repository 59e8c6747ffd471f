"""The goal graph: objectives, what serves what, what waits for what (SAGEN §3.1)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pydantic import model_validator

from coag.errors import GoalError
from coag.schema import Value, one_line

from ._circles import circle_in
from ._goal import CLOSED, Goal, GoalOutcomes, GoalSource, GoalStatus, goal_id
from ._goal_rules import at_rest, freed, problem_of
from ._texts import folded

_LISTED = 10
"""How many goals an error names."""


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
        found = next((goal for goal in self.goals if goal.id == id), None)
        if found is None:
            raise GoalError(f"There is no goal with the id {id!r}. {self._known()}")
        return found

    def find(self, reference: str) -> Goal:
        """The goal of this id or, without case and spacing, description.

        Of several with one description an open one goes before a closed one, then the newest.

        Raises:
            GoalError: There is none.
        """
        wanted = folded(reference)
        by_words: Goal | None = None
        for goal in self.goals:
            if goal.id == reference:
                return goal
            if folded(goal.description) == wanted and (
                by_words is None or goal.is_open or not by_words.is_open
            ):
                by_words = goal
        if by_words is None:
            raise GoalError(
                f"There is no goal {one_line(reference)!r}; name one by its id or description. "
                f"{self._known()}"
            )
        return by_words

    def why_blocked(self, id: str) -> tuple[WaitsFor, ...]:
        """What a goal waits for; empty where everything that it depends on is completed.

        Raises:
            GoalError: There is no such goal.
        """
        depends = [self.get(on) for on in self.get(id).depends_on]
        return tuple(
            WaitsFor(goal=id, on=goal.id, description=goal.description, status=goal.status)
            for goal in depends
            if goal.status is not GoalStatus.COMPLETED
        )

    def fresh_id(self, description: str, source: GoalSource, step: int) -> str:
        """The id that a new goal gets; the same history gives the same one."""
        taken = {goal.id for goal in self.goals}
        ordinal = len(self.goals)
        while (id := goal_id(description, source, step, ordinal)) in taken:
            ordinal += 1
        return id

    def spawn(self, goal: Goal) -> GoalGraph:
        """With one more goal; where it is open, whether it is blocked follows from the graph.

        Raises:
            GoalError: Its id is taken, or its parent or something it depends on is unknown.
        """
        by_id = {known.id: known for known in self.goals}
        if goal.id in by_id:
            raise GoalError(
                f"A goal with the id {goal.id!r} is there already: "
                f"{one_line(by_id[goal.id].description)!r}. Take the id from `fresh_id`."
            )
        named = (*goal.depends_on, *((goal.parent_id,) if goal.parent_id else ()))
        for id in named:
            if id not in by_id:
                raise GoalError(
                    f"The new goal {one_line(goal.description)!r} names {id!r} as parent or "
                    f"dependency, which is no goal. {self._known()}"
                )
        settled = goal.model_copy(update={"status": at_rest(goal, by_id)})
        return self.model_copy(update={"goals": (*self.goals, settled)})

    def close(self, id: str, status: GoalStatus, step: int) -> GoalGraph:
        """With a goal completed or abandoned; what waits for it is freed or stays blocked.

        Raises:
            GoalError: There is no such goal, or the status is none that ends a goal.
        """
        if status not in CLOSED:
            raise GoalError(
                f"A goal is closed as completed or abandoned, not as {status.value!r}; "
                "`defer` puts it off, `resume` takes it up again."
            )
        return self._with(self.get(id), {"status": status, "closed_step": step}, step)

    def defer(self, id: str, step: int) -> GoalGraph:
        """With a goal put off until it is resumed.

        Raises:
            GoalError: There is no such goal.
        """
        changes = {"status": GoalStatus.DEFERRED, "closed_step": None}
        return self._with(self.get(id), changes, step)

    def resume(self, id: str, step: int) -> GoalGraph:
        """With a goal taken up again that was put off or closed: active, or blocked.

        Raises:
            GoalError: There is no such goal.
        """
        changes = {"status": GoalStatus.ACTIVE, "closed_step": None}
        return self._with(self.get(id), changes, step)

    def reprioritise(self, id: str, priority: float, step: int) -> GoalGraph:
        """With another priority, 0 to 1, for a goal.

        Raises:
            GoalError: There is no such goal, or the priority is out of range.
        """
        if not 0.0 <= priority <= 1.0:
            raise GoalError(f"A priority is a number from 0 to 1, not {priority!r}.")
        return self._with(self.get(id), {"priority": priority}, step)

    def score(self, id: str, *, succeeded: bool, step: int) -> GoalGraph:
        """With one more success or failure of what was done for a goal.

        Raises:
            GoalError: There is no such goal.
        """
        goal = self.get(id)
        outcomes = GoalOutcomes(
            successes=goal.outcomes.successes + succeeded,
            failures=goal.outcomes.failures + (not succeeded),
        )
        return self._with(goal, {"outcomes": outcomes}, step)

    def adopt(self, id: str, parent_id: str, step: int) -> GoalGraph:
        """With a goal made to serve another one.

        Raises:
            GoalError: One of them is unknown, or the parent serves the goal itself.
        """
        goal, parent = self.get(id), self.get(parent_id)
        edges = {one.id: (one.parent_id,) for one in self.goals if one.parent_id}
        self._refuse_circle({**edges, id: (parent.id,)}, "serve")
        return self._with(goal, {"parent_id": parent.id}, step)

    def depend(self, id: str, on: str, step: int) -> GoalGraph:
        """With a goal made to wait for another one; it is blocked until that is completed.

        Raises:
            GoalError: One of them is unknown, or the other waits for this one.
        """
        goal, other = self.get(id), self.get(on)
        if other.id in goal.depends_on:
            return self
        depends = (*goal.depends_on, other.id)
        edges = {one.id: one.depends_on for one in self.goals}
        self._refuse_circle({**edges, id: depends}, "wait for")
        return self._with(goal, {"depends_on": depends}, step)

    def without(self, ids: Collection[str]) -> GoalGraph:
        """Without some goals; what served or awaited one of them does so no longer."""
        kept = {goal.id: freed(goal, ids) for goal in self.goals if goal.id not in ids}
        for goal in tuple(kept.values()):
            status = at_rest(goal, kept)
            if status is not goal.status:
                kept[goal.id] = goal.model_copy(update={"status": status})
        return GoalGraph(goals=tuple(kept.values()))

    def _with(self, goal: Goal, changes: Mapping[str, object], step: int) -> GoalGraph:
        """With a goal changed, and it and what waits for it active or blocked as they should."""
        changed = goal.model_copy(update={**changes, "updated_step": step})
        by_id = {one.id: one for one in self.goals}
        by_id[goal.id] = changed
        for one in tuple(by_id.values()):
            if one.id == goal.id or goal.id in one.depends_on:
                status = at_rest(one, by_id)
                if status is not one.status:
                    by_id[one.id] = one.model_copy(update={"status": status, "updated_step": step})
        return self.model_copy(update={"goals": tuple(by_id.values())})

    def _refuse_circle(self, edges: dict[str, tuple[str, ...]], verb: str) -> None:
        """Refuses edges that lead round."""
        circle = circle_in(edges)
        if circle:
            names = [f"{self.get(id).description!r} ({id})" for id in circle]
            raise GoalError(f"A goal would {verb} itself: {' -> '.join(names)}. Leave one out.")

    def _known(self) -> str:
        """The open goals for an error, newest first."""
        open_ones = [goal for goal in reversed(self.goals) if goal.is_open]
        named = [f"{goal.id} {one_line(goal.description, 60)!r}" for goal in open_ones[:_LISTED]]
        more = f" and {len(open_ones) - _LISTED} more" if len(open_ones) > _LISTED else ""
        return f"Open goals: {', '.join(named) or 'none'}{more}."
