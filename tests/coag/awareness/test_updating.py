"""The next state follows from state, observation and time alone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.awareness import (
    AttentionType,
    AwarenessState,
    EngineSettings,
    GoalChange,
    GoalStatus,
    MergeReason,
    NameResolver,
    Observation,
    ObservedAttention,
    ObservedEntity,
    ObservedEvent,
    ObservedGoal,
    TransitionType,
    load_state,
    updated,
)
from coag.errors import AwarenessError, GoalError, ObservationError
from coag.store import HashEmbedder

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NEW = AwarenessState(domain="test", at=NOW)


def after(
    *said: dict[str, Any],
    state: AwarenessState = NEW,
    settings: EngineSettings | None = None,
) -> AwarenessState:
    resolver = NameResolver(settings)
    for raw in said:
        state = updated(state, Observation.parse(raw), NOW, resolver=resolver)
    return state


def seen(*names: str, type: str = "topic", **more: Any) -> dict[str, Any]:
    return {"entities": [{"name": name, "type": type, **more} for name in names]}


def wants(description: str, **more: Any) -> dict[str, Any]:
    return {"goals": [{"description": description, **more}]}


def test_each_update_is_one_step_at_its_time() -> None:
    state = after({}, {})
    assert state.step == 2
    assert state.at == NOW
    assert state == NEW.model_copy(update={"step": 2})


def test_an_entity_is_added_then_brought_up_to_date() -> None:
    state = after(
        seen("Python", state={"level": "new", "age": 3}, affordances=["run"]),
        {},
        seen("python", type="concept", state={"level": "good"}, affordances=["run", "type"]),
    )
    (entity,) = state.world.entities
    assert entity.name == "Python"
    assert entity.type == "topic"
    assert entity.state == {"level": "good", "age": 3}
    assert entity.affordances == ("run", "type")
    assert (entity.first_step, entity.last_step, entity.mentions) == (1, 3, 2)


def test_a_name_that_was_recognised_is_recorded_once() -> None:
    state = after(seen("Python"), seen("Python programming"), seen("Python programming"))
    (entity,) = state.world.entities
    assert entity.aliases == ("Python programming",)
    (merge,) = state.world.merges
    assert (merge.name, merge.entity) == ("Python programming", "Python")
    assert merge.how is MergeReason.CONTAINED
    assert merge.step == 2


def test_two_names_of_one_entity_in_one_observation_are_one_entity() -> None:
    assert len(after(seen("Python", "Python programming", "PYTHON")).world.entities) == 1


def test_aliases_and_merges_are_bounded() -> None:
    settings = EngineSettings(kept_aliases=1, kept_merges=2)
    names = ["Café", "CAFE", "café", "Cafe", "cafe!"]
    world = after(*(seen(name) for name in names), settings=settings).world
    assert world.entities[0].aliases == ("CAFE",)
    assert [merge.name for merge in world.merges] == ["Cafe", "cafe!"]
    none = after(*(seen(name) for name in names), settings=EngineSettings(kept_merges=0)).world
    assert none.merges == ()


def test_relationships_join_what_names_mean_and_are_seen_again() -> None:
    edge = {"source": "user", "type": "asked_about", "target": "PYTHON"}
    again = {**edge, "target": "python"}
    state = after(
        {**seen("Python"), "relationships": [edge]},
        {},
        {"relationships": [again, {**edge, "type": "likes"}]},
        {"relationships": [again]},
    )
    assert [(one.source, one.type, one.target, one.step) for one in state.world.relationships] == [
        ("user", "asked_about", "Python", 4),
        ("user", "likes", "Python", 3),
    ]


def test_goals_may_name_goals_of_the_same_observation_in_any_order() -> None:
    state = after(
        {
            "goals": [
                {"description": "Scrape", "parent": "learn", "depends_on": ["install"]},
                {"description": "Install", "priority": 0.9},
                {"description": "Learn"},
            ]
        }
    )
    scrape, install, learn = state.goals.goals
    assert scrape.parent_id == learn.id
    assert scrape.depends_on == (install.id,)
    assert scrape.status is GoalStatus.BLOCKED
    assert [goal.created_step for goal in state.goals.goals] == [1, 1, 1]


def test_a_completed_goal_frees_what_waits_for_it() -> None:
    first = {"goals": [{"description": "a"}, {"description": "b", "depends_on": ["a"]}]}
    done = {"goal_changes": [{"goal": "A", "status": "completed", "succeeded": True}]}
    goals = after(first, done).goals
    assert goals.find("b").status is GoalStatus.ACTIVE
    assert goals.find("a").outcomes.successes == 1
    assert goals.find("a").closed_step == 2


def test_a_goal_is_put_off_taken_up_weighed_and_abandoned() -> None:
    def changed(**change: Any) -> dict[str, Any]:
        return {"goal_changes": [{"goal": "a", **change}]}

    state = after(wants("a"), changed(status="deferred", priority=0.1))
    goal = state.goals.goals[0]
    assert (goal.status, goal.priority) == (GoalStatus.DEFERRED, 0.1)
    state = after(changed(status="active"), state=state)
    assert state.goals.goals[0].status is GoalStatus.ACTIVE
    state = after(changed(status="abandoned"), state=state)
    assert state.goals.goals[0].status is GoalStatus.ABANDONED
    with pytest.raises(GoalError, match="cannot be set to blocked"):
        after(changed(status="blocked"), state=state)


def test_a_goal_that_is_open_is_not_made_twice_and_one_that_is_closed_is_made_anew() -> None:
    state = after(wants("Learn Python", priority=0.4), wants("learn  python", priority=0.3))
    (goal,) = state.goals.goals
    assert (goal.priority, goal.updated_step) == (0.4, 2)
    closed = {"goal_changes": [{"goal": goal.id, "status": "completed"}]}
    state = after(closed, wants("Learn Python"), state=state)
    assert [one.status for one in state.goals.goals] == [GoalStatus.COMPLETED, GoalStatus.ACTIVE]


def test_attention_expires_with_its_time_and_comes_from_the_domain() -> None:
    item = {"type": "threat", "description": "fire", "urgency": 0.9, "ttl": 2}
    state = after({"attention_items": [item]})
    assert state.attention.visible[0].source == "test"
    assert state.attention.visible[0].created_step == 1
    assert len(after({}, state=state).attention.items) == 1
    assert after({}, {}, state=state).attention.items == ()


def test_beliefs_are_said_once_while_open_and_settled_by_their_words() -> None:
    said = {"assumptions": ["it rains"], "unknowns": ["why", "WHY", "who"]}
    world = after(said, said, {"resolved": ["Why", "it  rains"]}, {"unknowns": ["why"]}).world
    assert [(one.text, one.step, one.resolved) for one in world.unknowns] == [
        ("why", 1, 3),
        ("who", 1, None),
        ("why", 4, None),
    ]
    assert world.open_assumptions == ()


def test_settling_what_is_not_open_is_refused() -> None:
    with pytest.raises(ObservationError, match="'why'") as caught:
        after({"unknowns": ["who"]}, {"resolved": ["who", "why"]})
    assert caught.value.path == "resolved[1]"


def test_the_event_is_recorded_at_its_step_and_compressed() -> None:
    def event(type: str) -> dict[str, Any]:
        return {"event": {"type": type, "description": type, "detail": {"n": 1}}}

    trajectory = after(event("failure"), {}, *[event("progress")] * 6).trajectory
    assert [one.step for one in trajectory.transitions] == [1, 4, 5, 6, 7, 8]
    assert trajectory.transitions[0].type is TransitionType.FAILURE
    assert trajectory.transitions[0].detail == {"n": 1}


def test_resources_are_read_and_spent_and_mistakes_noted() -> None:
    state = after(
        {"resources": [{"name": "battery", "capacity": 10, "remaining": 9}]},
        {
            "spent": [{"resource": "battery", "amount": 4}],
            "failure": {"action": "go", "reason": "wall", "lesson": "look first"},
        },
    )
    assert state.self_model.resources[0].remaining == 5
    (failure,) = state.self_model.failures
    assert (failure.step, failure.lesson) == (2, "look first")


def test_spending_an_unknown_resource_is_refused_with_its_path() -> None:
    with pytest.raises(ObservationError, match="'fuel'") as caught:
        after({"spent": [{"resource": "fuel", "amount": 1}]})
    assert caught.value.path == "spent[0].resource"


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        ({"description": "a", "parent": "nobody"}, "'nobody'"),
        ({"description": "a", "depends_on": ["nothing"]}, "'nothing'"),
        ({"description": "a", "depends_on": ["A"]}, "wait for itself"),
        ({"description": "a", "parent": "a"}, "serve itself"),
    ],
)
def test_goals_that_do_not_fit_are_refused(goal: dict[str, Any], said: str) -> None:
    with pytest.raises(GoalError, match=said):
        after({"goals": [goal]})


def few(strategy: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=most).map(tuple)


words = st.sampled_from(["Python", "python programming", "pasta", "C++", "web scraping", "errors"])
observations = st.builds(
    Observation,
    entities=few(
        st.builds(ObservedEntity, name=words, type=st.sampled_from(["topic", "concept", "file"]))
    ),
    goals=few(st.builds(ObservedGoal, description=words, parent=st.none() | words)),
    goal_changes=few(st.builds(GoalChange, goal=words, status=st.just(GoalStatus.COMPLETED)), 1),
    attention_items=few(
        st.builds(
            ObservedAttention,
            type=st.sampled_from(AttentionType),
            description=words,
            ttl=st.none() | st.integers(1, 3),
        )
    ),
    unknowns=few(words),
    resolved=few(words, 1),
    event=st.none()
    | st.builds(ObservedEvent, type=st.sampled_from(TransitionType), description=words),
)


@given(st.lists(observations, max_size=8), st.booleans())
def test_going_on_from_the_json_at_any_step_ends_in_the_same_state(
    said: list[Observation], by_meaning: bool
) -> None:
    embedder = HashEmbedder() if by_meaning else None
    resolver = NameResolver(embedder=embedder)
    continuous = restored = NEW
    for observation in said:
        before = continuous.model_dump_json()
        outcomes: list[AwarenessState | str] = []
        for state, used in (
            (continuous, resolver),
            (load_state(restored.model_dump_json()), NameResolver(embedder=embedder)),
        ):
            try:
                outcomes.append(updated(state, observation, NOW, resolver=used))
            except AwarenessError as error:
                outcomes.append(str(error))
        assert continuous.model_dump_json() == before
        assert outcomes[0] == outcomes[1]
        if isinstance(outcomes[0], AwarenessState) and isinstance(outcomes[1], AwarenessState):
            continuous, restored = outcomes[0], outcomes[1]
    assert continuous.model_dump_json() == restored.model_dump_json()
