"""What runs through a whole run, or through two: belief, memory, procedures, checks, comparisons.

Everything is read by an index of the trace, a piece at a time, and what it costs is bounded; the
checks, which must read all of it, run in a process of their own.
"""

from .awareness import NOT_AWARE, AwarenessTrack, is_aware
from .beliefs import belief
from .checks import Checks, check_now
from .child import phase_of
from .compare import Side, compare
from .memory import MemoryScan, Placed, memory_page
from .procedures import diff, procedures
from .why import graph_of, why_graph

__all__ = [
    "belief",
    "AwarenessTrack",
    "is_aware",
    "NOT_AWARE",
    "memory_page",
    "MemoryScan",
    "procedures",
    "diff",
    "Checks",
    "check_now",
    "phase_of",
    "Placed",
    "why_graph",
    "graph_of",
    "compare",
    "Side",
]
