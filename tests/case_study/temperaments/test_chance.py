"""The model that draws its answers, as a control for models that are held to a schema."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from autogen_core.models import CreateResult, UserMessage
from autogen_core.tools import ToolSchema
from jsonschema import Draft202012Validator

from case_study.temperaments import CHANCE, drawn_value, is_scripted, reads_states, script_named
from coag.cycle import DeliberationAnswer, EvaluationAnswer, ProposalAnswer, SelectionAnswer
from coag.models import ScriptedRequest, strict_schema

ANSWERS = (DeliberationAnswer, EvaluationAnswer, ProposalAnswer, SelectionAnswer)
RANKING: Mapping[str, Any] = {
    "anyOf": [
        {
            "type": "object",
            "properties": {
                "best": {"type": "string", "enum": [best]},
                "second": {"type": "string", "enum": ["a", "b"]},
                "arguments": {"type": "string", "maxLength": 5},
            },
            "required": ["best", "second", "arguments"],
            "additionalProperties": False,
        }
        for best in ("move", "clean")
    ]
}
TOOL: ToolSchema = {
    "name": "move",
    "parameters": {
        "type": "object",
        "properties": {"direction": {"type": "string", "enum": ["north", "south"]}},
        "required": ["direction"],
    },
}


def _request(number: int = 1, **asked: Any) -> ScriptedRequest:
    said = UserMessage(content="What now?", source="user")
    return ScriptedRequest(messages=(said,), number=number, **asked)


@pytest.mark.parametrize("schema", [*map(strict_schema, ANSWERS), RANKING])
def test_what_is_drawn_is_what_the_schema_admits(schema: Mapping[str, Any]) -> None:
    validator = Draft202012Validator(dict(schema))

    for seed in range(50):
        value = drawn_value(schema, random.Random(seed))
        assert validator.is_valid(value)  # pyright: ignore[reportUnknownMemberType] - jsonschema is partly typed


def test_every_way_that_a_schema_admits_is_drawn_now_and_then() -> None:
    drawn = [drawn_value(RANKING, random.Random(seed)) for seed in range(50)]

    assert {value["best"] for value in drawn} == {"move", "clean"}
    assert {value["second"] for value in drawn} == {"a", "b"}


def test_the_same_request_and_seed_draw_the_same_answer_and_others_differ() -> None:
    def answers(seed: int) -> list[Any]:
        script = script_named(CHANCE, seed=seed)
        return [script(_request(number, schema=RANKING)) for number in range(1, 9)]

    assert answers(1) == answers(1)
    assert answers(1) != answers(2)
    assert len({str(answer) for answer in answers(1)}) > 1


def test_asked_for_tool_calls_it_calls_a_tool_or_ends_with_a_text() -> None:
    script = script_named(CHANCE)
    answers = [script(_request(number, tools=(TOOL,))) for number in range(1, 30)]

    calls = [answer for answer in answers if isinstance(answer, CreateResult)]
    texts = [answer for answer in answers if isinstance(answer, str)]
    assert calls
    assert texts
    assert {call.content[0].name for call in calls if isinstance(call.content, list)} == {"move"}
    assert script(_request()) == texts[0]


def test_it_is_scripted_but_reads_no_states() -> None:
    assert is_scripted("scripted:chance")
    assert not reads_states("scripted:chance")
    assert reads_states("scripted:sound")
    assert not reads_states("local#a-model")
