"""Reading runs: from their folders to the views that pages show, a page at a time.

A `Library` knows the runs of a folder of logs by their keys and lists them as cards; what must be
counted in their traces is found in the background (`Library.advance`). An `OpenRun` reads one
trace through its index, as far as a page asks for: rows of cycles from the few records that a row
needs, and one cycle whole. Logs may be damaged, hostile, of newer versions or growing; what cannot
be read is told in place, and what can is shown.
"""

from .library import Library
from .open_run import Kin, OpenRun
from .rows import changes, message_text, parts_of
from .runs import (
    LOG_FAULTS,
    Filters,
    call_in_a_line,
    clip,
    in_a_line,
    told_in_a_line,
    value_in_a_line,
)

__all__ = [
    "Library",
    "OpenRun",
    "Filters",
    "LOG_FAULTS",
    "Kin",
    "clip",
    "in_a_line",
    "value_in_a_line",
    "told_in_a_line",
    "call_in_a_line",
    "changes",
    "message_text",
    "parts_of",
]
