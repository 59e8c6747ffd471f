"""What a `CoagAgent` costs in place of an `AssistantAgent`, turn by turn, side by side.

The model answers at once, so all that is measured is the frameworks' own work, in milliseconds of
CPU of the whole process. The contenders take turns, so that other work of the machine affects all
alike; a number is the median of the turns around its mark, with the middle half of them beside it.
Every CoagAgent keeps memory and trace in RAM, as it does by default.

    python benchmarks/drop_in.py [--turns 2000] [--repeats 1] [--json]

PASS or FAIL says whether the targets are met; the exit code is 0 in either case, because a loaded
machine proves nothing. docs/speed.md says what the numbers mean.
"""

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from statistics import median
from typing import Any

from autogen_core import EVENT_LOGGER_NAME

from benchmarks._machine import machine
from benchmarks.overhead import (
    NAMES,
    PLAIN,
    SITUATIONS,
    Situation,
    crowd,
    long_conversations,
    memory_of,
)

MARKS = (10, 500, 2_000)
TOOL = "one tool call"
"""The situation that targets are about."""
CYCLE = "coag full json"
"""The most expensive form: four model calls and two candidates in each cycle."""
TARGET, FLAT, GAP = 4.0, 1.5, 50.0
"""Times AssistantAgent's tool turn; growth since working memory is full, which is after 100 turns;
milliseconds of a loop gap."""
AGENTS, LATENCY, CROWDS = 50, 0.02, 5
REMEMBERED = 1_000
"""Turns after which peak memory is read; the trace in RAM is full by then."""
WARM_UP = 5
"""Turns of conversations that are thrown away, so that imports and caches are nobody's cost."""


def marks_of(situation: Situation, turns: int) -> list[int]:
    """The marks of a situation that lie within the turns, the last turn included."""
    last = min(turns, MARKS[1]) if situation.short else turns
    return [*(mark for mark in MARKS if mark < last), last]


async def measure(turns: int, repeats: int) -> dict[str, Any]:
    """Every figure, by the name of what is measured."""
    for situation in SITUATIONS:
        await long_conversations(situation, [WARM_UP], 1)
    turn_costs: dict[str, Any] = {
        situation.title: await long_conversations(situation, marks_of(situation, turns), repeats)
        for situation in SITUATIONS
    }
    crowds: dict[str, dict[str, float]] = {}
    for name in NAMES:
        seen = [await crowd(name, AGENTS, LATENCY) for _ in range(CROWDS * repeats)]
        crowds[name] = {
            "wall": median(one.wall for one in seen),
            "gap": median(one.gap for one in seen),
            "worst gap": max(one.gap for one in seen),
            "worst CPU gap": max(one.cpu_gap for one in seen),
        }
    return {"turns": turn_costs, "crowds": crowds, "memory": await memories(min(turns, REMEMBERED))}


async def memories(turns: int) -> dict[str, dict[str, float]]:
    """The peak memory of each contender, each in a process of its own."""
    peaks: dict[str, dict[str, float]] = {}
    for name in NAMES:
        command = [sys.executable, __file__, "--memory-of", name, "--turns", str(turns)]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        output, _ = await process.communicate()
        peaks[name] = json.loads(output)
    return peaks


def print_row(cells: Sequence[str]) -> None:
    """One row of a Markdown table; the first cell is a name."""
    first, *rest = cells
    print(f"| {first:<20} |" + "".join(f" {cell:>26} |" for cell in rest))


def print_head(cells: Sequence[str]) -> None:
    """The head of a Markdown table."""
    print_row(cells)
    print(f"|{'-' * 22}|" + f"{'-' * 27}:|" * (len(cells) - 1))


def print_turns(title: str, costs: dict[str, Any]) -> None:
    """What turns cost: median, the middle half, and the ratio to AssistantAgent."""
    marks = list(costs["cpu"][PLAIN])
    print(f"\n{title}\n")
    print_head(["CPU ms", *(f"turn {mark:,}" for mark in marks), "last / young"])
    for name, by_mark in costs["cpu"].items():
        cells = [
            f"{cpu['median']:.2f} ({cpu['low']:.2f}-{cpu['high']:.2f}) "
            f"x{cpu['median'] / costs['cpu'][PLAIN][mark]['median']:.2f}"
            for mark, cpu in by_mark.items()
        ]
        print_row([name, *cells, f"{growth(costs, name):.2f}"])


def growth(costs: dict[str, Any], name: str) -> float:
    """What a turn costs at the last mark, over a young conversation's at the same moment."""
    *_, last = costs["cpu"][name].values()
    return last["median"] / costs["young"][name]["median"]


def growth_when_full(costs: dict[str, Any], name: str) -> float:
    """What a turn costs at the last mark, over the mark before, when the dialogue was full."""
    *_, before, last = costs["cpu"][name].values()
    return last["median"] / before["median"]


def print_rest(figures: dict[str, Any], turns: int) -> None:
    """States, crowds and memory."""
    print(f"\nsave_state after {turns:,} turns; peak memory after at most {REMEMBERED:,}\n")
    print_head(["", "CPU ms", "kB of JSON", "MB grown at the peak"])
    for name in NAMES:
        state, grown = figures["turns"][TOOL]["states"][name], figures["memory"][name]["grown"]
        print_row([name, f"{state['cpu']:.1f}", f"{state['bytes'] / 1e3:,.0f}", f"{grown:.0f}"])
    print(f"\n{AGENTS} agents at once, one tool call each, a model of {LATENCY * 1e3:.0f} ms\n")
    print_head(["ms", *next(iter(figures["crowds"].values()))])
    for name, seen in figures["crowds"].items():
        print_row([name, *(f"{value:.0f}" for value in seen.values())])


def print_verdicts(figures: dict[str, Any]) -> None:
    """Whether the targets are met."""
    of_tool = figures["turns"][TOOL]
    cpu = of_tool["cpu"]
    first = next(iter(cpu[PLAIN]))
    ratio = cpu[CYCLE][first]["median"] / cpu[PLAIN][first]["median"]
    print()
    print_verdict(ratio, TARGET, f"{CYCLE}: tool turns of AssistantAgent at turn {first}")
    for name in NAMES[1:]:
        full = growth_when_full(of_tool, name)
        print_verdict(full, FLAT, f"{name}: the last mark over the one before")
        gap = figures["crowds"][name]["worst gap"]
        print_verdict(gap, GAP, f"{name}: ms of the worst loop gap of {AGENTS} agents")


def print_verdict(value: float, most: float, what: str) -> None:
    """One target."""
    print(f"{'PASS' if value <= most else 'FAIL'}  {value:6.2f} (at most {most:g})  {what}")


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="What a turn costs beside AssistantAgent's.")
    parser.add_argument("--turns", type=int, default=MARKS[-1], help="turns of each conversation")
    parser.add_argument("--repeats", type=int, default=1, help="how often everything is measured")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    parser.add_argument("--memory-of", choices=NAMES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.turns <= MARKS[0] or options.repeats < 1:
        parser.error(f"--turns must be more than {MARKS[0]}, --repeats at least 1")
    return options


async def main() -> None:
    """Measures and prints."""
    options = parse()
    if options.memory_of:
        tool = next(situation for situation in SITUATIONS if situation.title == TOOL)
        print(json.dumps(await memory_of(options.memory_of, tool, options.turns)))
        return
    figures = await measure(options.turns, options.repeats)
    if options.json:
        print(json.dumps({"machine": machine(), **figures}, indent=2))
        return
    print(f"{options.turns:,} turns, {options.repeats} repeat(s); {machine()}")
    for title, of_turns in figures["turns"].items():
        print_turns(title, of_turns)
    print_rest(figures, options.turns)
    print_verdicts(figures)


if __name__ == "__main__":
    logging.getLogger(EVENT_LOGGER_NAME).setLevel(logging.WARNING)
    asyncio.run(main())
