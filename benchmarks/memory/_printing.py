"""How figures are shown: what they were measured on, and tables in Markdown."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from benchmarks._machine import machine as _machine

_PACKAGES = ("chromadb", "autogen-ext", "wordllama", "mem0ai", "langgraph-checkpoint", "fastembed")


def machine() -> str:
    """The machine, and versions of what is compared."""
    versions = {name: _version(name) for name in _PACKAGES}
    named = ", ".join(f"{name} {number}" for name, number in versions.items() if number)
    return f"{_machine()}; {named}"


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """The first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for number, row in enumerate((heads, *rows)):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print(f"| {' | '.join(cells)} |")
        if number == 0:
            lines = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
            print(f"| {' | '.join(lines)} |")


def print_absent(names: Sequence[str]) -> None:
    """Says who is not measured, and why."""
    for name in names:
        print(f"{name}: not installed, not measured.")


def progress(text: str) -> None:
    """A line about the progress; not part of the result."""
    print(text, file=sys.stderr, flush=True)


def percent(share: float) -> str:
    """A share in percent; `-` where there was nothing to measure."""
    return "-" if math.isnan(share) else f"{100 * share:.1f}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
