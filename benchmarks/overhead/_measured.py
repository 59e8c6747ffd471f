"""What turns cost around a mark, and what an agent weighs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median, quantiles
from typing import Any

from benchmarks._machine import peak

from ._turns import NAMES, Runner, Situation

STATE_SAVED = 5
"""Times that a state is saved, for the median."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The middle half of what was measured."""

    median: float
    low: float
    """The first quartile."""
    high: float
    """The third quartile."""

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of some values."""
        low, _, high = quantiles(values, n=4, method="inclusive")
        return cls(median(values), low, high)


YOUNG = range(6, 16)
"""Turns of a conversation that show what a young one costs."""
WINDOW = 20
"""Turns before a mark and after it that represent it."""


def around(mark: int, turns: int) -> range:
    """The turns whose spread represents a mark."""
    half = min(5, mark // 2) if mark < YOUNG.stop else WINDOW
    return range(mark - half, min(turns, mark + half) + 1)


async def long_conversations(
    situation: Situation, marks: Sequence[int], repeats: int
) -> dict[str, Any]:
    """What turns of every contender cost around each mark, all taking turns; and their states.

    Around the last mark, conversations that have just begun take turns with the long ones: what
    an old one costs more is then not the machine's doing.
    """
    turns = marks[-1]
    taken = {name: {mark: list[float]() for mark in marks} for name in NAMES}
    young = {name: list[float]() for name in NAMES}
    states: dict[str, dict[str, float]] = {}
    for _ in range(repeats):
        runners = [Runner(name, situation) for name in NAMES]
        fresh: list[Runner] = []
        for number in range(1, turns + 1):
            at = [mark for mark in marks if number in around(mark, turns)]
            if number == max(1, turns - WINDOW):
                fresh = [Runner(name, situation) for name in NAMES]
            for runner in runners:
                cpu = await runner.turn()
                for mark in at:
                    taken[runner.name][mark].append(cpu)
            for runner in fresh:
                cpu = await runner.turn()
                if runner.turns in YOUNG:
                    young[runner.name].append(cpu)
        for runner in runners:
            states[runner.name] = await _weigh_state(runner)
        for runner in (*runners, *fresh):
            await runner.close()
    cpu = {
        name: {mark: asdict(Spread.of(values)) for mark, values in by_mark.items()}
        for name, by_mark in taken.items()
    }
    beside = {name: asdict(Spread.of(values)) for name, values in young.items() if values}
    return {"cpu": cpu, "young": beside, "states": states}


async def _weigh_state(runner: Runner) -> dict[str, float]:
    saved = [await runner.save() for _ in range(STATE_SAVED)]
    return {
        "cpu": median(cpu for cpu, _ in saved),
        "bytes": len(json.dumps(saved[-1][1]).encode()),
    }


async def memory_of(name: str, situation: Situation, turns: int) -> Mapping[str, float]:
    """Megabytes of this process at its peak that are owed to a contender's conversation."""
    warm = Runner(name, situation)
    for _ in range(3):
        await warm.turn()
    before = peak()
    runner = Runner(name, situation)
    for _ in range(turns):
        await runner.turn()
    return {"before": before, "grown": peak() - before}
