"""Peak memory, in a process for each contender."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

from benchmarks._peak import peak
from coag.awareness import ConversationAdapter, DynamicEngine, DynamicsSettings

from ._langgraph import in_memory_saver, put_and_get
from ._talk import BUDGET, TURNS, talked, turn, with_many

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
    found: dict[str, float] = {}
    for name in PEAKS:
        sizes = ["--turns", str(turns), "--things", str(things)]
        asked = [sys.executable, "-m", "benchmarks.awareness", "--peak-of", name, *sizes]
        done = subprocess.run(asked, capture_output=True, check=True)
        found[name] = float(done.stdout)
    return found
