"""What was measured, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._talk import TURNS

TARGETS = {"checkpoint": 1.0, "few": 1.0, "many": 10.0}
"""Milliseconds: keeping or restoring 50 turns; update, inject at 50 turns; at 10,000 things."""


def print_all(told: Mapping[str, Any]) -> None:
    """Everything as Markdown tables, with what is aimed at."""
    kept, size = told["checkpoints"], told["bytes"]
    print(f"{told['machine']}\n\nA state of {TURNS} turns, {size / 1e3:.1f} kB of JSON:\n")
    print("| way | CPU ms | wall ms | times coag's |\n|---|---:|---:|---:|")
    for name, row in kept.items():
        base = kept["coag: JSON bytes to state" if reads(name) else "coag: state to JSON bytes"]
        print(f"| {name} | {row['cpu']:.2f} | {row['wall']:.2f} | {row['cpu'] / base['cpu']:.1f} |")
    print("\n| CPU ms of a step | observe | update | inject | decay, all stay |")
    print("|---|---:|---:|---:|---:|")
    for name, parts in told["steps"].items():
        print(f"| {name} |" + "".join(f" {row['cpu']:.2f} |" for row in parts.values()))
    print("\n| DynamicEngine | " + " | ".join(f"turn {m}" for m in told["growth"]["decay on"]))
    print("|---|" + "---:|" * len(told["growth"]["decay on"]))
    for name, sizes in told["growth"].items():
        cells = (f" {row['kB']:.0f} kB, {row['step']:.2f} ms |" for row in sizes.values())
        print(f"| {name} |" + "".join(cells))
    print("\n| peak memory | MB grown |\n|---|---:|")
    for name, megabytes in told["peaks"].items():
        print(f"| {name} | {megabytes:.1f} |")
    print_verdicts(told)


def reads(name: str) -> bool:
    """Whether a way of `checkpoints` restores a state."""
    return name.endswith(("load", "loads", "get", "to state", "after it"))


def print_verdicts(told: Mapping[str, Any]) -> None:
    """Whether the targets are met."""
    kept, steps_of = told["checkpoints"], told["steps"]
    few = steps_of[f"{TURNS} turns"]
    found = {
        "keeping 50 turns": (kept["coag: state to JSON bytes"]["cpu"], TARGETS["checkpoint"]),
        "restoring 50 turns": (kept["coag: JSON bytes to state"]["cpu"], TARGETS["checkpoint"]),
        "update at 50 turns": (few["update"]["cpu"], TARGETS["few"]),
        "inject at 50 turns": (few["inject"]["cpu"], TARGETS["few"]),
    }
    for name, parts in steps_of.items():
        if name.startswith("10,000"):
            for part in ("update", "inject", "decay"):
                found[f"{part} at {name}"] = (parts[part]["cpu"], TARGETS["many"])
    print()
    for name, (measured, limit) in found.items():
        print(
            f"{'PASS' if measured < limit else 'FAIL'}  {name}: {measured:.2f} ms (under {limit:g})"
        )
