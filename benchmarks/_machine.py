"""What figures were measured on, and how much memory a process has had."""

from __future__ import annotations

import os
import platform
import resource
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

_T = TypeVar("_T")


def machine() -> str:
    """Cores, load and system; figures without them mean little."""
    return (
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, "
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    )


def peak() -> float:
    """Megabytes of this process at its peak; Linux counts a parent's as its child's elsewhere."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 1e3
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def apart(work: Callable[..., _T], *given: object) -> _T:
    """What work gives in a fresh process, whose memory and caches are its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(work, *given).result()
