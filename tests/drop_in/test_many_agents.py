"""Many agents at once: no cross-talk, no long gaps in the loop, nothing left behind."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Any

import pytest
from kits.drop_in import WAYS, add, calls_in, no_strays, pulse, results_in, run, way_name
from kits.planned import PlannedModel

from coag import CoagAgent

all_ways = pytest.mark.parametrize("way", WAYS, ids=way_name)
MANY = 50
GAP = 2.0
"""CPU seconds without a round of the loop: a turn that blocks it. How short gaps are in fact is
measured in benchmarks/drop_in.py; a loaded machine proves nothing here."""


@all_ways
async def test_fifty_agents_do_not_hear_each_other(way: dict[str, Any]) -> None:
    models = [PlannedModel(f"answer-{n}-end", seconds=0.01) for n in range(MANY)]
    agents = [CoagAgent(f"agent_{n}", model, **way) for n, model in enumerate(models)]
    begun = time.perf_counter()
    async with no_strays():
        results = await asyncio.gather(*(run(a, f"task-{n}-end") for n, a in enumerate(agents)))
    assert time.perf_counter() - begun < 60
    for n, (result, model) in enumerate(zip(results, models, strict=True)):
        assert result.messages[-1].to_text() == f"answer-{n}-end"
        assert f"task-{n}-end" in model.heard
        assert model.heard.count("task-") == model.heard.count(f"task-{n}-end")
        assert model.violations == []


async def test_fifty_agents_with_tools_leave_the_loop_free() -> None:
    async def turns(many: int = MANY) -> None:
        plan = [("add", {"a": 1, "b": 2}), ("add", {"a": 2, "b": 2})]
        models = [PlannedModel("FINAL", *plan, seconds=0.02) for _ in range(many)]
        agents = [CoagAgent(f"agent_{n}", m, tools=[add]) for n, m in enumerate(models)]
        await asyncio.gather(*(run(agent) for agent in agents))

    await turns(1)  # what is imported and worked out once
    gaps = [GAP]
    while min(gaps) >= GAP and len(gaps) < 3:  # the machine's own hiccups do not come twice
        gc.collect()
        async with pulse() as watch:
            await turns()
        gaps.append(watch.longest)
    assert min(gaps) < GAP


async def test_fifty_agents_get_the_results_of_their_own_tools() -> None:
    models = [PlannedModel("FINAL", ("add", {"a": n, "b": 1000})) for n in range(MANY)]
    settings: dict[str, Any] = {"tools": [add], "depth": "compact"}
    agents = [CoagAgent(f"agent_{n}", model, **settings) for n, model in enumerate(models)]
    results = await asyncio.gather(*(run(agent) for agent in agents))
    for n, result in enumerate(results):
        assert [r.content for r in results_in(result.messages)] == [str(1000 + n)]
        assert len({c.id for c in calls_in(result.messages)}) == 1
