"""A talk: what is progress, a pivot, a callback, a mood and a goal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from coag.awareness import AwarenessEngine, AwarenessState, ConversationAdapter, GoalSource
from coag.errors import ObservationError
from coag.schema import SteppingClock


def after(*turns: Mapping[str, object]) -> AwarenessState:
    engine = AwarenessEngine(ConversationAdapter(), clock=SteppingClock())
    for turn in turns:
        engine.step(turn)
    return engine.state


def on(*topics: str, **more: Any) -> dict[str, Any]:
    return {"topics": topics, **more}


def edge(source: str, type: str, target: str) -> list[dict[str, str]]:
    return [{"source": source, "type": type, "target": target}]


PYTHON, TEA, SCRAPER = on("Python"), on("tea"), on("web scraper")
WANTED = on("Python", goals=["Learn Python and write a web scraper"])
REACHED = {"completed": WANTED["goals"]}
CONCEPT = on("Python", entities=[{"name": "Python", "type": "concept"}])
ON_LISTS = on("lists", relationships=edge("lists", "builds_on", "python"))
ON_TEA = on("tea", relationships=edge("eggs", "refers_to", "Python"))


@pytest.mark.parametrize(
    ("turns", "type", "description"),
    [
        ([PYTHON], "progress", "Beginning: {'Python'}"),
        ([{"message": "hello"}], "progress", "Beginning"),
        ([PYTHON, on("tea", "pasta")], "pivot", "Pivoted from {'Python'} to {'tea', 'pasta'}"),
        ([PYTHON, on("Python", "tea")], "progress", "Continuing: {'Python', 'tea'}"),
        ([PYTHON, ON_LISTS], "progress", "Continuing: {'lists'}"),
        ([PYTHON, ON_TEA], "pivot", "Pivoted from {'Python'} to {'tea'}"),
        ([on("flights to Faro"), on("flight price")], "progress", "Continuing: {'flight price'}"),
        ([WANTED, SCRAPER], "progress", "Continuing: {'web scraper'}"),
        ([WANTED, REACHED, SCRAPER], "pivot", "Pivoted from {'Python'} to {'web scraper'}"),
        ([PYTHON, {"message": "thanks!"}], "progress", "Continuing: {'Python'}"),
        ([CONCEPT, PYTHON], "progress", "Continuing: {'Python'}"),
    ],
)
def test_a_message_is_a_pivot_if_no_topic_belongs_to_an_earlier_one(
    turns: list[dict[str, Any]], type: str, description: str
) -> None:
    last = after(*turns).trajectory.transitions[-1]
    assert (last.type.value, last.description) == (type, description)


@pytest.mark.parametrize("spelled", ["python", "Python's", "Python programming", "PYTHON!"])
def test_a_topic_is_known_by_another_spelling(spelled: str) -> None:
    state = after(PYTHON, on(spelled))
    assert state.trajectory.transitions[-1].type == "progress"
    assert len(state.world.entities) == 1


OK = {"message": "ok"}
ANGRY, FRUSTRATED, CONFUSED, GLAD = (
    {"sentiment": name} for name in ("angry", "frustrated", "confused", "positive")
)


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ([PYTHON], None),
        ([PYTHON, TEA], ("transition", "Topic shift: {'Python'} -> {'tea'}", 0.5)),
        (
            [PYTHON, {"references_previous": True}],
            ("opportunity", "Callback to earlier topic", 0.6),
        ),
        ([FRUSTRATED], ("threat", "User sentiment: frustrated", 0.8)),
        ([GLAD], ("opportunity", "User sentiment: positive", 0.3)),
        ([ANGRY, CONFUSED], ("threat", "User sentiment: confused", 0.7)),
        ([ANGRY, OK], ("threat", "User sentiment: angry", 0.9)),
        ([ANGRY, *[OK] * 5], None),
        ([ANGRY, GLAD, OK], None),
    ],
)
def test_shifts_callbacks_and_moods_need_attention_for_a_while(
    turns: list[dict[str, Any]], expected: tuple[str, str, float] | None
) -> None:
    items = after(*turns).attention.items
    found = [(item.type.value, item.description, item.urgency) for item in items]
    assert found == ([expected] if expected else [])


def test_a_return_to_a_left_topic_is_a_callback_even_if_nobody_says_so() -> None:
    state = after(on("Python", goals=["Learn Python"]), on("pasta"), PYTHON)
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
    assert [(one.source.value, one.priority, one.status.value) for one in state.goals.goals] == [
        ("explicit", 0.9, "active"),
        ("spawned", 0.7, "completed"),
        ("inferred", 0.6, "completed"),
        ("inferred", 0.6, "abandoned"),
    ]
    assert state.goals.goals[1].parent_id == state.goals.goals[0].id


def test_what_is_asked_about_in_three_steps_becomes_a_goal_once_unless_one_names_it() -> None:
    questions = [on("lists", questions=[f"Question {n}?"]) for n in range(5)]
    for first, expected in (({}, [("Understand lists", 4)]), ({"goals": ["Know Lists well"]}, [])):
        goals = after(first, *questions).goals.goals
        emergent = [one for one in goals if one.source is GoalSource.EMERGENT]
        assert [(one.description, one.created_step) for one in emergent] == expected


def test_an_entity_precedes_the_topic_of_its_name() -> None:
    ada = {"name": "Ada", "type": "person", "state": {"level": "beginner"}}
    entities = [{"name": "python", "type": "concept"}, ada]
    edges = edge("Ada", "interested_in", "Python")
    world = after(on("Python", "scraping", entities=entities, relationships=edges)).world
    expected = [("Python", "concept"), ("scraping", "topic"), ("Ada", "person")]
    assert [(one.name, one.type) for one in world.entities] == expected
    assert world.entities[2].state == {"level": "beginner"}
    assert world.relationships[0].type == "interested_in"


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (on("fine", " "), "topics[1]"),
        ({"sentiment": "furious"}, "sentiment"),
        ({"entities": [{"name": "x", "type": "spaceship"}]}, "entities[0].type"),
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
    state = after(on("pasta"), on("Python", "scraping"), {"message": "yes"})
    text = ConversationAdapter().format_for_injection(state, 500)
    assert "\nACTIVE TOPICS: Python, scraping\n" in text
    assert "\nKNOWN: pasta (topic)\n" in text
