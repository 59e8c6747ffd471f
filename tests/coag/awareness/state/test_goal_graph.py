"""The goal graph: no circles, and blocked exactly while something is missing."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)
from pydantic import ValidationError

from coag.awareness import Goal, GoalGraph, GoalSource, GoalStatus
from coag.errors import GoalError

OPEN = (GoalStatus.ACTIVE, GoalStatus.BLOCKED)


def goal(id: str, *depends_on: str, parent: str | None = None, says: str = "") -> Goal:
    return Goal(id=id, description=says or f"goal {id}", depends_on=depends_on, parent_id=parent)


def graph_of(*goals: Goal) -> GoalGraph:
    graph = GoalGraph()
    for one in goals:
        graph = graph.spawn(one)
    return graph


A, B, C = "aaaaaaaa", "bbbbbbbb", "cccccccc"


def test_a_goal_with_an_open_dependency_is_blocked_and_freed_by_its_completion() -> None:
    graph = graph_of(goal(A), goal(B, A))
    assert [one.id for one in graph.blocked] == [B]
    assert [one.id for one in graph.active_goals] == [A]
    graph = graph.close(A, GoalStatus.COMPLETED, step=4)
    assert graph.get(A).closed_step == 4
    assert graph.get(B).status is GoalStatus.ACTIVE
    assert graph.get(B).updated_step == 4


def test_reopening_a_dependency_blocks_again() -> None:
    graph = graph_of(goal(A), goal(B, A)).close(A, GoalStatus.COMPLETED, 1).resume(A, 2)
    assert graph.get(A).closed_step is None
    assert graph.get(B).status is GoalStatus.BLOCKED


def test_an_abandoned_dependency_keeps_a_goal_blocked_and_says_so() -> None:
    graph = graph_of(goal(A, says="Get a key"), goal(B, A)).close(A, GoalStatus.ABANDONED, 1)
    assert graph.get(B).status is GoalStatus.BLOCKED
    (waits,) = graph.why_blocked(B)
    assert waits.on == A
    assert waits.status is GoalStatus.ABANDONED
    assert "'Get a key'" in waits.reason
    assert "abandon this goal, too" in waits.reason


def test_a_goal_that_waits_says_for_what() -> None:
    graph = graph_of(goal(A, says="Get a key"), goal(B, A))
    assert [one.reason for one in graph.why_blocked(B)] == [
        f"It waits for 'Get a key' ({A}), which is active."
    ]
    assert graph.why_blocked(A) == ()


def test_a_deferred_goal_stays_deferred_until_it_is_resumed() -> None:
    graph = graph_of(goal(A), goal(B, A)).defer(B, 1)
    assert graph.close(A, GoalStatus.COMPLETED, 2).get(B).status is GoalStatus.DEFERRED
    assert graph.resume(B, 2).get(B).status is GoalStatus.BLOCKED


def test_goals_are_nested() -> None:
    graph = graph_of(goal(A), goal(B, parent=A), goal(C, parent=A))
    assert [one.id for one in graph.root_goals] == [A]
    assert [one.id for one in graph.children_of(A)] == [B, C]


def test_a_circle_of_dependencies_is_refused_with_its_goals() -> None:
    graph = graph_of(goal(A), goal(B, A), goal(C, B))
    with pytest.raises(GoalError, match=f"wait for itself: .*{A}.*{C}.*{B}.*{A}"):
        graph.depend(A, C, 1)
    with pytest.raises(GoalError, match="wait for itself"):
        graph.depend(A, A, 1)


def test_a_circle_of_parents_is_refused() -> None:
    graph = graph_of(goal(A), goal(B, parent=A))
    with pytest.raises(GoalError, match="serve itself"):
        graph.adopt(A, B, 1)


@pytest.mark.parametrize(
    "wrong", [goal(B, C), goal(B, parent=C), goal(A)], ids=["dependency", "parent", "id"]
)
def test_a_goal_that_does_not_fit_is_refused_and_what_exists_is_named(wrong: Goal) -> None:
    with pytest.raises(GoalError, match=A):
        graph_of(goal(A)).spawn(wrong)


def test_an_unknown_goal_is_refused_with_those_that_are_open() -> None:
    graph = graph_of(goal(A, says="Learn Python"))
    for ask in (graph.get, graph.find, graph.why_blocked):
        with pytest.raises(GoalError, match=r"'nothing'.* Open goals: aaaaaaaa 'Learn Python'"):
            ask("nothing")


def test_a_goal_is_closed_as_completed_or_abandoned_only() -> None:
    with pytest.raises(GoalError, match="not as 'deferred'"):
        graph_of(goal(A)).close(A, GoalStatus.DEFERRED, 1)


@pytest.mark.parametrize("priority", [-0.1, 1.1, float("nan")])
def test_a_priority_is_from_0_to_1(priority: float) -> None:
    graph = graph_of(goal(A))
    assert graph.reprioritise(A, 1.0, 3).get(A).priority == 1.0
    with pytest.raises(GoalError, match="from 0 to 1"):
        graph.reprioritise(A, priority, 3)


def test_successes_and_failures_are_counted() -> None:
    graph = graph_of(goal(A)).score(A, succeeded=True, step=1).score(A, succeeded=False, step=2)
    graph = graph.score(A, succeeded=False, step=3)
    assert graph.get(A).outcomes.successes == 1
    assert graph.get(A).outcomes.failures == 2


def test_a_description_finds_the_open_goal_first_then_the_newest() -> None:
    graph = graph_of(goal(A, says="Learn Python"), goal(B, says="learn  python"), goal(C))
    assert graph.find("LEARN PYTHON").id == B
    assert graph.close(B, GoalStatus.COMPLETED, 1).find("learn python").id == A
    closed = graph.close(B, GoalStatus.COMPLETED, 1).close(A, GoalStatus.COMPLETED, 1)
    assert closed.find("learn python").id == B
    assert graph.find(C).id == C


def test_the_same_history_gives_the_same_ids_and_two_goals_never_share_one() -> None:
    first = GoalGraph().fresh_id("Learn Python", GoalSource.EXPLICIT, 1)
    assert first == GoalGraph().fresh_id("learn  PYTHON", GoalSource.EXPLICIT, 1)
    assert len(first) == 8
    graph = GoalGraph()
    for _ in range(20):
        id = graph.fresh_id("Learn Python", GoalSource.EXPLICIT, 1)
        graph = graph.spawn(goal(id, says="Learn Python"))
    assert len({one.id for one in graph.goals}) == 20
    taken = graph_of(goal(first))
    taken = GoalGraph(goals=(taken.goals[0].model_copy(update={"id": first}),))
    assert taken.fresh_id("Learn Python", GoalSource.EXPLICIT, 1) != first


@pytest.mark.parametrize(
    ("goals", "said"),
    [
        ((goal(A), goal(A)), "same id"),
        ((goal(A, B),), "no goal here"),
        ((goal(A, parent=B),), "no goal here"),
        ((goal(A, parent=B), goal(B, parent=A)), "circle"),
        ((goal(A, B), goal(B, A)), "circle"),
        ((goal(A), goal(B, A)), "is active, but .* blocked"),
    ],
)
def test_goals_from_outside_that_are_no_graph_are_refused(
    goals: tuple[Goal, ...], said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        GoalGraph(goals=goals)


class GoalsInUse(RuleBasedStateMachine):
    """Any changes in any order, against what the graph promises."""

    ids: Bundle[str] = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.graph = GoalGraph()
        self.step = 0

    def attempt(self, changed: GoalGraph | None) -> None:
        self.step += 1
        if changed is not None:
            self.graph = changed

    @rule(
        target=ids, description=st.sampled_from(["a", "b", "c"]), source=st.sampled_from(GoalSource)
    )
    def spawn(self, description: str, source: GoalSource) -> str:
        id = self.graph.fresh_id(description, source, self.step)
        self.attempt(self.graph.spawn(goal(id, says=description)))
        return id

    @rule(target=ids, on=ids, parent=ids)
    def spawn_within(self, on: str, parent: str) -> str:
        id = self.graph.fresh_id("within", GoalSource.SPAWNED, self.step)
        self.attempt(self.graph.spawn(goal(id, on, parent=parent)))
        return id

    @rule(id=ids, on=ids)
    def depend(self, id: str, on: str) -> None:
        try:
            self.attempt(self.graph.depend(id, on, self.step))
        except GoalError:
            assert self.leads_to(on, id, {one.id: one.depends_on for one in self.graph.goals})

    @rule(id=ids, parent=ids)
    def adopt(self, id: str, parent: str) -> None:
        edges = {one.id: (one.parent_id,) if one.parent_id else () for one in self.graph.goals}
        try:
            self.attempt(self.graph.adopt(id, parent, self.step))
        except GoalError:
            assert self.leads_to(parent, id, edges)

    @rule(id=ids, status=st.sampled_from([GoalStatus.COMPLETED, GoalStatus.ABANDONED]))
    def close(self, id: str, status: GoalStatus) -> None:
        self.attempt(self.graph.close(id, status, self.step))

    @rule(id=ids)
    def defer(self, id: str) -> None:
        self.attempt(self.graph.defer(id, self.step))

    @rule(id=ids)
    def resume(self, id: str) -> None:
        self.attempt(self.graph.resume(id, self.step))

    @rule(id=ids, priority=st.floats(0, 1))
    def reprioritise(self, id: str, priority: float) -> None:
        self.attempt(self.graph.reprioritise(id, priority, self.step))

    @staticmethod
    def leads_to(start: str, end: str, edges: dict[str, tuple[str, ...]]) -> bool:
        seen: set[str] = set()
        todo = [start]
        while todo:
            node = todo.pop()
            if node == end:
                return True
            if node not in seen:
                seen.add(node)
                todo.extend(edges[node])
        return False

    @invariant()
    def nothing_leads_to_itself(self) -> None:
        depends = {one.id: one.depends_on for one in self.graph.goals}
        parents = {one.id: (one.parent_id,) if one.parent_id else () for one in self.graph.goals}
        for edges in (depends, parents):
            for id, ends in edges.items():
                assert not any(self.leads_to(end, id, edges) for end in ends)

    @invariant()
    def blocked_is_exactly_what_waits(self) -> None:
        for one in self.graph.goals:
            if one.status in OPEN:
                waits = self.graph.why_blocked(one.id)
                assert (one.status is GoalStatus.BLOCKED) == bool(waits)

    @invariant()
    def closed_goals_know_when(self) -> None:
        assert all(one.is_open == (one.closed_step is None) for one in self.graph.goals)

    @invariant()
    def the_graph_is_its_json(self) -> None:
        assert GoalGraph.model_validate_json(self.graph.model_dump_json()) == self.graph


def test_the_graph_keeps_its_promises_whatever_is_done() -> None:
    run_state_machine_as_test(GoalsInUse)
