"""A talk: what is progress, a pivot, a callback, a mood and a goal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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

PROGRESS, PIVOT = TransitionType.PROGRESS, TransitionType.PIVOT
PYTHON: dict[str, Any] = {"topics": ["Python"]}
SCRAPER = {"topics": ["Python"], "goals": ["Learn Python and write a web scraper"]}


def after(*turns: Mapping[str, object]) -> AwarenessState:
    engine = AwarenessEngine(ConversationAdapter(), clock=SteppingClock())
    for turn in turns:
        engine.step(turn)
    return engine.state


def edge(source: str, type: str, target: str) -> list[dict[str, str]]:
    return [{"source": source, "type": type, "target": target}]


@pytest.mark.parametrize(
    ("turns", "type", "description"),
    [
        ([PYTHON], PROGRESS, "Beginning: {'Python'}"),
        ([{"message": "hello"}], PROGRESS, "Beginning"),
        (
            [PYTHON, {"topics": ["cooking", "pasta"]}],
            PIVOT,
            "Pivoted from {'Python'} to {'cooking', 'pasta'}",
        ),
        ([PYTHON, {"topics": ["Python", "tea"]}], PROGRESS, "Continuing: {'Python', 'tea'}"),
        (
            [
                PYTHON,
                {"topics": ["lists"], "relationships": edge("lists", "builds_on", "python")},
            ],
            PROGRESS,
            "Continuing: {'lists'}",
        ),
        (
            [PYTHON, {"topics": ["tea"], "relationships": edge("eggs", "refers_to", "Python")}],
            PIVOT,
            "Pivoted from {'Python'} to {'tea'}",
        ),
        (
            [{"topics": ["flights to Faro"]}, {"topics": ["flight price"]}],
            PROGRESS,
            "Continuing: {'flight price'}",
        ),
        ([SCRAPER, {"topics": ["web scraper"]}], PROGRESS, "Continuing: {'web scraper'}"),
        (
            [SCRAPER, {"completed": SCRAPER["goals"]}, {"topics": ["web scraper"]}],
            PIVOT,
            "Pivoted from {'Python'} to {'web scraper'}",
        ),
        ([PYTHON, {"message": "thanks!"}], PROGRESS, "Continuing: {'Python'}"),
        (
            [{**PYTHON, "entities": [{"name": "Python", "type": "concept"}]}, PYTHON],
            PROGRESS,
            "Continuing: {'Python'}",
        ),
    ],
)
def test_a_message_is_a_pivot_if_no_topic_belongs_to_an_earlier_one(
    turns: list[dict[str, Any]], type: TransitionType, description: str
) -> None:
    last = after(*turns).trajectory.transitions[-1]
    assert (last.type, last.description) == (type, description)


@pytest.mark.parametrize("spelled", ["python", "Python's", "Python programming", "PYTHON!"])
def test_a_topic_is_known_by_another_spelling(spelled: str) -> None:
    state = after(PYTHON, {"topics": [spelled]})
    assert state.trajectory.transitions[-1].type is PROGRESS
    assert len(state.world.entities) == 1


def mood(name: str) -> dict[str, str]:
    return {"sentiment": name}


OK = {"message": "ok"}
CALLBACK = (AttentionType.OPPORTUNITY, "Callback to earlier topic", 0.6)


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ([PYTHON], []),
        (
            [PYTHON, {"topics": ["tea"]}],
            [(AttentionType.TRANSITION, "Topic shift: {'Python'} -> {'tea'}", 0.5)],
        ),
        ([PYTHON, {"references_previous": True}], [CALLBACK]),
        ([mood("frustrated")], [(AttentionType.THREAT, "User sentiment: frustrated", 0.8)]),
        ([mood("positive")], [(AttentionType.OPPORTUNITY, "User sentiment: positive", 0.3)]),
        (
            [mood("angry"), mood("confused")],
            [(AttentionType.THREAT, "User sentiment: confused", 0.7)],
        ),
        ([mood("angry"), OK], [(AttentionType.THREAT, "User sentiment: angry", 0.9)]),
        ([mood("angry"), *[OK] * 5], []),
        ([mood("angry"), mood("positive"), OK], []),
    ],
)
def test_shifts_callbacks_and_moods_need_attention_for_a_while(
    turns: list[dict[str, Any]], expected: list[tuple[AttentionType, str, float]]
) -> None:
    items = after(*turns).attention.items
    assert [(item.type, item.description, item.urgency) for item in items] == expected


def test_a_return_to_a_left_topic_is_a_callback_even_if_nobody_says_so() -> None:
    state = after({**PYTHON, "goals": ["Learn Python"]}, {"topics": ["pasta"]}, PYTHON)
    descriptions = [item.description for item in state.attention.items]
    assert "Callback to earlier topic: {'Python'}" in descriptions
    assert [goal.description for goal in state.goals.active_goals] == ["Learn Python"]


def test_goals_have_sources_parents_and_ends() -> None:
    state = after(
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
    assert [(one.source, one.priority, one.status) for one in state.goals.goals] == [
        (GoalSource.EXPLICIT, 0.9, GoalStatus.ACTIVE),
        (GoalSource.SPAWNED, 0.7, GoalStatus.COMPLETED),
        (GoalSource.INFERRED, 0.6, GoalStatus.COMPLETED),
        (GoalSource.INFERRED, 0.6, GoalStatus.ABANDONED),
    ]
    assert state.goals.goals[1].parent_id == state.goals.goals[0].id


def test_what_is_asked_about_in_three_steps_becomes_a_goal_once_unless_one_names_it() -> None:
    questions = [{"topics": ["lists"], "questions": [f"Question {n}?"]} for n in range(5)]
    for first, expected in (({}, [("Understand lists", 4)]), ({"goals": ["Know Lists well"]}, [])):
        goals = after(first, *questions).goals.goals
        emergent = [one for one in goals if one.source is GoalSource.EMERGENT]
        assert [(one.description, one.created_step) for one in emergent] == expected


def test_an_entity_precedes_the_topic_of_its_name() -> None:
    state = after(
        {
            "topics": ["Python", "scraping"],
            "entities": [
                {"name": "python", "type": "concept"},
                {"name": "Ada", "type": "person", "state": {"level": "beginner"}},
            ],
            "relationships": edge("Ada", "interested_in", "Python"),
        }
    )
    assert [(one.name, one.type) for one in state.world.entities] == [
        ("Python", "concept"),
        ("scraping", "topic"),
        ("Ada", "person"),
    ]
    assert state.world.entities[2].state == {"level": "beginner"}
    assert state.world.relationships[0].type == "interested_in"


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
def test_a_wrong_analysis_is_refused_with_its_place(raw: dict[str, object], path: str) -> None:
    with pytest.raises(ObservationError) as caught:
        after(PYTHON, raw)
    assert caught.value.path == path


def test_the_domain_has_the_types_and_patterns_of_the_paper() -> None:
    adapter = ConversationAdapter()
    assert len(adapter.define_entity_types()) == 6
    assert len(adapter.define_relationship_types()) == 7
    patterns = "topic shift, emotional escalation, callback opportunity, implicit goal"
    assert ", ".join(one.name for one in adapter.define_scan_patterns()) == patterns
    assert after({}).trajectory.transitions == ()


def test_active_topics_are_those_of_the_last_message_that_had_any() -> None:
    state = after({"topics": ["pasta"]}, {"topics": ["Python", "scraping"]}, {"message": "yes"})
    text = ConversationAdapter().format_for_injection(state, 500)
    assert "\nACTIVE TOPICS: Python, scraping\n" in text
    assert "\nKNOWN: pasta (topic)\n" in text
