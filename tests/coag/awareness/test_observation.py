"""An observation says where it is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from coag.awareness import GoalSource, GoalStatus, Observation, TransitionType
from coag.errors import ObservationError


def test_an_observation_may_be_empty() -> None:
    assert Observation.parse({}) == Observation()


def test_words_become_the_types_of_the_schema() -> None:
    seen = Observation.parse(
        {
            "entities": [{"name": "Python", "type": "concept", "state": {"level": 2}}],
            "goals": [{"description": "Learn", "source": "inferred"}],
            "goal_changes": [{"goal": "Learn", "status": "completed"}],
            "event": {"type": "external_event", "description": "rain"},
        }
    )
    assert seen.entities[0].state == {"level": 2}
    assert seen.goals[0].source is GoalSource.INFERRED
    assert seen.goal_changes[0].status is GoalStatus.COMPLETED
    assert seen.event
    assert seen.event.type is TransitionType.EXTERNAL_EVENT


@pytest.mark.parametrize(
    ("given", "path", "said"),
    [
        ({"moods": []}, "moods", "not permitted"),
        ({"entities": [{"name": "a"}]}, "entities[0].type", "required"),
        ({"entities": [{"name": " ", "type": "t"}]}, "entities[0].name", "say something"),
        ({"goals": [{"description": "a", "priority": 2}]}, "goals[0].priority", "given 2"),
        ({"goals": [{"description": "a", "source": "me"}]}, "goals[0].source", "'explicit'"),
        (
            {"attention_items": [{"type": "threat", "description": "a", "ttl": 0}]},
            "attention_items[0].ttl",
            "greater than 0, given 0",
        ),
        ({"spent": [{"resource": "a", "amount": -1}]}, "spent[0].amount", "given -1"),
        ({"unknowns": "why"}, "unknowns", "tuple"),
    ],
)
def test_a_wrong_observation_is_refused_with_its_path(
    given: dict[str, Any], path: str, said: str
) -> None:
    with pytest.raises(ObservationError) as caught:
        Observation.parse(given)
    assert caught.value.path == path
    assert f"at {path}: " in str(caught.value)
    assert said in str(caught.value)


def test_everything_that_is_wrong_is_named_by_its_place() -> None:
    with pytest.raises(ObservationError, match=r"Also wrong: event\.type, b\."):
        Observation.parse({"unknowns": [1], "event": {"type": "x", "description": "y"}, "b": 1})


def test_a_long_wrong_value_is_shown_short() -> None:
    with pytest.raises(ObservationError) as caught:
        Observation.parse({"unknowns": "x" * 10_000})
    assert len(str(caught.value)) < 300


def test_text_that_cannot_be_written_is_mended() -> None:
    assert Observation.parse({"unknowns": ["why \ud800"]}).unknowns == ("why ?",)
