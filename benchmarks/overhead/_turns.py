"""Whole turns of the same agent in several forms: contenders, situations, measurements."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from autogen_agentchat.agents import AssistantAgent, BaseChatAgent
from autogen_agentchat.teams import RoundRobinGroupChat

from coag import CoagAgent

from ._model import PlannedModel, count_stone

PLAIN = "AssistantAgent"
FORMS: Mapping[str, Mapping[str, Any]] = {
    "coag compact native": {"depth": "compact", "proposal": "native"},
    "coag full native": {"proposal": "native"},
    "coag full json": {"proposal": "json"},
}
"""How a `CoagAgent` deliberates, by the name of the contender."""
NAMES = (PLAIN, *FORMS)


def make_agent(
    name: str, model: PlannedModel, *, number: int = 0, **settings: Any
) -> BaseChatAgent:
    """A contender with one tool; everything else by default, memory and trace in RAM."""
    options: dict[str, Any] = {"tools": [count_stone], "max_tool_iterations": 1, **settings}
    if name == PLAIN:
        return AssistantAgent(f"agent_{number}", model, **options)
    return CoagAgent(f"agent_{number}", model, **options, **FORMS[name])


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What is measured of every contender."""

    title: str
    calls: bool = True
    """True if the model calls the tool as often as it may, else it answers in text."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further arguments of the agents."""
    team: bool = False
    """True if the agent is the only one of a `RoundRobinGroupChat` of one turn."""
    short: bool = False
    """True if the turns are expensive and show nothing new after the mark in the middle."""


SITUATIONS = (
    Situation(title="text only", calls=False),
    Situation(title="one tool call"),
    Situation(title="three tool iterations", settings={"max_tool_iterations": 3}, short=True),
    Situation(title="one tool call, in a RoundRobin team", team=True, short=True),
    Situation(
        title="text only, streamed in 20 chunks",
        calls=False,
        settings={"model_client_stream": True},
        short=True,
    ),
)


class Runner:
    """A contender in a situation: runs turn after turn of one long conversation."""

    def __init__(self, name: str, situation: Situation) -> None:
        self._model = PlannedModel(calls=situation.calls)
        self._agent = make_agent(name, self._model, **situation.settings)
        self._runs: Any = self._agent
        if situation.team:
            self._runs = RoundRobinGroupChat([self._agent], max_turns=1)
        self._streams = bool(situation.settings.get("model_client_stream"))
        self.name = name
        self.turns = 0
        """How many have been run."""

    async def turn(self) -> float:
        """One turn; milliseconds of CPU, all threads of the process."""
        self.turns += 1
        begun = time.process_time()
        if self._streams:
            async for _ in self._runs.run_stream(task="Continue."):
                pass
        else:
            await self._runs.run(task="Continue.")
        return (time.process_time() - begun) * 1e3

    async def save(self) -> tuple[float, Mapping[str, Any]]:
        """Saves the state: milliseconds of CPU, and the state."""
        begun = time.process_time()
        state = await self._runs.save_state()
        return (time.process_time() - begun) * 1e3, state

    async def close(self) -> None:
        """Releases what the agent holds."""
        close: Callable[[], Any] | None = getattr(self._agent, "close", None)
        if close is not None:
            await close()


@dataclass(frozen=True, slots=True)
class Crowd:
    """How many agents at once got on."""

    wall: float
    """Milliseconds until all had answered."""
    gap: float
    """The longest that the event loop did not turn, in milliseconds of wall clock."""
    cpu_gap: float
    """The most CPU that was used meanwhile in this thread: others' work is not in it."""


async def crowd(name: str, agents: int, latency: float) -> Crowd:
    """One turn with a tool call of many agents at the same time, watched from the same loop."""
    models = [PlannedModel(calls=True, latency=latency) for _ in range(agents)]
    all_of_them = [make_agent(name, model, number=n) for n, model in enumerate(models)]
    gaps: list[tuple[float, float]] = []
    gc.collect()
    gc.freeze()  # a full collection of what the benchmark holds would hit the contender at work
    watching = asyncio.create_task(_watch(gaps))
    await asyncio.sleep(0)
    begun = time.perf_counter()
    await asyncio.gather(*(agent.run(task="Continue.") for agent in all_of_them))
    wall = time.perf_counter() - begun
    watching.cancel()
    await asyncio.wait([watching])
    gc.unfreeze()
    return Crowd(wall * 1e3, max(gap for gap, _ in gaps) * 1e3, max(cpu for _, cpu in gaps) * 1e3)


async def _watch(gaps: list[tuple[float, float]]) -> None:
    """Takes down how long the loop needed each time to come back here."""
    while True:
        wall, cpu = time.perf_counter(), time.thread_time()
        await asyncio.sleep(0)
        gaps.append((time.perf_counter() - wall, time.thread_time() - cpu))
