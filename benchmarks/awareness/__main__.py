"""What situational awareness costs: keeping a state, taking a step, injecting it, growing.

    python -m benchmarks.awareness [--rounds 200] [--things 10000 100000] [--turns 1000] [--json]

A state of 50 turns is written as JSON and read again beside LangGraph's checkpointers, which hold
the same state as a plain dict, and beside `json` alone. Contenders take turns, round by round. Then
observe, update and inject, with few things and with many; a decay step; `DynamicEngine`; the size
of a state over many turns with decay on and off; and peak memory, in a process each.

CPU milliseconds are of all threads of the process, so that others' work on the machine is not in
them; what was there before is frozen for the garbage collector. A number is the median. LangGraph
is no part of this project: where `langgraph-checkpoint` and `langgraph-checkpoint-sqlite` are not
installed, its rows are left out. The exit code is 0 in any case.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
from typing import Any

from ._kept import checkpoints
from ._memory import PEAKS, grown, peaks
from ._printing import print_all
from ._steps import growth, steps


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="What situational awareness costs.")
    parser.add_argument("--rounds", type=int, default=200, help="times that a state is kept")
    parser.add_argument("--things", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--turns", type=int, default=1_000, help="of the long talk")
    parser.add_argument("--peak-of", choices=PEAKS, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    asked = parser.parse_args()
    if min(asked.rounds, asked.turns, *asked.things) < 1:
        parser.error("--rounds, --turns and --things must be at least 1")
    return asked


def main() -> None:
    """Measures and prints."""
    asked = parse()
    if asked.peak_of:
        print(asyncio.run(grown(asked.peak_of, asked.turns, asked.things[0])))
        return
    machine = (
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, "
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    )
    size, kept = checkpoints(asked.rounds)
    told: dict[str, Any] = {"machine": machine, "bytes": size, "checkpoints": kept}
    told["growth"] = asyncio.run(growth(asked.turns))
    told["peaks"] = peaks(asked.turns, asked.things[0])
    told["steps"] = steps(asked.things)
    if asked.json:
        print(json.dumps(told, indent=2))
    else:
        print_all(told)


if __name__ == "__main__":
    main()
