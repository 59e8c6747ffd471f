"""The whole action space: the agent's own actions stay its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.cycle import GuardedActions, with_defaults
from coag.cycle.actions import parse_arguments
from coag.schema import ActionCall, ActionResult, ActionSpec, Candidate, Phase

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


def test_an_action_with_a_broken_schema_is_rejected_with_that_reason() -> None:
    broken = ActionSpec(name="a", description="", parameters={"type": "nonsense"})
    assert not parse_arguments(candidate("{}"), broken)[1].allowed


# ---- the defaults of a JSON Schema ----

NESTED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "limit": {"type": "integer", "default": 500},
        "note": {"type": "string", "default": None},
        "free": {"type": ["string", "null"], "default": None},
        "box": {"$ref": "#/$defs/box", "default": {}},
        "boxes": {"type": "array", "items": {"$ref": "#/$defs/box"}},
        "either": {"anyOf": [{"$ref": "#/$defs/box"}, {"type": "null"}]},
        "unclear": {"anyOf": [{"$ref": "#/$defs/box"}, {"type": "object"}]},
        "more": {"type": "object", "additionalProperties": {"$ref": "#/$defs/box"}},
        "both": {"allOf": [{"$ref": "#/$defs/box"}, {"properties": {"z": {"default": 1}}}]},
    },
    "$defs": {
        "box": {
            "type": "object",
            "properties": {"size": {"default": 3}, "inner": {"$ref": "#/$defs/box"}},
        }
    },
}


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ({}, {}),
        ({"limit": 7}, {"limit": 7}),
        ({"box": {"inner": {}}}, {"box": {"size": 3, "inner": {"size": 3}}}),
        ({"boxes": [{}, {"size": 1}]}, {"boxes": [{"size": 3}, {"size": 1}]}),
        ({"either": {}}, {"either": {"size": 3}}),
        ({"either": None}, {"either": None}),
        ({"unclear": {}}, {"unclear": {}}),
        ({"more": {"a": {}}}, {"more": {"a": {"size": 3}}}),
        ({"both": {}}, {"both": {"size": 3, "z": 1}}),
    ],
)
def test_defaults_are_filled_in_wherever_the_schema_leaves_no_doubt(
    given: dict[str, Any], added: dict[str, Any]
) -> None:
    spec = NESTED
    filled = with_defaults(given, spec)  # a default of null is left out
    assert filled == {"limit": 500, "box": {"size": 3}, **added}
    assert with_defaults(filled, spec) == filled


@pytest.mark.parametrize("default", ["much", [1], {}])
def test_a_default_that_does_not_fit_its_own_schema_forbids(default: Any) -> None:
    parameters = {"type": "object", "properties": {"n": {"type": "integer", "default": default}}}
    spec = parameters
    with pytest.raises(ValueError, match="does not fit its own schema"):
        with_defaults({}, spec)
    assert with_defaults({"n": 1}, spec) == {"n": 1}


def test_a_default_that_holds_itself_ends() -> None:
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {"next": {"$ref": "#", "default": {}}},
    }
    spec = parameters
    assert with_defaults({}, spec)["next"]["next"]


# ---- The whole action space: the agent's own actions stay its own ----


class Space:
    """External actions with these names."""

    problems = ("One workbench is down.",)

    def __init__(self, *names: str) -> None:
        self.names = names

    async def specs(self) -> Sequence[ActionSpec]:
        return [ActionSpec(name=name, description="A tool.") for name in self.names]

    async def execute(self, call: ActionCall) -> ActionResult:
        return ActionResult(content=f"the tool ran {call.action}")


class Notes:
    """Brings internal actions with these names."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def action_specs(self) -> Sequence[ActionSpec]:
        return [ActionSpec(name=name, description="Notes.", internal=True) for name in self.names]

    async def run_action(self, call: ActionCall) -> ActionResult:
        return ActionResult(content=f"noted {call.action}")


async def run(actions: GuardedActions, name: str, text: str = "") -> ActionResult:
    actions.enter(Phase.EXECUTION)
    return await actions.execute(ActionCall(id="i1", action=name, arguments={"text": text}))


async def test_no_tool_takes_over_an_action_of_the_agents_own() -> None:
    actions = GuardedActions(Space("respond", "note", "look"), [Notes("note")])
    specs = await actions.specs()
    assert {name: spec.internal for name, spec in specs.items()} == {
        "look": False,
        "note": True,
        "respond": True,
    }
    assert (await run(actions, "note")).content == "noted note"
    assert (await run(actions, "respond", "Hello.")).ends_turn
    assert (await run(actions, "look")).content == "the tool ran look"


async def test_no_module_takes_over_the_answer() -> None:
    actions = GuardedActions(None, [Notes("respond")])
    assert (await run(actions, "respond", "Hello.")).content == "Hello."
