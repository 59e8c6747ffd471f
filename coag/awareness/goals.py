"""Goals, their graph, and how each may change (SAGEN §3.1, tables 1 and 13)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from coag.errors import GoalError
from coag.schema import Value, content_id, folded, one_line

from .fields import NonBlank, Share, Step

GoalId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8}$")]


class GoalStatus(StrEnum):
    """The status of a goal."""

    ACTIVE = "active"
    COMPLETED = "completed"
    ABANDONED = "abandoned"
    BLOCKED = "blocked"
    """Open, but something it depends on is not completed; the goal graph sets it by itself."""
    DEFERRED = "deferred"
    """Open, but put off until it is resumed."""


class GoalSource(StrEnum):
    """Where a goal comes from."""

    EXPLICIT = "explicit"
    """Stated by the user."""
    INFERRED = "inferred"
    """Inferred from what the user does or asks."""
    EMERGENT = "emergent"
    """Derived from the state."""
    SPAWNED = "spawned"
    """Made to serve another goal."""


class GoalOutcomes(Value):
    """How often what was done for a goal helped it, and how often not."""

    successes: int = Field(default=0, ge=0)
    failures: int = Field(default=0, ge=0)


class Goal(Value):
    """One objective, with its source and its dependencies."""

    id: GoalId
    description: NonBlank
    status: GoalStatus = GoalStatus.ACTIVE
    source: GoalSource = GoalSource.EXPLICIT
    priority: Share = 0.5
    """Urgency and importance, 0 to 1."""
    parent_id: GoalId | None = None
    """The goal that it serves; None for a root goal."""
    depends_on: tuple[GoalId, ...] = ()
    """Goals that must be completed first."""
    completion_criteria: NonBlank | None = None
    """How one can see that it is reached."""
    created_step: Step = 0
    updated_step: Step = 0
    """When it was last named, changed, blocked or freed."""
    closed_step: Step | None = None
    """When it was completed or abandoned; None while it is open."""
    outcomes: GoalOutcomes = GoalOutcomes()

    @property
    def is_open(self) -> bool:
        """Whether it is neither completed nor abandoned."""
        return self.status is not GoalStatus.COMPLETED and self.status is not GoalStatus.ABANDONED

    @property
    def references(self) -> tuple[str, ...]:
        """Ids of the goals that it names: its parent, then its dependencies."""
        return (self.parent_id, *self.depends_on) if self.parent_id else self.depends_on

    def linked_only(self, known: Collection[str]) -> Goal:
        """The goal without references to goals that are not among the known ids."""
        if all(id in known for id in self.references):
            return self
        parent_id = self.parent_id if self.parent_id in known else None
        depends_on = tuple(on for on in self.depends_on if on in known)
        return self.model_copy(update={"parent_id": parent_id, "depends_on": depends_on})

    def settled(self, by_id: Mapping[str, Goal]) -> Goal:
        """The goal, active or blocked as its dependencies demand; itself if it is so already."""
        if self.status not in (GoalStatus.ACTIVE, GoalStatus.BLOCKED):
            return self
        done = all(by_id[on].status is GoalStatus.COMPLETED for on in self.depends_on)
        status = GoalStatus.ACTIVE if done else GoalStatus.BLOCKED
        return self if status is self.status else self.model_copy(update={"status": status})


class GoalGraph(Value):
    """The agent's goals. Neither `parent_id` nor `depends_on` ever forms a circle.

    A goal is blocked exactly while it is open, not deferred, and something that it depends on is
    not completed. A `GoalDraft` changes the goals by these rules.
    """

    goals: tuple[Goal, ...] = ()
    """In the order in which they were made."""

    @model_validator(mode="after")
    def _is_consistent(self) -> GoalGraph:
        by_id = {goal.id: goal for goal in self.goals}
        if len(by_id) < len(self.goals):
            raise ValueError("two goals have the same id; give each its own")
        for edges in (
            {goal.id: (goal.parent_id,) for goal in self.goals if goal.parent_id},
            {goal.id: goal.depends_on for goal in self.goals if goal.depends_on},
        ):
            for id, ends in edges.items():
                if not by_id.keys() >= set(ends):
                    end = next(end for end in ends if end not in by_id)
                    raise ValueError(f"goal {id!r} names {end!r}, which is no goal here")
            try:
                TopologicalSorter(edges).prepare()
            except CycleError as error:
                raise ValueError(f"goals form a circle: {' -> '.join(error.args[1])}") from None
        for goal in self.goals:
            if not goal.depends_on and goal.status is not GoalStatus.BLOCKED:
                continue  # nearly every goal
            if (settled := goal.settled(by_id)) is not goal:
                raise ValueError(
                    f"goal {goal.id!r} is {goal.status.value}, but by what it depends on it is "
                    f"{settled.status.value}"
                )
        return self

    @property
    def active_goals(self) -> tuple[Goal, ...]:
        """Goals with the status active."""
        return tuple(goal for goal in self.goals if goal.status is GoalStatus.ACTIVE)

    @property
    def root_goals(self) -> tuple[Goal, ...]:
        """Goals without a parent."""
        return tuple(goal for goal in self.goals if goal.parent_id is None)

    @property
    def blocked(self) -> tuple[Goal, ...]:
        """Goals with the status blocked."""
        return tuple(goal for goal in self.goals if goal.status is GoalStatus.BLOCKED)

    def get(self, id: str) -> Goal:
        """See `GoalDraft.get`."""
        return GoalDraft(self.goals).get(id)

    def find(self, reference: str) -> Goal:
        """See `GoalDraft.find`."""
        return GoalDraft(self.goals).find(reference)

    def without(self, ids: Collection[str]) -> GoalGraph:
        """Without some goals, and without the references to them."""
        rest = {goal.id: goal for goal in self.goals if goal.id not in ids}
        linked = {id: goal.linked_only(rest) for id, goal in rest.items()}
        return GoalGraph(goals=tuple(goal.settled(linked) for goal in linked.values()))

    def drafted(self, draft: GoalDraft) -> GoalGraph:
        """With the goals of a draft that began with this graph's; itself if nothing changed."""
        if draft.goals is self.goals:
            return self
        return self.model_copy(update={"goals": draft.goals})


_LISTED = 10
"""How many goals an error names."""


class GoalDraft:
    """The goals of a graph while they are changed, by the graph's rules; each is found by a key.

    A change costs as much as it concerns goals, however many others there are. Whatever would
    break a rule, or names a goal that there is not, is a `GoalError`; the draft must then be
    discarded, since it contains the changes before that.
    """

    def __init__(self, goals: tuple[Goal, ...] = ()) -> None:
        self._by_id = {goal.id: goal for goal in goals}
        self._goals: tuple[Goal, ...] | None = goals
        self._by_words: defaultdict[str, list[str]] | None = None
        """Ids by folded description, oldest first."""
        self._waiting: defaultdict[str, list[str]] | None = None
        """Ids of the goals that depend on a goal; both are made when they are first needed."""

    @property
    def goals(self) -> tuple[Goal, ...]:
        """All of them as they are now, in the order in which they were made."""
        if self._goals is None:
            self._goals = tuple(self._by_id.values())
        return self._goals

    def get(self, id: str) -> Goal:
        """The goal of this id."""
        goal = self._by_id.get(id)
        if goal is None:
            raise GoalError(f"There is no goal with the id {id!r}. {self._open_goals()}")
        return goal

    def find(self, reference: str) -> Goal:
        """The goal of this id or, ignoring case and spacing, description.

        Of several with one description an open one precedes a closed one, then the newest.
        """
        goal = self._by_id.get(reference)
        if goal is not None:
            return goal
        same = self._described(reference)
        if not same:
            raise GoalError(
                f"There is no goal {one_line(reference)!r}; name one by its id or description. "
                f"{self._open_goals()}"
            )
        return next((one for one in reversed(same) if one.is_open), same[-1])

    def open_one(self, description: str) -> Goal | None:
        """The oldest open goal of this description; None if there is none."""
        return next((one for one in self._described(description) if one.is_open), None)

    def fresh_id(self, description: str, source: GoalSource, step: int) -> str:
        """The id that a new goal gets; the same history gives the same ids on every machine."""
        ordinal = len(self._by_id)
        while True:
            parts = (folded(description), source.value, str(step), str(ordinal))
            id = content_id(*parts)[:8]
            if id not in self._by_id:
                return id
            ordinal += 1

    def spawn(self, goal: Goal) -> None:
        """Adds a goal; if it is open, whether it is blocked follows from the graph."""
        if goal.id in self._by_id:
            raise GoalError(
                f"A goal with the id {goal.id!r} exists already: "
                f"{one_line(self._by_id[goal.id].description)!r}. Take the id from `fresh_id`."
            )
        for id in goal.references:
            self.get(id)
        self._put(goal.settled(self._by_id))
        if self._by_words is not None:
            self._by_words[folded(goal.description)].append(goal.id)
        if self._waiting is not None:
            for on in goal.depends_on:
                self._waiting[on].append(goal.id)

    def change(self, id: str, step: int, **changes: object) -> None:
        """Changes fields of a goal, then the statuses that follow from it."""
        self._put(self.get(id).model_copy(update={**changes, "updated_step": step}))
        for one in (id, *self._dependents(id)):
            settled = self._by_id[one].settled(self._by_id)
            if settled is not self._by_id[one]:
                self._put(settled.model_copy(update={"updated_step": step}))

    def set_status(self, id: str, status: GoalStatus, step: int) -> None:
        """Ends a goal, puts it off or takes it up again; what waits for it is freed or blocked."""
        if status is GoalStatus.BLOCKED:
            raise GoalError(
                f"Goal {self.get(id).description!r} cannot be set to blocked: name what it waits "
                "for with `depends_on`, or put it off as deferred."
            )
        is_closed = status in (GoalStatus.COMPLETED, GoalStatus.ABANDONED)
        self.change(id, step, status=status, closed_step=step if is_closed else None)

    def adopt(self, id: str, parent_id: str, step: int) -> None:
        """Makes a goal serve another one."""
        self._refuse_circle(id, parent_id, "serve")
        self.change(id, step, parent_id=parent_id)

    def depend(self, id: str, on: str, step: int) -> None:
        """Makes a goal wait for another one; it is blocked until that is completed."""
        goal = self.get(id)
        if on in goal.depends_on:
            return
        self._refuse_circle(id, on, "wait for")
        if self._waiting is not None:
            self._waiting[on].append(id)
        self.change(id, step, depends_on=(*goal.depends_on, on))

    def _put(self, goal: Goal) -> None:
        self._by_id[goal.id] = goal
        self._goals = None

    def _refuse_circle(self, id: str, end: str, verb: str) -> None:
        """Refuses an edge between two goals if the other end already leads back to the first."""
        came_from, todo = {self.get(end).id: self.get(id).id}, [end]
        for node in todo:
            goal = self._by_id[node]
            parents = (goal.parent_id,) if goal.parent_id else ()
            for following in parents if verb == "serve" else goal.depends_on:
                if following not in came_from:
                    came_from[following] = node
                    todo.append(following)
        if id not in came_from:
            return
        way = [id, came_from[id]]
        while way[-1] != id:
            way.append(came_from[way[-1]])
        names = [f"{self._by_id[one].description!r} ({one})" for one in reversed(way)]
        raise GoalError(f"A goal would {verb} itself: {' -> '.join(names)}. Leave one out.")

    def _described(self, description: str) -> list[Goal]:
        """The goals of this description, oldest first."""
        if self._by_words is None:
            self._by_words = defaultdict(list)
            for goal in self._by_id.values():
                self._by_words[folded(goal.description)].append(goal.id)
        return [self._by_id[id] for id in self._by_words.get(folded(description), ())]

    def _dependents(self, id: str) -> tuple[str, ...]:
        if self._waiting is None:
            self._waiting = defaultdict(list)
            for goal in self._by_id.values():
                for on in goal.depends_on:
                    self._waiting[on].append(goal.id)
        return tuple(self._waiting.get(id, ()))

    def _open_goals(self) -> str:
        """The open goals for an error, newest first."""
        open_ones = [goal for goal in reversed(self.goals) if goal.is_open]
        named = [f"{goal.id} {one_line(goal.description, 60)!r}" for goal in open_ones[:_LISTED]]
        more = f" and {len(open_ones) - _LISTED} more" if len(open_ones) > _LISTED else ""
        return f"Open goals: {', '.join(named) or 'none'}{more}."
