from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.cycle._arguments import existence, parse_arguments
from coag.schema import ActionSpec, Candidate

MOVE = ActionSpec(
    name="move",
    description="Moves.",
    parameters={
        "type": "object",
        "properties": {
            "to": {"type": "string", "enum": ["north", "east"]},
            "n": {"type": "integer"},
        },
        "required": ["to"],
        "additionalProperties": False,
    },
)


def candidate(raw: str, action: str = "move") -> Candidate:
    return Candidate(id="c1", action=action, raw_arguments=raw)


def test_an_action_that_does_not_exist_dies_with_a_list_of_those_that_do() -> None:
    verdict = existence(candidate("{}", "fly"), {"move": MOVE})
    assert not verdict.allowed
    assert verdict.reason == "there is no action 'fly'; there are: move"


def test_the_reason_stays_short_however_many_actions_there_are() -> None:
    many = {f"tool_{n}": MOVE for n in range(5_000)}
    assert len(existence(candidate("{}", "fly" * 1_000), many).reason) == 1_000


def test_valid_arguments_are_parsed() -> None:
    arguments, verdict = parse_arguments(candidate('{"to": "north"}'), MOVE)
    assert verdict.allowed
    assert arguments == {"to": "north"}


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ("{", "no JSON object"),
        ('{"to": "\\ud800"}', "no JSON object"),
        ('{"n": NaN}', "no JSON object"),
        ("[1]", "must be a JSON object"),
        ("null", "must be a JSON object"),
        ('"north"', "must be a JSON object"),
        ("{}", "'to' is a required property"),
        ('{"to": "up"}', "to: 'up' is not one of"),
        ('{"to": "north", "n": "two"}', "n: 'two' is not of type 'integer'"),
        ('{"to": "north", "fast": true}', "'fast' was unexpected"),
        ("[" * 100_000, "no JSON object"),
        ('{"n": ' + "9" * 5_000 + "}", "no JSON object"),
        ('{"n": ' * 60 + "1" + "}" * 60, "more than 50 levels"),
    ],
)
def test_arguments_that_do_not_fit_die_with_the_reason(raw: str, why: str) -> None:
    arguments, verdict = parse_arguments(candidate(raw), MOVE)
    assert arguments is None
    assert not verdict.allowed
    assert why in verdict.reason


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_whatever_json_comes_only_objects_pass(value: Any) -> None:
    _, verdict = parse_arguments(candidate(json.dumps(value)), ActionSpec(name="a", description=""))
    assert verdict.allowed == isinstance(value, dict)


def test_an_action_whose_own_schema_is_broken_dies_with_that_reason() -> None:
    broken = ActionSpec(name="a", description="", parameters={"type": "nonsense"})
    _, verdict = parse_arguments(candidate("{}"), broken)
    assert not verdict.allowed


@pytest.mark.parametrize(
    "parameters",
    [
        {"$ref": "#"},
        {"$ref": "https://example.org/schema.json"},
        {"$ref": "file:///etc/hostname"},
        {"properties": {"n": {"pattern": "("}}},
        {"properties": {"n": {"$ref": "#/$defs/missing"}}},
    ],
)
def test_a_schema_that_cannot_be_checked_against_is_told_and_nothing_is_fetched(
    parameters: dict[str, Any],
) -> None:
    odd = ActionSpec(name="a", description="", parameters=parameters)
    arguments, verdict = parse_arguments(candidate('{"n": "x"}'), odd)
    assert arguments is None
    assert "the action's own schema is invalid" in verdict.reason
