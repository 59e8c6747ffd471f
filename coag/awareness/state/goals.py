"""Goals, their graph, and what may become of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from coag.errors import GoalError
from coag.schema import Value, content_id, one_line

from .texts import Said, Share, Step, folded

# ---- Finding a circle among edges ----


def circle_in(edges: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """A circle that the edges make, its first node again at its end; empty if there is none."""
    done: set[str] = set()
    for start in edges:
        path: list[str] = []
        on_path: set[str] = set()
        todo: list[tuple[str, bool]] = [(start, False)]
        while todo:
            node, leaving = todo.pop()
            if leaving:
                done.add(node)
                on_path.discard(path.pop())
                continue
            if node in on_path:
                return (*path[path.index(node) :], node)
            if node in done:
                continue
            path.append(node)
            on_path.add(node)
            todo.append((node, True))
            todo.extend((following, False) for following in edges.get(node, ()))
    return ()


# ---- A goal: what the agent tries to bring about (SAGEN §3.1, tables 1 and 13) ----


GoalId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8}$")]
"""Eight hexadecimal digits."""


class GoalStatus(StrEnum):
    """Where a goal stands in its life."""

    ACTIVE = "active"
    COMPLETED = "completed"
    ABANDONED = "abandoned"
    BLOCKED = "blocked"
    """Open, but something it depends on is not completed; the goal graph sets it by itself."""
    DEFERRED = "deferred"
    """Open, but put off; it stays so until somebody takes it up again."""


CLOSED = frozenset({GoalStatus.COMPLETED, GoalStatus.ABANDONED})
"""How a goal ends."""


class GoalSource(StrEnum):
    """Where a goal comes from."""

    EXPLICIT = "explicit"
    """Said by the user."""
    INFERRED = "inferred"
    """Taken from what the user does or asks."""
    EMERGENT = "emergent"
    """Found by looking at the state."""
    SPAWNED = "spawned"
    """Made to serve another goal."""


class GoalOutcomes(Value):
    """How often what was done for a goal helped it, and how often not."""

    successes: int = Field(default=0, ge=0)
    failures: int = Field(default=0, ge=0)


class Goal(Value):
    """One objective, with where it comes from and what it waits for."""

    id: GoalId
    description: Said
    status: GoalStatus = GoalStatus.ACTIVE
    source: GoalSource = GoalSource.EXPLICIT
    priority: Share = 0.5
    """Urgency and importance, 0 to 1."""
    parent_id: GoalId | None = None
    """The goal that it serves; None for a root goal."""
    depends_on: tuple[GoalId, ...] = ()
    """Goals that must be completed first."""
    completion_criteria: Said | None = None
    """How one can tell that it is reached."""
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


def goal_id(description: str, source: GoalSource, step: int, ordinal: int) -> str:
    """The id that follows from these; the same history gives the same ids on every machine.

    Args:
        description: Compared without case and spacing.
        source: Where the goal comes from.
        step: When it is made.
        ordinal: How many goals there are before it.
    """
    return content_id(folded(description), source.value, str(step), str(ordinal))[:8]


# ---- What must hold among goals. Pure rules ----


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


# ---- Goals while they are changed, each found without a search ----


class GoalDraft:
    """The goals of a graph while they are changed, by the graph's rules.

    `GoalGraph` makes one for a change, an engine keeps one from step to step: a change costs as
    much as it concerns goals, however many others there are. One that has refused a change is to
    be thrown away, since the changes before that are in it.

    Args:
        goals: Those of a graph.
    """

    def __init__(self, goals: tuple[Goal, ...] = ()) -> None:
        self._by_id = {goal.id: goal for goal in goals}
        self._made: tuple[Goal, ...] | None = goals
        self._words: _Words | None = None
        self._waiting: defaultdict[str, list[str]] | None = None

    @property
    def goals(self) -> tuple[Goal, ...]:
        """All of them as they are now, in the order in which they were made."""
        if self._made is None:
            self._made = tuple(self._by_id.values())
        return self._made

    def get(self, id: str) -> Goal:
        """See `GoalGraph.get`."""
        found = self._by_id.get(id)
        if found is None:
            raise GoalError(f"There is no goal with the id {id!r}. {open_goals(self.goals)}")
        return found

    def find(self, reference: str) -> Goal:
        """See `GoalGraph.find`."""
        found = self._by_id.get(reference)
        if found is not None:
            return found
        id = self._by_words().find(reference)
        if id is None:
            raise GoalError(
                f"There is no goal {one_line(reference)!r}; name one by its id or description. "
                f"{open_goals(self.goals)}"
            )
        return self._by_id[id]

    def open_one(self, description: str) -> Goal | None:
        """The open goal of this description, of several the oldest; None if there is none."""
        id = self._by_words().open_one(description)
        return None if id is None else self._by_id[id]

    def fresh_id(self, description: str, source: GoalSource, step: int) -> str:
        """See `GoalGraph.fresh_id`."""
        ordinal = len(self._by_id)
        while (id := goal_id(description, source, step, ordinal)) in self._by_id:
            ordinal += 1
        return id

    def spawn(self, goal: Goal) -> None:
        """See `GoalGraph.spawn`."""
        if goal.id in self._by_id:
            raise GoalError(
                f"A goal with the id {goal.id!r} is there already: "
                f"{one_line(self._by_id[goal.id].description)!r}. Take the id from `fresh_id`."
            )
        for id in (*goal.depends_on, *_parent_of(goal)):
            if id not in self._by_id:
                raise GoalError(
                    f"The new goal {one_line(goal.description)!r} names {id!r} as parent or "
                    f"dependency, which is no goal. {open_goals(self.goals)}"
                )
        settled = goal.model_copy(update={"status": at_rest(goal, self._by_id)})
        self._made = None
        self._by_id[goal.id] = settled
        if self._words is not None:
            self._words.add(settled)
        if self._waiting is not None:
            for on in goal.depends_on:
                self._waiting[on].append(goal.id)

    def close(self, id: str, status: GoalStatus, step: int) -> None:
        """See `GoalGraph.close`."""
        if status not in CLOSED:
            raise GoalError(
                f"A goal is closed as completed or abandoned, not as {status.value!r}; "
                "`defer` puts it off, `resume` takes it up again."
            )
        self._change(id, {"status": status, "closed_step": step}, step)

    def defer(self, id: str, step: int) -> None:
        """See `GoalGraph.defer`."""
        self._change(id, {"status": GoalStatus.DEFERRED, "closed_step": None}, step)

    def resume(self, id: str, step: int) -> None:
        """See `GoalGraph.resume`."""
        self._change(id, {"status": GoalStatus.ACTIVE, "closed_step": None}, step)

    def reprioritise(self, id: str, priority: float, step: int) -> None:
        """See `GoalGraph.reprioritise`."""
        if not 0.0 <= priority <= 1.0:
            raise GoalError(f"A priority is a number from 0 to 1, not {priority!r}.")
        self._change(id, {"priority": priority}, step)

    def score(self, id: str, *, succeeded: bool, step: int) -> None:
        """See `GoalGraph.score`."""
        known = self.get(id).outcomes
        outcomes = GoalOutcomes(
            successes=known.successes + succeeded, failures=known.failures + (not succeeded)
        )
        self._change(id, {"outcomes": outcomes}, step)

    def adopt(self, id: str, parent_id: str, step: int) -> None:
        """See `GoalGraph.adopt`."""
        goal, parent = self.get(id), self.get(parent_id)
        self._refuse_circle(goal.id, parent.id, _parent_of, "serve")
        self._change(id, {"parent_id": parent.id}, step)

    def depend(self, id: str, on: str, step: int) -> None:
        """See `GoalGraph.depend`."""
        goal, other = self.get(id), self.get(on)
        if other.id in goal.depends_on:
            return
        self._refuse_circle(goal.id, other.id, lambda one: one.depends_on, "wait for")
        if self._waiting is not None:
            self._waiting[other.id].append(goal.id)
        self._change(id, {"depends_on": (*goal.depends_on, other.id)}, step)

    def _change(self, id: str, changes: Mapping[str, object], step: int) -> None:
        """Changes a goal; it and what waits for it are active or blocked as they should be."""
        self._put(self.get(id).model_copy(update={**changes, "updated_step": step}))
        for one in (id, *self._waiting_for(id)):
            known = self._by_id[one]
            status = at_rest(known, self._by_id)
            if status is not known.status:
                self._put(known.model_copy(update={"status": status, "updated_step": step}))

    def _put(self, goal: Goal) -> None:
        """A known goal as it is now."""
        before = self._by_id[goal.id]
        self._by_id[goal.id] = goal
        self._made = None
        if self._words is not None and before.is_open is not goal.is_open:
            self._words.moved(goal)

    def _refuse_circle(
        self, id: str, end: str, edges: Callable[[Goal], Iterable[str]], verb: str
    ) -> None:
        """Refuses an edge from one goal to another that leads back; without it there is no way."""
        came_from: dict[str, str] = {end: id}
        todo = [end]
        while todo and id not in came_from:
            node = todo.pop()
            for following in edges(self._by_id[node]):
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

    def _by_words(self) -> _Words:
        if self._words is None:
            self._words = _Words(self._by_id.values())
        return self._words

    def _waiting_for(self, id: str) -> tuple[str, ...]:
        """The goals that depend on this one."""
        if self._waiting is None:
            self._waiting = defaultdict(list)
            for goal in self._by_id.values():
                for on in goal.depends_on:
                    self._waiting[on].append(goal.id)
        return tuple(self._waiting.get(id, ()))


class _Words:
    """Which goals say the same, but for case and spacing."""

    def __init__(self, goals: Iterable[Goal]) -> None:
        self._ids: list[str] = []
        self._places: dict[str, int] = {}
        self._latest: dict[str, int] = {}
        self._open: defaultdict[str, set[int]] = defaultdict(set)
        for goal in goals:
            self.add(goal)

    def add(self, goal: Goal) -> None:
        """One goal more."""
        words, place = folded(goal.description), len(self._ids)
        self._ids.append(goal.id)
        self._places[goal.id] = place
        self._latest[words] = place
        if goal.is_open:
            self._open[words].add(place)

    def moved(self, goal: Goal) -> None:
        """That a goal is closed now, or open again."""
        places = self._open[folded(goal.description)]
        (places.add if goal.is_open else places.discard)(self._places[goal.id])

    def open_one(self, description: str) -> str | None:
        """The id of the oldest open goal of these words."""
        places = self._open.get(folded(description))
        return self._ids[min(places)] if places else None

    def find(self, description: str) -> str | None:
        """The id of the newest goal of these words, an open one before a closed one."""
        words = folded(description)
        places = self._open.get(words)
        place = max(places) if places else self._latest.get(words)
        return None if place is None else self._ids[place]


def _parent_of(goal: Goal) -> tuple[str, ...]:
    return (goal.parent_id,) if goal.parent_id else ()


# ---- The goal graph: objectives, what serves what, what waits for what (SAGEN §3.1) ----


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
