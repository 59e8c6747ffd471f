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
    Observation,
    ObservedAttention,
    ObservedEntity,
    ObservedEvent,
    ObservedGoal,
    ObservedRelationship,
    TransitionType,
    load_state,
)
from coag.awareness.names import NameResolver
from coag.awareness.state import MergeReason
from coag.awareness.updating import updated
from coag.errors import AwarenessError, GoalError, ObservationError
from coag.store import HashEmbedder

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NEW = AwarenessState(domain="test", at=NOW)


def after(
    *raw: dict[str, Any], state: AwarenessState = NEW, settings: EngineSettings | None = None
) -> AwarenessState:
    resolver = NameResolver(settings)
    for one in raw:
        state = updated(state, Observation.parse(one), NOW, resolver=resolver)
    return state


def seen(*names: str, type: str = "topic", **more: Any) -> dict[str, Any]:
    return {"entities": [{"name": name, "type": type, **more} for name in names]}


def wants(description: str, **more: Any) -> dict[str, Any]:
    return {"goals": [{"description": description, **more}]}


def changed(goal: str, **change: Any) -> dict[str, Any]:
    return {"goal_changes": [{"goal": goal, **change}]}


def test_an_entity_is_added_then_updated() -> None:
    state = after(
        seen("Python", state={"level": "new", "age": 3}, affordances=["run"]),
        {},
        seen("python", type="concept", state={"level": "good"}, affordances=["run", "type"]),
    )
    (entity,) = state.world.entities
    assert (entity.name, entity.type) == ("Python", "topic")
    assert entity.state == {"level": "good", "age": 3}
    assert entity.affordances == ("run", "type")
    assert (entity.first_step, entity.last_step, entity.mentions) == (1, 3, 2)


def test_a_name_that_was_recognised_is_recorded_once() -> None:
    state = after(seen("Python"), seen("Python programming", "PYTHON"), seen("Python programming"))
    (entity,) = state.world.entities
    assert entity.aliases == ("Python programming", "PYTHON")
    merge = state.world.merges[0]
    assert (merge.name, merge.entity, merge.step) == ("Python programming", "Python", 2)
    assert merge.how is MergeReason.CONTAINED
    assert len(state.world.merges) == 2


def test_aliases_and_merges_are_bounded() -> None:
    names = [seen(name) for name in ("Café", "CAFE", "café", "Cafe", "cafe!")]
    for merges in (2, 0):
        settings = EngineSettings(kept_aliases=1, kept_merges=merges)
        world = after(*names, settings=settings).world
        assert world.entities[0].aliases == ("CAFE",)
        assert [merge.name for merge in world.merges] == ["Cafe", "cafe!"][: merges or 0]


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
    first = {"description": "Scrape", "parent": "learn", "depends_on": ["install"]}
    state = after({"goals": [first, {"description": "Install"}, {"description": "Learn"}]})
    scrape, install, learn = state.goals.goals
    assert (scrape.parent_id, scrape.depends_on) == (learn.id, (install.id,))
    assert scrape.status is GoalStatus.BLOCKED
    done = after(changed("INSTALL", status="completed", succeeded=True), state=state).goals
    assert done.find("scrape").status is GoalStatus.ACTIVE
    assert (done.find("install").outcomes.successes, done.find("install").closed_step) == (1, 2)


def test_a_goal_is_put_off_taken_up_weighed_and_abandoned_but_not_blocked() -> None:
    state = after(wants("a"), changed("a", status="deferred", priority=0.1))
    assert (state.goals.goals[0].status.value, state.goals.goals[0].priority) == ("deferred", 0.1)
    for status in ("active", "abandoned"):
        state = after(changed("a", status=status), state=state)
        assert state.goals.goals[0].status.value == status
    with pytest.raises(GoalError, match="cannot be set to blocked"):
        after(changed("a", status="blocked"), state=state)


def test_a_goal_that_is_open_is_not_made_twice_and_one_that_is_closed_is_made_again() -> None:
    state = after(wants("Learn Python", priority=0.4), wants("learn  python", priority=0.3))
    (goal,) = state.goals.goals
    assert (goal.priority, goal.updated_step) == (0.4, 2)
    state = after(changed(goal.id, status="completed"), wants("Learn Python"), state=state)
    assert [one.status for one in state.goals.goals] == [GoalStatus.COMPLETED, GoalStatus.ACTIVE]


def test_attention_expires_with_its_time_and_comes_from_the_domain() -> None:
    item = {"type": "threat", "description": "fire", "urgency": 0.9, "ttl": 2}
    state = after({"attention_items": [item]})
    assert (state.attention.items[0].source, state.attention.items[0].created_step) == ("test", 1)
    assert len(after({}, state=state).attention.items) == 1
    assert after({}, {}, state=state).attention.items == ()


def test_beliefs_are_stated_once_while_open_and_settled_by_their_words() -> None:
    raw = {"assumptions": ["it rains"], "unknowns": ["why", "WHY", "who"]}
    world = after(raw, raw, {"resolved": ["Why", "it  rains"]}, {"unknowns": ["why"]}).world
    assert [(one.text, one.step, one.resolved) for one in world.unknowns] == [
        ("why", 1, 3),
        ("who", 1, None),
        ("why", 4, None),
    ]
    assert world.open_assumptions == ()


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


@pytest.mark.parametrize(
    ("raw", "problem", "path"),
    [
        (wants("a", parent="nobody"), "'nobody'", None),
        (wants("a", depends_on=["nothing"]), "'nothing'", None),
        (wants("a", depends_on=["A"]), "wait for itself", None),
        (wants("a", parent="a"), "serve itself", None),
        ({"unknowns": ["who"], "resolved": ["who", "why"]}, "'why'", "resolved[1]"),
        ({"spent": [{"resource": "fuel", "amount": 1}]}, "'fuel'", "spent[0].resource"),
    ],
)
def test_what_does_not_fit_is_refused(raw: dict[str, Any], problem: str, path: str | None) -> None:
    with pytest.raises(AwarenessError, match=problem) as caught:
        after(raw)
    if path is not None:
        assert isinstance(caught.value, ObservationError)
        assert caught.value.path == path


def few(strategy: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=most).map(tuple)


WORDS = st.sampled_from(["Python", "python programming", "pasta", "C++", "web scraping", "errors"])
OBSERVATIONS = st.builds(
    Observation,
    entities=few(
        st.builds(ObservedEntity, name=WORDS, type=st.sampled_from(["topic", "concept", "file"]))
    ),
    relationships=few(
        st.builds(ObservedRelationship, source=WORDS, type=st.just("near"), target=WORDS)
    ),
    goals=few(
        st.builds(
            ObservedGoal,
            description=WORDS,
            parent=st.none() | WORDS,
            depends_on=few(WORDS, 1),
        )
    ),
    goal_changes=few(
        st.builds(
            GoalChange,
            goal=WORDS,
            status=st.sampled_from(["completed", "active", "deferred", "abandoned"]),
            priority=st.none() | st.floats(0, 1),
            succeeded=st.none() | st.booleans(),
        ),
        1,
    ),
    attention_items=few(
        st.builds(
            ObservedAttention,
            type=st.sampled_from(AttentionType),
            description=WORDS,
            ttl=st.none() | st.integers(1, 3),
        )
    ),
    assumptions=few(WORDS),
    unknowns=few(WORDS),
    resolved=few(WORDS, 1),
    event=st.none()
    | st.builds(ObservedEvent, type=st.sampled_from(TransitionType), description=WORDS),
)


@given(st.lists(OBSERVATIONS, max_size=8), st.booleans())
def test_going_on_from_the_json_at_any_step_ends_in_the_same_state(
    observations: list[Observation], by_meaning: bool
) -> None:
    embedder = HashEmbedder() if by_meaning else None
    reused = NameResolver(embedder=embedder)
    now = NEW
    for observation in observations:
        before = now.model_dump_json()
        results: list[AwarenessState | str] = []
        for state, resolver in (
            (now, reused),
            (load_state(before), NameResolver(embedder=embedder)),
        ):
            try:
                results.append(updated(state, observation, NOW, resolver=resolver))
            except AwarenessError as error:
                results.append(str(error))
        assert now.model_dump_json() == before
        assert results[0] == results[1]
        if isinstance(results[0], AwarenessState):
            now = results[0]
