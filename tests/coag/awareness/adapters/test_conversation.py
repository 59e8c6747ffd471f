from collections.abc import Mapping

import pytest

from coag.awareness import (
    AttentionType,
    AwarenessEngine,
    AwarenessState,
    ConversationAdapter,
    GoalSource,
    GoalStatus,
    TransitionType,
)
from coag.errors import ObservationError
from coag.schema import SteppingClock


def _after(*turns: Mapping[str, object]) -> AwarenessState:
    engine = AwarenessEngine(ConversationAdapter(), clock=SteppingClock())
    for turn in turns:
        engine.step(turn)
    return engine.state


def _last_event(state: AwarenessState) -> tuple[TransitionType, str]:
    last = state.trajectory.transitions[-1]
    return last.type, last.description


def _attention(state: AwarenessState) -> list[tuple[AttentionType, str]]:
    return [(item.type, item.description) for item in state.attention.items]


def test_first_topics_are_a_beginning_and_no_pivot() -> None:
    state = _after({"topics": ["Python"]})
    assert _last_event(state) == (TransitionType.PROGRESS, "Beginning: {'Python'}")
    assert _attention(state) == []


def test_a_message_without_any_old_topic_is_a_pivot_and_needs_attention() -> None:
    state = _after({"topics": ["Python"]}, {"topics": ["cooking", "pasta"]})
    assert _last_event(state) == (
        TransitionType.PIVOT,
        "Pivoted from {'Python'} to {'cooking', 'pasta'}",
    )
    assert _attention(state) == [
        (AttentionType.TRANSITION, "Topic shift: {'Python'} -> {'cooking', 'pasta'}")
    ]


def test_one_old_topic_among_new_ones_is_progress() -> None:
    state = _after({"topics": ["Python"]}, {"topics": ["Python", "scraping"]})
    assert _last_event(state) == (TransitionType.PROGRESS, "Continuing: {'Python', 'scraping'}")


def test_a_topic_that_the_message_joins_to_an_earlier_one_is_progress() -> None:
    joined = {"source": "decorators", "type": "builds_on", "target": "python"}
    state = _after({"topics": ["Python"]}, {"topics": ["decorators"], "relationships": [joined]})
    assert _last_event(state) == (TransitionType.PROGRESS, "Continuing: {'decorators'}")
    assert _attention(state) == []


def test_a_detail_of_the_last_topic_is_progress() -> None:
    state = _after({"topics": ["flights to Faro"]}, {"topics": ["flight price"]})
    assert _last_event(state) == (TransitionType.PROGRESS, "Continuing: {'flight price'}")


def test_edges_between_other_things_join_no_topic() -> None:
    apart = {"source": "eggs", "type": "refers_to", "target": "Python"}
    state = _after({"topics": ["Python"]}, {"topics": ["cooking"], "relationships": [apart]})
    assert _last_event(state)[0] is TransitionType.PIVOT


def test_a_topic_that_an_open_goal_names_is_progress_until_the_goal_ends() -> None:
    begun = {"topics": ["Python"], "goals": ["Learn Python and write a web scraper"]}
    state = _after(begun, {"topics": ["web scraper"]})
    assert _last_event(state)[0] is TransitionType.PROGRESS
    state = _after(begun, {"completed": begun["goals"]}, {"topics": ["web scraper"]})
    assert _last_event(state)[0] is TransitionType.PIVOT


@pytest.mark.parametrize("spelled", ["python", "Python's", "Python programming", "PYTHON!"])
def test_a_topic_is_known_by_another_spelling(spelled: str) -> None:
    state = _after({"topics": ["Python"]}, {"topics": [spelled]})
    assert _last_event(state)[0] is TransitionType.PROGRESS
    assert len(state.world.entities) == 1


def test_a_message_without_topics_goes_on_with_the_last_ones() -> None:
    state = _after({"topics": ["Python"]}, {"message": "thanks!"})
    assert _last_event(state) == (TransitionType.PROGRESS, "Continuing: {'Python'}")


def test_a_message_before_any_topic_is_progress() -> None:
    assert _last_event(_after({"message": "hello"})) == (TransitionType.PROGRESS, "Beginning")


def test_nothing_said_is_no_event() -> None:
    assert _after({}).trajectory.transitions == ()


def test_goals_stay_active_when_the_subject_changes() -> None:
    state = _after({"topics": ["Python"], "goals": ["Learn Python"]}, {"topics": ["pasta"]})
    assert [goal.description for goal in state.goals.active_goals] == ["Learn Python"]


def test_a_reference_to_earlier_is_an_opportunity() -> None:
    state = _after({"topics": ["Python"]}, {"references_previous": True})
    assert _attention(state) == [(AttentionType.OPPORTUNITY, "Callback to earlier topic")]


def test_a_return_to_a_left_topic_is_an_opportunity_even_if_nobody_says_so() -> None:
    state = _after({"topics": ["Python"]}, {"topics": ["pasta"]}, {"topics": ["Python"]})
    assert (AttentionType.OPPORTUNITY, "Callback to earlier topic: {'Python'}") in _attention(state)


def test_frustration_is_an_urgent_threat_and_joy_is_none() -> None:
    (item,) = _after({"sentiment": "frustrated"}).attention.items
    assert (item.type, item.urgency) == (AttentionType.THREAT, 0.8)
    (item,) = _after({"sentiment": "positive"}).attention.items
    assert (item.type, item.urgency) == (AttentionType.OPPORTUNITY, 0.3)


def test_a_new_mood_takes_the_place_of_the_last_one() -> None:
    state = _after({"sentiment": "angry"}, {"sentiment": "confused"})
    assert _attention(state) == [(AttentionType.THREAT, "User sentiment: confused")]
    state = _after({"sentiment": "angry"}, {"message": "ok"})
    assert _attention(state) == [(AttentionType.THREAT, "User sentiment: angry")]


def test_joy_ends_the_worry_and_passes_at_once() -> None:
    state = _after({"sentiment": "angry"}, {"sentiment": "positive"})
    assert _attention(state) == [(AttentionType.OPPORTUNITY, "User sentiment: positive")]
    state = _after({"sentiment": "angry"}, {"sentiment": "positive"}, {"message": "ok"})
    assert _attention(state) == []


def test_attention_passes_when_its_cause_is_some_steps_past() -> None:
    assert _after({"sentiment": "angry"}, *[{"message": "ok"}] * 5).attention.items == ()


def test_a_stated_goal_is_explicit_and_a_question_is_one_to_answer_it() -> None:
    state = _after({"goals": ["Learn Python"], "questions": ["What is a list?"]})
    assert [(goal.source, goal.description, goal.priority) for goal in state.goals.goals] == [
        (GoalSource.EXPLICIT, "Learn Python", 0.7),
        (GoalSource.INFERRED, "Answer: What is a list?", 0.6),
    ]


def test_goals_have_parents_and_criteria_and_end() -> None:
    state = _after(
        {
            "goals": [
                {"description": "Learn Python", "priority": 0.9},
                {"description": "Write a loop", "parent": "Learn Python"},
            ],
            "questions": ["What is a list?", "Why Python?"],
        },
        {
            "completed": ["Write a loop"],
            "answered": ["What is a list?"],
            "abandoned": ["Answer: Why Python?"],
        },
    )
    learn, write, what, why = state.goals.goals
    assert (write.parent_id, write.source) == (learn.id, GoalSource.SPAWNED)
    assert [goal.status for goal in (learn, write, what, why)] == [
        GoalStatus.ACTIVE,
        GoalStatus.COMPLETED,
        GoalStatus.COMPLETED,
        GoalStatus.ABANDONED,
    ]


def test_what_is_asked_about_in_three_steps_becomes_a_goal_once() -> None:
    asked = [{"topics": ["lists"], "questions": [f"Question {n}?"]} for n in range(5)]
    state = _after(*asked)
    emergent = [goal for goal in state.goals.goals if goal.source is GoalSource.EMERGENT]
    assert [(goal.description, goal.created_step) for goal in emergent] == [("Understand lists", 3)]


def test_what_a_stated_goal_names_is_no_implicit_goal() -> None:
    asked = [{"topics": ["lists"], "questions": [f"Question {n}?"]} for n in range(4)]
    state = _after({"goals": ["Understand Lists well"]}, *asked)
    assert all(goal.source is not GoalSource.EMERGENT for goal in state.goals.goals)


def test_an_entity_goes_before_the_topic_of_its_name() -> None:
    state = _after(
        {
            "topics": ["Python", "scraping"],
            "entities": [
                {"name": "python", "type": "concept"},
                {"name": "Ada", "type": "person", "state": {"level": "beginner"}},
            ],
            "relationships": [{"source": "Ada", "type": "interested_in", "target": "Python"}],
        }
    )
    assert [(one.name, one.type) for one in state.world.entities] == [
        ("Python", "concept"),
        ("scraping", "topic"),
        ("Ada", "person"),
    ]
    assert state.world.entities[2].state == {"level": "beginner"}
    assert state.world.relationships[0].type == "interested_in"


def test_a_topic_that_is_a_concept_still_counts_as_a_topic() -> None:
    python = {"topics": ["Python"], "entities": [{"name": "Python", "type": "concept"}]}
    assert _last_event(_after(python, {"topics": ["Python"]}))[0] is TransitionType.PROGRESS


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ({"topics": ["fine", " "]}, "topics[1]"),
        ({"sentiment": "furious"}, "sentiment"),
        ({"entities": [{"name": "x", "type": "spaceship"}]}, "entities[0].type"),
        ({"goals": [{"description": "x", "priority": 2}]}, "goals[0].priority"),
        ({"mood": "good"}, "mood"),
    ],
)
def test_a_wrong_analysis_is_refused_with_its_place_and_changes_nothing(
    raw: dict[str, object], path: str
) -> None:
    engine = AwarenessEngine(ConversationAdapter(), clock=SteppingClock())
    engine.step({"topics": ["Python"]})
    before = engine.state
    with pytest.raises(ObservationError) as caught:
        engine.step(raw)
    assert caught.value.path == path
    assert engine.state is before


def test_the_domain_has_the_types_and_patterns_of_the_paper() -> None:
    adapter = ConversationAdapter()
    assert len(adapter.define_entity_types()) == 6
    assert len(adapter.define_relationship_types()) == 7
    assert [pattern.name for pattern in adapter.define_scan_patterns()] == [
        "topic shift",
        "emotional escalation",
        "callback opportunity",
        "implicit goal",
    ]


def test_active_topics_are_those_of_the_last_message_that_had_any() -> None:
    state = _after({"topics": ["pasta"]}, {"topics": ["Python", "scraping"]}, {"message": "yes"})
    text = ConversationAdapter().format_for_injection(state, 500)
    assert "\nACTIVE TOPICS: Python, scraping\n" in text
    assert "\nKNOWN: pasta (topic)\n" in text
