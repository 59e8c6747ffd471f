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

DONE, GIVEN_UP = GoalStatus.COMPLETED, GoalStatus.ABANDONED
A, B, C = "aaaaaaaa", "bbbbbbbb", "cccccccc"


def goal(id: str, *depends_on: str, parent: str | None = None, says: str = "") -> Goal:
    return Goal(id=id, description=says or f"goal {id}", depends_on=depends_on, parent_id=parent)


def graph_of(*goals: Goal) -> GoalGraph:
    graph = GoalGraph()
    for one in goals:
        graph = graph.spawn(one)
    return graph


WAITING = graph_of(goal(A, says="Get a key"), goal(B, A))


def test_a_goal_is_blocked_until_what_it_depends_on_is_completed_and_again_when_that_reopens() -> (
    None
):
    assert [one.id for one in WAITING.blocked] == [B]
    assert [one.id for one in WAITING.active_goals] == [A]
    done = WAITING.close(A, DONE, step=4)
    assert done.get(A).closed_step == 4
    assert (done.get(B).status, done.get(B).updated_step) == (GoalStatus.ACTIVE, 4)
    again = done.resume(A, 5)
    assert again.get(A).closed_step is None
    assert again.get(B).status is GoalStatus.BLOCKED
    deferred = WAITING.defer(B, 1)
    assert deferred.close(A, DONE, 2).get(B).status is GoalStatus.DEFERRED
    assert deferred.resume(B, 2).get(B).status is GoalStatus.BLOCKED


def test_a_goal_that_waits_says_for_what_and_that_an_abandoned_one_never_comes() -> None:
    assert WAITING.why_blocked(A) == ()
    (waits,) = WAITING.why_blocked(B)
    assert waits.reason == f"It waits for 'Get a key' ({A}), which is active."
    (waits,) = WAITING.close(A, GIVEN_UP, 1).why_blocked(B)
    assert (waits.on, waits.status) == (A, GIVEN_UP)
    assert "abandon this goal, too" in waits.reason


def test_goals_are_nested() -> None:
    graph = graph_of(goal(A), goal(B, parent=A), goal(C, parent=A))
    assert [one.id for one in graph.root_goals] == [A]
    assert [one.id for one in graph.children_of(A)] == [B, C]


def test_circles_are_refused_with_their_goals() -> None:
    graph = graph_of(goal(A), goal(B, A), goal(C, B))
    with pytest.raises(GoalError, match=f"wait for itself: .*{A}.*{C}.*{B}.*{A}"):
        graph.depend(A, C, 1)
    with pytest.raises(GoalError, match="wait for itself"):
        graph.depend(A, A, 1)
    with pytest.raises(GoalError, match="serve itself"):
        graph_of(goal(A), goal(B, parent=A)).adopt(A, B, 1)


@pytest.mark.parametrize("wrong", [goal(B, C), goal(B, parent=C), goal(A)])
def test_a_goal_that_does_not_fit_is_refused_and_what_exists_is_named(wrong: Goal) -> None:
    with pytest.raises(GoalError, match=A):
        graph_of(goal(A)).spawn(wrong)


def test_an_unknown_goal_is_refused_with_those_that_are_open() -> None:
    graph = graph_of(goal(A, says="Learn Python"))
    for lookup in (graph.get, graph.find, graph.why_blocked):
        with pytest.raises(GoalError, match=r"'nothing'.* Open goals: aaaaaaaa 'Learn Python'"):
            lookup("nothing")


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
    graph = graph_of(goal(A)).score(A, succeeded=True, step=1)
    graph = graph.score(A, succeeded=False, step=2).score(A, succeeded=False, step=3)
    assert (graph.get(A).outcomes.successes, graph.get(A).outcomes.failures) == (1, 2)


def test_a_description_finds_the_open_goal_first_then_the_newest() -> None:
    graph = graph_of(goal(A, says="Learn Python"), goal(B, says="learn  python"), goal(C))
    assert graph.find("LEARN PYTHON").id == B
    assert graph.close(B, DONE, 1).find("learn python").id == A
    assert graph.close(B, DONE, 1).close(A, DONE, 1).find("learn python").id == B
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


@pytest.mark.parametrize(
    ("goals", "problem"),
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
    goals: tuple[Goal, ...], problem: str
) -> None:
    with pytest.raises(ValidationError, match=problem):
        GoalGraph(goals=goals)


def leads_to(start: str, end: str, edges: dict[str, tuple[str, ...]]) -> bool:
    seen, todo = set[str](), [start]
    while todo:
        node = todo.pop()
        if node == end:
            return True
        if node not in seen:
            seen.add(node)
            todo.extend(edges[node])
    return False


class GoalsInUse(RuleBasedStateMachine):
    """Any changes in any order, against what the graph promises."""

    ids: Bundle[str] = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.graph = GoalGraph()
        self.step = 0

    def edges(self, *, parents: bool) -> dict[str, tuple[str, ...]]:
        return {
            one.id: (one.references[:1] if one.parent_id else ()) if parents else one.depends_on
            for one in self.graph.goals
        }

    @rule(
        target=ids,
        description=st.sampled_from("abc"),
        source=st.sampled_from(GoalSource),
        on=st.none() | ids,
        parent=st.none() | ids,
    )
    def spawn(
        self, description: str, source: GoalSource, on: str | None, parent: str | None
    ) -> str:
        self.step += 1
        id = self.graph.fresh_id(description, source, self.step)
        depends = (on,) if on else ()
        self.graph = self.graph.spawn(goal(id, *depends, parent=parent, says=description))
        return id

    @rule(id=ids, other=ids, parents=st.booleans())
    def link(self, id: str, other: str, parents: bool) -> None:
        self.step += 1
        try:
            change = self.graph.adopt if parents else self.graph.depend
            self.graph = change(id, other, self.step)
        except GoalError:
            assert leads_to(other, id, self.edges(parents=parents))

    @rule(id=ids, how=st.sampled_from(["completed", "abandoned", "defer", "resume"]))
    def move(self, id: str, how: str) -> None:
        self.step += 1
        if how in ("defer", "resume"):
            self.graph = getattr(self.graph, how)(id, self.step)
        else:
            self.graph = self.graph.close(id, GoalStatus(how), self.step)

    @rule(id=ids, priority=st.floats(0, 1))
    def reprioritise(self, id: str, priority: float) -> None:
        self.graph = self.graph.reprioritise(id, priority, self.step)

    @invariant()
    def nothing_leads_to_itself(self) -> None:
        for parents in (True, False):
            edges = self.edges(parents=parents)
            for id, ends in edges.items():
                assert not any(leads_to(end, id, edges) for end in ends)

    @invariant()
    def statuses_are_as_promised(self) -> None:
        for one in self.graph.goals:
            if one.status in (GoalStatus.ACTIVE, GoalStatus.BLOCKED):
                waits = bool(self.graph.why_blocked(one.id))
                assert (one.status is GoalStatus.BLOCKED) == waits
            assert one.is_open == (one.closed_step is None)

    @invariant()
    def the_graph_is_its_json(self) -> None:
        assert GoalGraph.model_validate_json(self.graph.model_dump_json()) == self.graph


def test_the_graph_keeps_its_promises_whatever_is_done() -> None:
    run_state_machine_as_test(GoalsInUse)
