"""Steps of engines whose states hold little and much, how a state grows, and peak memory."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from typing import Any

from benchmarks._machine import peak
from coag.awareness import (
    AwarenessEngine,
    ConversationAdapter,
    DecaySettings,
    DynamicEngine,
    DynamicsSettings,
)
from coag.awareness.dynamics import decayed

from .checkpoints import in_memory_saver, put_and_get
from .talk import BUDGET, REPEATS, TURNS, WARM_UP, Row, medians, talked, timed, turn, with_many

MOST_GOALS = 10_000
"""A state with as many goals as things is measured up to here."""
ALL_STAY = DecaySettings(every=1, threshold=-100.0, most_entities=10**6, most_goals=10**6)


def stepping(engine: AwarenessEngine, first: int) -> dict[str, Row]:
    """Observe, update, inject, and a decay step in which all stay, of a running engine."""
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
    costs = {f"{TURNS} turns": stepping(talked(TURNS), TURNS)}
    for many in things:
        costs[f"{many:,} things"] = stepping(with_many(many, 100), TURNS)
        if many <= MOST_GOALS:
            costs[f"{many:,} things and as many goals"] = stepping(with_many(many, many), TURNS)
    return costs


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


PEAKS = ("nothing", "coag, decay", "coag, no decay", "coag, things", "LangGraph in RAM")
"""What is kept: a talk with and without decay, many things, a checkpoint of 50 turns each turn."""


async def grown(name: str, turns: int, things: int) -> float:
    """Megabytes that a contender adds to the peak of this process."""
    before = peak()
    if name == "coag, things":
        with_many(things, 100).inject(BUDGET)
    elif name == "LangGraph in RAM":
        if find_spec("langgraph") is not None:
            base, saver = import_module("langgraph.checkpoint.base"), in_memory_saver()
            before, plain = peak(), talked(TURNS).state.model_dump(mode="json")
            put, _ = put_and_get(base, saver, plain)
            for _ in range(turns):
                put()
    elif name != "nothing":
        on = DynamicsSettings.all_on() if name == "coag, decay" else DynamicsSettings()
        engine = DynamicEngine(ConversationAdapter(), on)
        for number in range(turns):
            await engine.step(turn(number), BUDGET)
    return peak() - before


def peaks(turns: int, things: int) -> dict[str, float]:
    """The memory of each contender, in a process of its own."""
    megabytes: dict[str, float] = {}
    for name in PEAKS:
        sizes = ["--turns", str(turns), "--things", str(things)]
        command = [sys.executable, "-m", "benchmarks.awareness", "--peak-of", name, *sizes]
        done = subprocess.run(command, capture_output=True, check=True)
        megabytes[name] = float(done.stdout)
    return megabytes
