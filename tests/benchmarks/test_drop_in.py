"""What a turn costs, measured over conversations of any length that the command takes."""

from __future__ import annotations

import pytest

from benchmarks.drop_in import TOOL, growth, growth_when_full, marks_of
from benchmarks.overhead import NAMES, SITUATIONS, long_conversations


@pytest.mark.parametrize("turns", [11, 18])
async def test_a_short_conversation_is_measured_beside_a_young_one(turns: int) -> None:
    (situation,) = (one for one in SITUATIONS if one.title == TOOL)
    costs = await long_conversations(situation, marks_of(situation, turns), 1)
    for name in NAMES:
        assert growth(costs, name) > 0
        assert growth_when_full(costs, name) > 0
