"""How long advice takes in process, by the number of edges, and from the shell."""

from __future__ import annotations

import gc
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from coag.judgment import (
    START,
    Advising,
    Capability,
    CapabilityGraph,
    Judgment,
    advise,
    context_energy,
    places_by_index,
    reinforce,
)

from .manifest import TASKS, manifest

SHELL = "from the shell, beyond the interpreter's start"
DENSE, SPARSE = 317, 20_000
"""Capabilities of the large graphs: each leads to every other; each leads to five."""


def measure(repeats: int = 200) -> list[dict[str, Any]]:
    """A row for each graph: milliseconds, as medians of CPU time."""
    small = CapabilityGraph.from_manifest(manifest(0))
    rows = [_measured("45 capabilities, 249 edges", small, repeats)]
    rows.append(_measured(f"{DENSE} capabilities, each to all", _dense(), repeats))
    few = max(5, repeats // 10)
    rows.append(_measured(f"{SPARSE:,} capabilities, five each", _sparse(), few))
    return [*rows, _shell(few)]


def _shell(repeats: int) -> dict[str, Any]:
    """`coag judgment consult` as a process, less an interpreter that does nothing."""
    task = TASKS["research"][0]
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "judgment.json"
        Judgment(state).init(manifest(0))
        command = ("-m", "coag", "judgment", "consult", task, "--state", str(state))
        taken = {words: list[float]() for words in (("-c", "pass"), command)}
        for _ in range(repeats):
            for words, times in taken.items():
                times.append(_child(words))
    nothing, all_of_it = map(median, taken.values())
    return {"graph": SHELL, "edges": 249, "consult": all_of_it - nothing, "interpreter": nothing}


def _child(words: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _measured(name: str, graph: CapabilityGraph, repeats: int) -> dict[str, Any]:
    task, some = TASKS["research"][0], list(graph.capabilities)
    draw, places = random.Random(0), places_by_index(some)
    words = graph.relevance(task)
    return {
        "graph": name,
        "edges": len(graph.edges()) - len(some),
        "consult at the start": _median(
            lambda: advise(graph, START, Advising(context=graph.relevance(task)), k=5), repeats
        ),
        "consult within": _median(
            lambda: advise(graph, draw.choice(some), Advising(context=graph.relevance(task)), k=5),
            repeats,
        ),
        "field": _median(lambda: context_energy(words, places), repeats),
        "reinforce": _median(lambda: reinforce(graph, some[0], some[1], 0.7), repeats),
    }


def _median(of: Callable[[], object], repeats: int) -> float:
    of()
    gc.collect()
    gc.freeze()
    taken = list[float]()
    for _ in range(repeats):
        began = time.process_time_ns()
        of()
        taken.append((time.process_time_ns() - began) / 1e6)
    return median(taken)


def _dense() -> CapabilityGraph:
    return CapabilityGraph(_named(DENSE))


def _sparse() -> CapabilityGraph:
    names, draw = [one.name for one in _named(SPARSE)], random.Random(0)
    edges = [
        {"source": names[at], "target": names[(at + step) % SPARSE]}
        for at in range(SPARSE)
        for step in draw.sample(range(1, SPARSE), 5)
    ]
    listed = [{"name": one.name, "summary": one.summary} for one in _named(SPARSE)]
    return CapabilityGraph.from_manifest({"capabilities": listed, "edges": edges})


def _named(count: int) -> list[Capability]:
    known = manifest(0)["capabilities"]
    return [
        Capability(name=f"{known[n % 45]['name']}_{n}", summary=known[n % 45]["summary"])
        for n in range(count)
    ]
