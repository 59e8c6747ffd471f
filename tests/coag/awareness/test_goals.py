"""The goal graph: no circles, and blocked exactly while something is missing."""

from __future__ import annotations

from collections.abc import Callable

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

from coag.awareness import Goal, GoalDraft, GoalGraph, GoalSource, GoalStatus
from coag.errors import GoalError

DONE, GIVEN_UP, LATER = GoalStatus.COMPLETED, GoalStatus.ABANDONED, GoalStatus.DEFERRED
ACTIVE, BLOCKED = GoalStatus.ACTIVE, GoalStatus.BLOCKED
A, B, C = "aaaaaaaa", "bbbbbbbb", "cccccccc"


def goal(id: str, *depends_on: str, parent: str | None = None, says: str = "") -> Goal:
    return Goal(id=id, description=says or f"goal {id}", depends_on=depends_on, parent_id=parent)


def draft_of(*goals: Goal) -> GoalDraft:
    draft = GoalDraft()
    for one in goals:
        draft.spawn(one)
    return draft


def waiting() -> GoalDraft:
    return draft_of(goal(A, says="Get a key"), goal(B, A))


def graph(draft: GoalDraft) -> GoalGraph:
    return GoalGraph().drafted(draft)


def test_a_goal_is_blocked_until_what_it_depends_on_is_completed_and_again_when_that_reopens() -> (
    None
):
    draft = waiting()
    for status, follows in ((DONE, ACTIVE), (ACTIVE, BLOCKED), (LATER, BLOCKED), (DONE, ACTIVE)):
        draft.set_status(A, status, 4)
        assert draft.get(A).closed_step == (4 if status is DONE else None)
        assert (draft.get(B).status, draft.get(B).updated_step) == (follows, 4)
    draft.set_status(B, LATER, 5)
    draft.set_status(A, GIVEN_UP, 6)
    assert draft.get(B).status is LATER
    draft.set_status(B, ACTIVE, 7)
    assert draft.get(B).status is BLOCKED
    assert graph(draft).blocked == (draft.get(B),)


def test_goals_are_nested() -> None:
    nested = graph(draft_of(goal(A), goal(B, parent=A), goal(C, parent=A)))
    assert [one.id for one in nested.root_goals] == [A]


KNOWN = f"Open goals: {A} 'Learn Python'"


WRONG: list[tuple[Callable[[GoalDraft], object], str]] = [
    (lambda one: one.depend(A, C, 1), f"wait for itself: .*{A}.*{C}.*{B}.*{A}"),
    (lambda one: one.depend(A, A, 1), "wait for itself"),
    (lambda one: one.adopt(A, C, 1), "serve itself"),
    (lambda one: one.spawn(goal(A)), f"'{A}' exists already: 'Learn Python'"),
    (lambda one: one.spawn(goal("d" * 8, "e" * 8)), f"'eeeeeeee'.*{KNOWN}"),
    (lambda one: one.spawn(goal("d" * 8, parent="e" * 8)), "'eeeeeeee'"),
    (lambda one: one.set_status(A, BLOCKED, 1), "cannot be set to blocked"),
    (lambda one: one.get("nothing"), f"'nothing'.*{KNOWN}"),
    (lambda one: graph(one).find("nothing"), f"'nothing'.*{KNOWN}"),
    (lambda one: graph(one).get("nothing"), f"'nothing'.*{KNOWN}"),
]


@pytest.mark.parametrize(("change", "problem"), WRONG)
def test_what_does_not_fit_is_refused_with_the_goals_that_it_is_about(
    change: Callable[[GoalDraft], object], problem: str
) -> None:
    draft = draft_of(goal(A, says="Learn Python"), goal(B, A, parent=A), goal(C, B, parent=B))
    for id in (B, C):
        draft.set_status(id, DONE, 1)
    with pytest.raises(GoalError, match=problem):
        change(draft)


def test_a_description_finds_the_open_goal_first_then_the_newest() -> None:
    draft = draft_of(goal(A, says="Learn Python"), goal(B, says="learn  python"), goal(C))
    assert (draft.find("LEARN PYTHON").id, draft.find(C).id) == (B, C)
    for closed, found in ((B, A), (A, B)):
        draft.set_status(closed, DONE, 1)
        assert draft.find("learn python").id == found


def test_the_same_history_gives_the_same_ids_and_two_goals_never_share_one() -> None:
    draft = GoalDraft()
    for _ in range(20):
        id = draft.fresh_id("Learn Python", GoalSource.EXPLICIT, 1)
        assert id == draft.fresh_id("learn  PYTHON", GoalSource.EXPLICIT, 1)
        draft.spawn(goal(id, says="Learn Python"))
    assert len({one.id for one in draft.goals}) == 20


@pytest.mark.parametrize(
    ("goals", "problem"),
    [
        ((goal(A), goal(A)), "same id"),
        ((goal(A, B),), "no goal here"),
        ((goal(A, parent=B),), "no goal here"),
        ((goal(A, parent=B), goal(B, parent=A)), "circle: [ab]{8} -> [ab]{8} -> [ab]{8}"),
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
    todo = [start]
    for node in todo:
        todo += [one for one in edges[node] if one not in todo]
    return end in todo


class GoalsInUse(RuleBasedStateMachine):
    """Any changes in any order, against what the graph promises."""

    ids: Bundle[str] = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.draft = GoalDraft()
        self.step = 0

    def edges(self, *, parents: bool) -> dict[str, tuple[str, ...]]:
        return {
            one.id: (one.references[:1] if one.parent_id else ()) if parents else one.depends_on
            for one in self.draft.goals
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
        id = self.draft.fresh_id(description, source, self.step)
        self.draft.spawn(goal(id, *([on] if on else []), parent=parent, says=description))
        return id

    @rule(id=ids, other=ids, parents=st.booleans())
    def link(self, id: str, other: str, parents: bool) -> None:
        self.step += 1
        try:
            (self.draft.adopt if parents else self.draft.depend)(id, other, self.step)
        except GoalError:
            assert leads_to(other, id, self.edges(parents=parents))

    @rule(id=ids, status=st.sampled_from([one for one in GoalStatus if one is not BLOCKED]))
    def move(self, id: str, status: GoalStatus) -> None:
        self.step += 1
        self.draft.set_status(id, status, self.step)

    @invariant()
    def the_graph_is_its_json_without_circles_and_with_the_promised_statuses(self) -> None:
        now = graph(self.draft)
        assert GoalGraph.model_validate_json(now.model_dump_json()) == now
        for parents in (True, False):
            edges = self.edges(parents=parents)
            for id, ends in edges.items():
                assert not any(leads_to(end, id, edges) for end in ends)
        for one in now.goals:
            if one.status in (ACTIVE, BLOCKED):
                waits = any(now.get(on).status is not DONE for on in one.depends_on)
                assert (one.status is BLOCKED) == waits
            assert one.is_open == (one.closed_step is None)


def test_the_graph_keeps_its_promises_whatever_is_done() -> None:
    run_state_machine_as_test(GoalsInUse)
