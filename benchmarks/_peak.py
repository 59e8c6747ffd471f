"""How much memory this process has had at its peak."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak() -> float:
    """Megabytes. Linux counts a parent's peak as its child's, except in this file."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 1e3
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
