"""The agents that are measured against each other."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from autogen_agentchat.agents import AssistantAgent

from coag import CoagAgent, CoagContext, LongTermMemory
from coag.schema import MemoryKind, Provenance, Trust
from coag.store import open_store

from ._model import InstantModel, count_stone, tokens_of

RECORDS = 50
"""Records of either kind in every CoagAgent's long-term memory, so that recall has work to do."""
TASK = "Count the stones in the yard, one after the other."
GOING_ON = "Continue."
BASELINE, FULL, WITHOUT_RECALL = "AssistantAgent", "coag full, RAM", "coag full, RAM, no recall"


@dataclass(slots=True)
class Contender:
    """An agent that is measured, and what was measured of it."""

    name: str
    agent: AssistantAgent | CoagAgent
    model: InstantModel
    taken: dict[int, tuple[float, float, float]] = field(
        default_factory=dict[int, tuple[float, float, float]]
    )
    """CPU and wall milliseconds and prompt tokens, by the number of the action."""

    async def act(self, number: int, *, measured: bool) -> None:
        """Lets the agent do one action; counting tokens is not part of what is timed."""
        self.model.sent.clear()
        wall, cpu = time.perf_counter(), time.process_time()
        await self.agent.run(task=TASK if number == 1 else GOING_ON)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        if measured:
            tokens = sum(tokens_of(message) for sent in self.model.sent for message in sent)
            self.taken[number] = (cpu * 1e3, wall * 1e3, tokens)

    def around(self, mark: int) -> list[float]:
        """The medians of each measure over the actions around a mark."""
        taken = [self.taken[number] for number in window(mark) if number in self.taken]
        return [median(values) for values in zip(*taken, strict=True)]

    async def close(self) -> None:
        """Ends the run; checks that recall, where it is on, was at work until the end."""
        if not isinstance(self.agent, CoagAgent):
            return
        retrieval = self.agent.context.working_memory.cognitive_state.retrieval
        if self.name != WITHOUT_RECALL and not (retrieval and retrieval.records):
            raise RuntimeError(f"{self.name!r} recalled nothing: this measures something else.")
        await self.agent.close()


def window(mark: int) -> range:
    """The actions whose median represents a mark."""
    half = min(20, mark // 2)
    return range(mark - half, mark + half + 1)


async def _fill(memory: LongTermMemory) -> None:
    """Gives a long-term memory something to recall."""
    origin = Provenance(
        run="", activity="", cycle=0, source="yard", source_kind="agent", trust=Trust.UNTRUSTED
    )
    for number in range(RECORDS):
        for kind in MemoryKind:
            text = f"Stone {number} lies {number * 7 % 31} steps from the gate of the yard."
            await memory.remember(kind, text, provenance=origin)


async def _coag(name: str, folder: Path | None = None, **settings: Any) -> Contender:
    """A CoagAgent with a filled memory, in RAM or in a folder with its log."""
    model = InstantModel()
    memory = LongTermMemory(
        open_store(None if folder is None else folder / "memory" / "long_term"), scope="coag"
    )
    await _fill(memory)
    places: dict[str, Any] = {"memory": memory}
    if folder is not None:
        await memory.close()
        places = {"memory": folder / "memory", "logs": folder / "logs"}
    agent = CoagAgent(
        "coag",
        model,
        tools=[count_stone],
        max_tool_iterations=1,
        **places,
        **settings,
        proposal="json",
    )
    return Contender(name, agent, model)


async def _assistant() -> Contender:
    """AutoGen's agent as it comes: one round of tools, the unbounded context."""
    model = InstantModel()
    return Contender(BASELINE, AssistantAgent("plain", model, tools=[count_stone]), model)


def contenders(folder: Path) -> dict[str, Callable[[], Awaitable[Contender]]]:
    """How to make each contender, by its name; those on disk keep their files in a folder."""

    def growing() -> Awaitable[Contender]:
        return _coag("coag full, growing, RAM", model_context=CoagContext(rendering="growing"))

    return {
        BASELINE: _assistant,
        FULL: lambda: _coag(FULL),
        WITHOUT_RECALL: lambda: _coag(WITHOUT_RECALL, recall_k=0),
        "coag full, growing, RAM": growing,
        "coag full, disk": lambda: _coag("coag full, disk", folder / "full"),
        "coag compact, RAM": lambda: _coag("coag compact, RAM", depth="compact"),
        "coag compact, disk": lambda: _coag(
            "coag compact, disk", folder / "compact", depth="compact"
        ),
    }
