"""What one executed action costs, for `CoagAgent` and for AutoGen's `AssistantAgent`.

The model answers at once, so all that is measured is the frameworks' own work: milliseconds of
CPU (all threads of the process) and of wall clock, and estimated tokens of the messages sent,
each at action 10, 100 and 1,000. All agents are driven in the same way, one action a turn
(`max_tool_iterations=1`): first the task, then "Continue.". They take turns, action by action,
so that other work of the machine affects all alike. A number is the median of the actions
around its mark, and of the repeats.

    python benchmarks/cycle_overhead.py [--actions 1000] [--repeats 3] [--only WORD ...] [--json]

PASS or FAIL says whether each CoagAgent stays flat: at the last mark at most 1.2 times what it
took at the first, in CPU time and in tokens. The exit code is 0 in either case, because a
loaded machine proves nothing. `README.md` beside this file says more.
"""

import argparse
import asyncio
import json
import logging
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from autogen_core import EVENT_LOGGER_NAME
from overhead import BASELINE, FULL, TASK, WITHOUT_RECALL, Contender, contenders, window

from benchmarks._machine import machine
from coag.store import WordLlamaEmbedder

MARKS = (10, 100, 1_000)
FLAT = 1.2
"""What the last mark may cost of the first."""
TARGET = 4.0
"""What a full cycle in RAM may cost of AssistantAgent's tool turn at the first mark, in CPU."""
MEASURES = ("CPU ms", "wall ms", "prompt tokens")
WARM_UP = 5
"""Actions of agents that are thrown away, so that imports and caches are nobody's cost."""

Costs = dict[str, dict[int, list[float]]]
"""By contender and mark: the value of each of `MEASURES`."""


async def measure(names: Sequence[str], actions: int, marks: Sequence[int]) -> Costs:
    """What each contender's actions cost around each mark, all taking turns."""
    measured = {number for mark in marks for number in window(mark)}
    with tempfile.TemporaryDirectory() as folder:
        make = contenders(Path(folder))
        agents: list[Contender] = [await make[name]() for name in names]
        for number in range(1, actions + 1):
            for agent in agents:
                await agent.act(number, measured=number in measured)
        for agent in agents:
            await agent.close()
    return {agent.name: {mark: agent.around(mark) for mark in marks} for agent in agents}


def middle(repeats: Sequence[Costs]) -> Costs:
    """The median of the repeats, each number by itself."""
    return {
        name: {
            mark: [median(values) for values in zip(*(r[name][mark] for r in repeats), strict=True)]
            for mark in repeats[0][name]
        }
        for name in repeats[0]
    }


def embedding_seconds() -> float:
    """What it takes to embed the query that each of these agents recalls by."""
    embedder, seconds = WordLlamaEmbedder(), list[float]()
    for _ in range(200):
        start = time.perf_counter()
        embedder.embed_query(f"{TASK}\nContinue.")
        seconds.append(time.perf_counter() - start)
    return median(seconds)


def flatness(costs: Costs) -> dict[str, dict[str, float]]:
    """By CoagAgent and measure: the last mark over the first; wall clock is not judged."""
    growth: dict[str, dict[str, float]] = {}
    for name, by_mark in costs.items():
        first, last = by_mark[min(by_mark)], by_mark[max(by_mark)]
        growth[name] = {
            measure: last[at] / first[at] for at, measure in enumerate(MEASURES) if at != 1
        }
    return growth


def print_table(costs: Costs, at: int) -> None:
    """One measure of all contenders as a Markdown table."""
    marks = list(costs[next(iter(costs))])
    heads = [f"@{mark:,}" for mark in marks]
    if BASELINE in costs:
        heads += [f"x @{mark:,}" for mark in marks]
    print(f"\n| {MEASURES[at]:<25} |" + "".join(f" {head:>9} |" for head in [*heads, "last/1st"]))
    print(f"| {'-' * 25} |" + f" {'-' * 8}: |" * (len(heads) + 1))
    for name, by_mark in costs.items():
        values = [by_mark[mark][at] for mark in marks]
        cells = [f"{value:,.0f}" if at == 2 else f"{value:,.2f}" for value in values]
        if BASELINE in costs:
            cells += [
                f"{value / costs[BASELINE][mark][at]:.2f}"
                for mark, value in zip(marks, values, strict=True)
            ]
        cells.append(f"{values[-1] / values[0]:.2f}")
        print(f"| {name:<25} |" + "".join(f" {cell:>9} |" for cell in cells))


def print_verdicts(costs: Costs) -> None:
    """Whether CoagAgent stays flat, what a cycle costs, and what share recall has in it."""
    print()
    for name, growth in flatness(costs).items():
        if name == BASELINE:
            continue
        ratios = ", ".join(f"{measure} x {ratio:.2f}" for measure, ratio in growth.items())
        flat = all(ratio <= FLAT for ratio in growth.values())
        print(f"{'PASS' if flat else 'FAIL'}  {name} is flat: {ratios} (at most {FLAT})")
    first = min(costs[next(iter(costs))])
    for name in (FULL, WITHOUT_RECALL):
        if name in costs and BASELINE in costs:
            ratio = costs[name][first][0] / costs[BASELINE][first][0]
            word = "met" if ratio <= TARGET else "missed"
            print(
                f"      {name}: {ratio:.2f} of a tool turn at action {first} "
                f"(target {TARGET:g}: {word})"
            )
    if FULL in costs and WITHOUT_RECALL in costs:
        share = 1 - costs[WITHOUT_RECALL][first][0] / costs[FULL][first][0]
        print(
            f"      recall is {share:.0%} of the cycle's CPU; embedding the query once "
            f"takes {embedding_seconds() * 1e3:.2f} ms"
        )


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="What one executed action costs.")
    parser.add_argument("--actions", type=int, default=MARKS[-1], help="actions of each agent")
    parser.add_argument("--repeats", type=int, default=3, help="how often everything is measured")
    parser.add_argument("--only", nargs="+", default=[""], help="words in names of contenders")
    parser.add_argument("--json", action="store_true", help="one JSON object, all repeats in it")
    options = parser.parse_args()
    if options.actions < MARKS[0] or options.repeats < 1:
        parser.error(f"--actions must be at least {MARKS[0]}, --repeats at least 1")
    return options


async def main() -> None:
    """Measures and prints."""
    options = parse()
    marks = [mark for mark in MARKS if mark < options.actions] + [options.actions]
    known = contenders(Path())
    names = [name for name in known if any(word in name for word in options.only)]
    await measure(names, WARM_UP, [WARM_UP])
    repeats = [await measure(names, options.actions, marks) for _ in range(options.repeats)]
    costs = middle(repeats)
    if options.json:
        figures: dict[str, Any] = {"machine": machine(), "measures": MEASURES, "costs": costs}
        figures |= {"growth": flatness(costs), "repeats": repeats}
        print(json.dumps(figures, indent=2))
        return
    print(f"{options.actions:,} actions, {options.repeats} repeat(s); {machine()}")
    for at in range(len(MEASURES)):
        print_table(costs, at)
    print_verdicts(costs)


if __name__ == "__main__":
    logging.getLogger(EVENT_LOGGER_NAME).setLevel(logging.WARNING)
    asyncio.run(main())
