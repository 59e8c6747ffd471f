"""Goals while they are changed, each found without a search."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from coag.errors import GoalError
from coag.schema import one_line

from ._goal import CLOSED, Goal, GoalOutcomes, GoalSource, GoalStatus, goal_id
from ._goal_rules import at_rest, open_goals
from ._texts import folded


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
