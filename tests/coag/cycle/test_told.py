"""What is written into a trace again, and what only once."""

from __future__ import annotations

import random
from typing import Any

from coag.cycle.deps import SnapshotDeltas
from coag.schema import ActionSpec


def spec(parameters: dict[str, Any]) -> ActionSpec:
    return ActionSpec(name="move", description="Moves.", parameters=parameters)


def test_actions_are_told_once_and_again_when_they_change() -> None:
    told, schema = SnapshotDeltas(), {"type": "object", "properties": {"x": {"type": "integer"}}}
    assert told.new_actions([spec(schema)])
    assert not told.new_actions([spec(dict(schema))])
    assert told.new_actions([])
    assert not told.new_actions([])


def test_a_schema_that_its_owner_changes_in_place_is_told_again() -> None:
    told, offered = SnapshotDeltas(), spec({"type": "object", "properties": {}})
    assert told.new_actions([offered])
    offered.parameters["properties"]["x"] = {"type": "integer"}
    assert told.new_actions([offered])
    assert not told.new_actions([offered])


def test_even_that_there_are_no_actions_is_told() -> None:
    assert SnapshotDeltas().new_actions([])


def test_another_trace_is_told_everything_anew() -> None:
    told, source = SnapshotDeltas(), random.Random(7)

    def news() -> list[bool]:
        return [
            told.new_actions([spec({})]),
            told.new_procedures({"reasoning": 1}),
            told.new_random(source) is not None,
            told.new_environment({"stones": 1}),
        ]

    assert news() == [True] * 4
    assert news() == [False] * 4
    told.reset()
    assert news() == [True] * 4
