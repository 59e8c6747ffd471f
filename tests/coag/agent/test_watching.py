"""A further sink beside an agent's trace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from coag import CoagAgent
from coag.models import ScriptedModel
from coag.schema import TraceRecord
from coag.tracing import MemoryTrace


def _agent(logs: Path | None = None) -> CoagAgent:
    answer = {"action": "respond", "arguments": {"text": "Hello."}, "score": 1.0}
    model = ScriptedModel(lambda _: {"situation": "A greeting.", "candidates": [answer]})
    return CoagAgent("greeter", model, depth="compact", proposal="json", logs=logs)


async def test_a_watcher_is_told_of_every_record_that_the_trace_has() -> None:
    agent, watcher = _agent(), MemoryTrace()
    agent.watch(watcher)
    await agent.run(task="Hello!")
    assert watcher.records == agent.trace


async def test_a_watcher_is_told_with_a_run_folder_too(tmp_path: Path) -> None:
    agent, watcher = _agent(tmp_path), MemoryTrace()
    agent.watch(watcher)
    await agent.run(task="Hello!")
    assert [one.record for one in watcher.records] == [one.record for one in agent.trace]
    await agent.close()


async def test_a_watcher_that_left_is_told_nothing_more() -> None:
    agent, first, second = _agent(), MemoryTrace(), MemoryTrace()
    leave = agent.watch(first)
    agent.watch(second)
    leave()
    leave()
    await agent.run(task="Hello!")
    assert first.records == ()
    assert second.records == agent.trace


async def test_a_watcher_that_makes_nothing_of_late_records_costs_none() -> None:
    class Careless(MemoryTrace):
        def write(self, record: TraceRecord) -> None:
            assert record.record != "snapshot"

        def write_later(self, make: Callable[[], TraceRecord]) -> None:
            del make

    agent = _agent()
    agent.watch(Careless())
    await agent.run(task="Hello!")
