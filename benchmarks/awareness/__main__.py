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
from collections.abc import Mapping
from typing import Any

from benchmarks._machine import machine

from .checkpoints import checkpoints
from .steps import PEAKS, grown, growth, peaks, steps
from .talk import TURNS

TARGETS = {"checkpoint": 1.0, "few": 1.0, "many": 10.0}
"""Milliseconds: keeping or restoring 50 turns; update, inject at 50 turns; at 10,000 things."""


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="What situational awareness costs.")
    parser.add_argument("--rounds", type=int, default=200, help="times that a state is kept")
    parser.add_argument("--things", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--turns", type=int, default=1_000, help="of the long talk")
    parser.add_argument("--peak-of", choices=PEAKS, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    options = parser.parse_args()
    if min(options.rounds, options.turns, *options.things) < 1:
        parser.error("--rounds, --turns and --things must be at least 1")
    return options


def main() -> None:
    """Measures and prints."""
    options = parse()
    if options.peak_of:
        print(asyncio.run(grown(options.peak_of, options.turns, options.things[0])))
        return
    size, kept = checkpoints(options.rounds)
    figures: dict[str, Any] = {"machine": machine(), "bytes": size, "checkpoints": kept}
    figures["growth"] = asyncio.run(growth(options.turns))
    figures["peaks"] = peaks(options.turns, options.things[0])
    figures["steps"] = steps(options.things)
    if options.json:
        print(json.dumps(figures, indent=2))
    else:
        print_all(figures)


def print_all(figures: Mapping[str, Any]) -> None:
    """Everything as Markdown tables, with what is aimed at."""
    kept, size = figures["checkpoints"], figures["bytes"]
    print(f"{figures['machine']}\n\nA state of {TURNS} turns, {size / 1e3:.1f} kB of JSON:\n")
    print("| way | CPU ms | wall ms | times coag's |\n|---|---:|---:|---:|")
    for name, row in kept.items():
        base = kept["coag: JSON bytes to state" if reads(name) else "coag: state to JSON bytes"]
        print(f"| {name} | {row['cpu']:.2f} | {row['wall']:.2f} | {row['cpu'] / base['cpu']:.1f} |")
    print("\n| CPU ms of a step | observe | update | inject | decay, all stay |")
    print("|---|---:|---:|---:|---:|")
    for name, parts in figures["steps"].items():
        print(f"| {name} |" + "".join(f" {row['cpu']:.2f} |" for row in parts.values()))
    print("\n| DynamicEngine | " + " | ".join(f"turn {m}" for m in figures["growth"]["decay on"]))
    print("|---|" + "---:|" * len(figures["growth"]["decay on"]))
    for name, sizes in figures["growth"].items():
        cells = (f" {row['kB']:.0f} kB, {row['step']:.2f} ms |" for row in sizes.values())
        print(f"| {name} |" + "".join(cells))
    print("\n| peak memory | MB grown |\n|---|---:|")
    for name, megabytes in figures["peaks"].items():
        print(f"| {name} | {megabytes:.1f} |")
    print_verdicts(figures)


def reads(name: str) -> bool:
    """Whether a way of `checkpoints` restores a state."""
    return name.endswith(("load", "loads", "get", "to state", "after it"))


def print_verdicts(figures: Mapping[str, Any]) -> None:
    """Whether the targets are met."""
    kept, steps_of = figures["checkpoints"], figures["steps"]
    few = steps_of[f"{TURNS} turns"]
    verdicts = {
        "keeping 50 turns": (kept["coag: state to JSON bytes"]["cpu"], TARGETS["checkpoint"]),
        "restoring 50 turns": (kept["coag: JSON bytes to state"]["cpu"], TARGETS["checkpoint"]),
        "update at 50 turns": (few["update"]["cpu"], TARGETS["few"]),
        "inject at 50 turns": (few["inject"]["cpu"], TARGETS["few"]),
    }
    for name, parts in steps_of.items():
        if name.startswith("10,000"):
            for part in ("update", "inject", "decay"):
                verdicts[f"{part} at {name}"] = (parts[part]["cpu"], TARGETS["many"])
    print()
    for name, (measured, limit) in verdicts.items():
        print(
            f"{'PASS' if measured < limit else 'FAIL'}  {name}: {measured:.2f} ms (under {limit:g})"
        )


if __name__ == "__main__":
    main()
