"""Steps of engines whose states hold little and much, and how a state grows."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from coag.awareness import (
    AwarenessEngine,
    ConversationAdapter,
    DecaySettings,
    DynamicEngine,
    DynamicsSettings,
)
from coag.awareness.dynamics import decayed

from ._talk import BUDGET, TURNS, talked, turn, with_many
from ._timing import REPEATS, WARM_UP, Row, medians, timed

MOST_GOALS = 10_000
"""A state with as many goals as things is measured up to here."""
ALL_STAY = DecaySettings(every=1, threshold=-100.0, most_entities=10**6, most_goals=10**6)


def stepping(engine: AwarenessEngine, first: int) -> dict[str, Row]:
    """Observe, update, inject, and a decay step in which all stay, of an engine that goes on."""
    gc.freeze()
    taken: dict[str, list[tuple[float, float]]] = {}
    seen: list[Any] = []
    for number in range(first, first + WARM_UP + REPEATS):
        work: dict[str, Callable[[], object]] = {
            "observe": lambda number=number: seen.append(engine.observe(turn(number))),
            "update": lambda: engine.update(seen[-1]),
            "inject": lambda: engine.inject(BUDGET),
            "decay": lambda: decayed(engine.state, ALL_STAY),
        }
        for name, one in work.items():
            taken.setdefault(name, []).append(timed(one))
    return {name: medians(each[WARM_UP:]) for name, each in taken.items()}


def steps(things: Sequence[int]) -> dict[str, dict[str, Row]]:
    """The parts of a step by how much the state holds."""
    found = {f"{TURNS} turns": stepping(talked(TURNS), TURNS)}
    for many in things:
        found[f"{many:,} things"] = stepping(with_many(many, 100), TURNS)
        if many <= MOST_GOALS:
            found[f"{many:,} things and as many goals"] = stepping(with_many(many, many), TURNS)
    return found


async def growth(turns: int) -> dict[str, Any]:
    """Kilobytes of the state along a talk with decay on and off, and what its steps take."""
    settings = {"decay on": DynamicsSettings.all_on(), "decay off": DynamicsSettings()}
    marks = sorted({min(mark, turns) for mark in (TURNS, 300, turns)})
    found: dict[str, Any] = {}
    for name, chosen in settings.items():
        engine, sizes, taken = DynamicEngine(ConversationAdapter(), chosen), {}, list[float]()
        for number in range(turns):
            begun = time.process_time()
            await engine.step(turn(number), BUDGET)
            taken.append((time.process_time() - begun) * 1e3)
            if number + 1 in marks:
                size = len(engine.state.model_dump_json()) / 1e3
                sizes[str(number + 1)] = {"kB": size, "step": median(taken[-REPEATS:])}
        found[name] = sizes
    return found
