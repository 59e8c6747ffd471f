"""The talk that is measured, and milliseconds of one call."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from coag.awareness import AwarenessEngine, ConversationAdapter

TURNS = 50
"""Of the state that is kept and restored."""
BUDGET = 500
"""Tokens of an injection."""


def turn(number: int) -> dict[str, Any]:
    """What one message of a talk says: it goes from topic to topic, asks, answers and wants."""
    fields: dict[str, Any] = {"topics": [f"subject {number // 3}", f"theme {number % 7}"]}
    if number % 2 == 0:
        fields["questions"] = [f"Why does case {number} fail?"]
    elif number > 4:
        fields["answered"] = [f"Why does case {number - 3} fail?"] if number % 4 == 1 else []
    if number % 3 == 0:
        fields["goals"] = [f"Reach target {number}"]
    if number % 5 == 0:
        fields |= {"assumptions": [f"case {number} is alike"], "sentiment": "frustrated"}
    return fields


def talked(turns: int) -> AwarenessEngine:
    """An engine after a talk."""
    engine = AwarenessEngine(ConversationAdapter())
    for number in range(turns):
        engine.update(engine.observe(turn(number)))
    return engine


def with_many(things: int, goals: int) -> AwarenessEngine:
    """An engine after a talk of 50 turns and one message with so many topics and goals."""
    engine = talked(TURNS)
    many = {"topics": [f"thing {n}" for n in range(things)]}
    engine.update(engine.observe(many | {"goals": [f"Finish part {n}" for n in range(goals)]}))
    engine.update(engine.observe(turn(TURNS)))
    return engine


WARM_UP = 5
"""Calls that are not counted."""
REPEATS = 30
"""Steps of an engine that are timed."""
Row = dict[str, float]


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall milliseconds of one call."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return (time.process_time() - cpu) * 1e3, (time.perf_counter() - wall) * 1e3


def medians(taken: Sequence[tuple[float, float]]) -> Row:
    """The medians of both."""
    return {"cpu": median(one[0] for one in taken), "wall": median(one[1] for one in taken)}


def grid(rows: Sequence[tuple[str, ...]]) -> str:
    """Rows of text with their columns one below the other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
