"""Our agent in the Agent Framework's own samples, beside its own agent."""

from __future__ import annotations

import pytest

pytest.importorskip("agent_framework_orchestrations")

from benchmarks.maf import SAMPLES, turns


@pytest.mark.parametrize("name", SAMPLES)
async def test_a_sample_comes_out_as_with_the_frameworks_own_agent(name: str) -> None:
    ours, theirs = await SAMPLES[name]("coag"), await SAMPLES[name]("stock")
    assert ours == theirs
    assert ours


async def test_turns_of_both_are_measured() -> None:
    costs = await turns(3)
    assert {kind: list(marks) for kind, marks in costs.items()} == {"stock": [3], "coag": [3]}
