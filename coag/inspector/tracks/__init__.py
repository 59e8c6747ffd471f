"""What runs through a whole run, or through two: belief, memory, procedures, checks, comparisons.

Everything is read by an index of the trace, a piece at a time, and what it costs is bounded; the
checks, which must read all of it, run in a process of their own.
"""

from ._awareness import NOT_AWARE, AwarenessTrack, is_aware
from ._belief import belief
from ._checks import Checks, check_now
from ._compare import Side, compare
from ._diffs import diff
from ._found import phase_of
from ._memory import MemoryScan, memory_page
from ._placing import Placed
from ._procedures import procedures
from ._why import graph_of, why_graph

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
