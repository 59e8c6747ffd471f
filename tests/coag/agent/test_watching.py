"""A further sink beside an agent's trace."""

from __future__ import annotations

from pathlib import Path

from coag import CoagAgent
from coag.models import ScriptedModel
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


async def test_a_watcher_that_left_is_told_nothing_more() -> None:
    agent, first, second = _agent(), MemoryTrace(), MemoryTrace()
    leave = agent.watch(first)
    agent.watch(second)
    leave()
    leave()
    await agent.run(task="Hello!")
    assert first.records == ()
    assert second.records == agent.trace
