"""Milliseconds of one call."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median

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
