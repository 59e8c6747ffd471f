"""What is written into a trace again, and what only once."""

from __future__ import annotations

import random
from typing import Any

from coag.cycle.deps import SnapshotDeltas
from coag.schema import ActionSpec


def spec(parameters: dict[str, Any]) -> ActionSpec:
    return ActionSpec(name="move", description="Moves.", parameters=parameters)


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
