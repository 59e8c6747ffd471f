"""What it costs to write a run down, and to read and check it.

Writing: the same agent with its trace on disk (`logs=`), on disk without the pages for reading,
in RAM (the default), and with a trace that keeps nothing. One action is a whole cycle in a turn of
its own. They take turns in blocks of 50 actions (5 with latency). Pages are made in a thread, where
the run itself waits for something: wall time and the loop's CPU end with the last action of a
block, the CPU of all threads with its last page. Each number is the median of the blocks, and what
recording adds is the median of the differences between neighbours.

Reading: a run on disk of so many records, written by an agent; each way of reading it once.

    python benchmarks/tracing.py [--actions 1000] [--slow 60] [--records 100000] [--json]

The exit code is 0 whether the targets are met or not, because a loaded machine proves nothing.
"""

import argparse
import asyncio
import json
import logging
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from autogen_core import EVENT_LOGGER_NAME
from autogen_core.models import CreateResult
from overhead import TASK, InstantModel, count_stone

from benchmarks._machine import machine
from coag import CoagAgent
from coag.agent import runs as _runs  # nothing of the agent is replaced but where its records go
from coag.models import ModelRequest
from coag.proof import diagnose, verify
from coag.schema import TraceRecord
from coag.tracing import MemoryTrace, RunFolder, open_trace, read_lines, read_trace

NONE, RAM, DISK, BARE = "kept nowhere", "in RAM", "on disk", "on disk, no pages"
CONTENDERS = (NONE, RAM, BARE, DISK)
WALL, LOOP, ALL = "wall ms", "loop CPU", "all CPU"
MEASURES = (WALL, LOOP, ALL)
"""Wall clock, CPU of the thread of the event loop, and CPU of all threads."""
BLOCK, SLOW_BLOCK = 50, 5
"""Actions that a contender does before it is another's turn, without and with latency."""
SETTLED = 0.1
"""Seconds between two blocks, so that the pages of one are not made in the time of the next."""
ADDED_MS = 3.0
"""What recording on disk may add to a cycle without latency."""
ADDED_SHARE = 0.03
"""What it may add of a cycle whose model takes 100 ms."""
SECONDS = 10.0
"""What checking 100,000 records may take, and so may diagnosing them."""


class NoTrace(MemoryTrace):
    """Keeps no record."""

    def write(self, record: TraceRecord) -> None:
        """Forgets it."""

    def write_later(self, make: Callable[[], TraceRecord]) -> None:
        """Does not even make it."""


class SlowModel(InstantModel):
    """Answers after a while."""

    component_provider_override = "tracing.SlowModel"

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    async def answer(self, request: ModelRequest) -> CreateResult:
        """The same answer, later."""
        if self._seconds:
            await asyncio.sleep(self._seconds)
        self.sent.clear()
        return await super().answer(request)


def make_agent(logs: Path | None, seconds: float, depth: str) -> CoagAgent:
    """An agent that does one action a turn."""
    return CoagAgent(
        "counter",
        SlowModel(seconds),
        tools=[count_stone],
        logs=logs,
        depth=depth,  # pyright: ignore[reportArgumentType] - one of two words
        proposal="json",
        max_tool_iterations=1,
        recall_k=0,
    )


async def recorded(name: str, folder: Path, seconds: float, depth: str) -> CoagAgent:
    """A contender whose run has begun, so that its records go where its name says."""
    real_memory, real_open = _runs.MemoryTrace, _runs.open_trace
    if name == NONE:
        _runs.MemoryTrace = NoTrace
    if name == BARE:
        _runs.open_trace = without_pages
    try:
        agent = make_agent(folder if name in (DISK, BARE) else None, seconds, depth)
        await agent.run(task=TASK)
    finally:
        _runs.MemoryTrace, _runs.open_trace = real_memory, real_open
    return agent


def without_pages(folder: RunFolder, **options: Any) -> Any:
    """A run's trace that makes no pages for reading."""
    trace = open_trace(folder, **options)
    trace._pages = None  # pyright: ignore[reportPrivateUsage] - measured here, offered nowhere
    return trace


def unfinished(agent: CoagAgent) -> bool:
    """Whether pages of the agent's run are still to be made."""
    pages = getattr(agent.mind.trace.sink, "_pages", None)
    job = getattr(pages, "_job", None)
    return job is not None and not job.done()


def clocks() -> tuple[float, float, float]:
    """What is measured: see `MEASURES`."""
    return time.perf_counter(), time.thread_time(), time.process_time()


async def cycles(seconds: float, depth: str, actions: int) -> dict[str, list[list[float]]]:
    """Milliseconds an action, block by block, of every contender by each measure."""
    taken: dict[str, list[list[float]]] = {name: [] for name in CONTENDERS}
    block = SLOW_BLOCK if seconds else BLOCK
    with tempfile.TemporaryDirectory() as place:
        agents = {
            name: await recorded(name, Path(place) / str(at), seconds, depth)
            for at, name in enumerate(CONTENDERS)
        }
        for number in range(1 + max(2, actions // block)):
            first = number % len(CONTENDERS)
            for name in CONTENDERS[first:] + CONTENDERS[:first]:
                before = clocks()
                for _ in range(block):
                    await agents[name].run(task="Continue.")
                wall, loop, _ = clocks()
                while unfinished(agents[name]):  # noqa: ASYNC110 - a thread, which sets no event
                    await asyncio.sleep(SETTLED / 10)
                after = (wall, loop, time.process_time())
                each = [(b - a) * 1e3 / block for a, b in zip(before, after, strict=True)]
                if number:  # the first block is for imports and caches
                    taken[name].append(each)
                await asyncio.sleep(SETTLED)
        for agent in agents.values():
            await agent.close()
    return taken


def summary(taken: Mapping[str, Sequence[Sequence[float]]]) -> dict[str, dict[str, list[float]]]:
    """Per contender and measure: the median, and what it adds to keeping nothing (quartiles)."""
    figures: dict[str, dict[str, list[float]]] = {}
    for name, values in taken.items():
        figures[name] = {}
        for at, measure in enumerate(MEASURES):
            pairs = zip(values, taken[NONE], strict=True)
            low, middle, high = quantiles(
                [one[at] - other[at] for one, other in pairs], n=4, method="inclusive"
            )
            figures[name][measure] = [median(value[at] for value in values), middle, low, high]
    return figures


async def write_run(logs: Path, records: int) -> tuple[RunFolder, float]:
    """A run of at least so many records, and the seconds it took."""
    agent = make_agent(logs, 0.0, "full")
    begun = time.perf_counter()
    await agent.run(task=TASK)
    assert agent.run_folder is not None
    folder = RunFolder(agent.run_folder.path)
    per_turn = sum(1 for _ in read_trace(folder.trace_path, lambda problem: None))
    for _ in range(records // max(1, per_turn - 1) + 1):
        await agent.run(task="Continue.")
    seconds = time.perf_counter() - begun
    await agent.close()
    return folder, seconds


def reading(folder: RunFolder) -> dict[str, float]:
    """Seconds that each way of reading takes."""
    ways: dict[str, Callable[[], object]] = {
        "bytes only": lambda: sum(1 for _ in folder.trace_path.open("rb")),
        "read_trace (numbers and hashes checked)": lambda: sum(
            1 for _ in read_trace(folder.trace_path)
        ),
        "read_lines": lambda: sum(len(line.problems) for line in read_lines(folder.trace_path)),
        "verify": lambda: verify(folder.path),
        "diagnose": lambda: diagnose(folder.path),
    }
    seconds: dict[str, float] = {}
    for name, read in ways.items():
        begun = time.perf_counter()
        read()
        seconds[name] = time.perf_counter() - begun
    return seconds


def print_cycles(title: str, figures: Mapping[str, Mapping[str, Sequence[float]]]) -> None:
    """One Markdown table of cycles."""
    print(f"\n{title}:\n")
    heads = "".join(f" {head:>10} |" for head in MEASURES)
    print(f"| {'trace':<17} |{heads} {'added: wall (middle half)':>26} |" + heads[12:])
    print(f"|{'-' * 19}|" + f"{'-' * 11}:|" * 3 + f"{'-' * 27}:|" + f"{'-' * 11}:|" * 2)
    for name, of in figures.items():
        medians = "".join(f" {of[measure][0]:>10.2f} |" for measure in MEASURES)
        _, added, low, high = of[WALL]
        spread = f"{added:.2f} ({low:.2f} to {high:.2f})"
        others = "".join(f" {of[measure][1]:>10.2f} |" for measure in MEASURES[1:])
        print(f"| {name:<17} |{medians} {spread:>26} |{others}")


def print_verdicts(
    all_figures: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]],
) -> None:
    """Whether recording keeps to what it may cost."""
    print()
    for title, figures in all_figures.items():
        added, cycle = figures[DISK][WALL][1], figures[NONE][WALL][0]
        limit = ADDED_SHARE * cycle if "100 ms" in title else ADDED_MS
        word = "PASS" if added <= limit else "FAIL"
        print(
            f"{word}  {title}: recording on disk adds {added:.2f} ms, {added / cycle:.1%} "
            f"(at most {limit:.2f} ms)"
        )


def print_reading(count: int, size: float, seconds: Mapping[str, float]) -> None:
    """One Markdown table of ways to read."""
    print(f"\n{count:,} records, {size:.0f} MB:\n")
    print("| way                                     |     s | µs a record |")
    print("|-----------------------------------------|------:|------------:|")
    for name, taken in seconds.items():
        print(f"| {name:<39} | {taken:>5.1f} | {taken / count * 1e6:>11.1f} |")
    print()
    for name in ("verify", "diagnose"):
        scaled = seconds[name] / count * 100_000
        print(f"{'PASS' if scaled < SECONDS else 'FAIL'}  {name}: {scaled:.1f} s for 100,000")


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="What it costs to write a run down and check it.")
    parser.add_argument("--actions", type=int, default=1_000, help="actions without latency")
    parser.add_argument("--slow", type=int, default=60, help="actions with a model of 100 ms")
    parser.add_argument("--records", type=int, default=100_000, help="records to read; 0: none")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    options = parser.parse_args()
    if min(options.actions, options.slow) < 1 or options.records < 0:
        parser.error("--actions and --slow must be at least 1, --records at least 0")
    return options


async def main() -> None:
    """Measures and prints."""
    options = parse()
    figures = {
        "No latency, full": summary(await cycles(0.0, "full", options.actions)),
        "No latency, compact": summary(await cycles(0.0, "compact", options.actions)),
        "A model of 100 ms, compact": summary(await cycles(0.1, "compact", options.slow)),
    }
    result: dict[str, Any] = {"machine": machine(), "cycles": figures}
    count, size, seconds = 0, 0.0, dict[str, float]()
    with tempfile.TemporaryDirectory() as place:
        if options.records:
            folder, _ = await write_run(Path(place), options.records)
            lines = list(folder.trace_path.open("rb"))
            count, size = len(lines), sum(map(len, lines)) / 1e6
            del lines
            seconds = reading(folder)
            result["reading"] = {"records": count, "MB": size, "seconds": seconds}
    if options.json:
        print(json.dumps(result, indent=2))
        return
    print(f"{options.actions:,} and {options.slow:,} actions; {machine()}")
    for title, of in figures.items():
        print_cycles(title, of)
    print_verdicts(figures)
    if options.records:
        print_reading(count, size, seconds)


if __name__ == "__main__":
    logging.getLogger(EVENT_LOGGER_NAME).setLevel(logging.WARNING)
    asyncio.run(main())
