"""What a run was asked to do."""

from __future__ import annotations

from itertools import islice

from coag.errors import TraceError
from coag.schema import Percept, PerceptKind, Snapshot, TraceRecord

from ._folder import RunFolder
from ._reader import read_trace

_LOOKED_AT = 100
"""Lines of a trace after which nobody is taken to have asked for anything."""


def asked_in(record: TraceRecord) -> str:
    """What a record tells to have been asked: a message's text, or the goal of a snapshot."""
    match record:
        case Percept(kind=PerceptKind.MESSAGE):
            return record.content
        case Snapshot():
            goal = record.working_memory.get("goal")
            return goal if isinstance(goal, str) else ""
        case _:
            return ""


def first_asked(run: RunFolder) -> str:
    """What a run was asked first, a fork what its parent was; empty if nothing can be read."""
    try:
        lines = islice(read_trace(run.trace_path, lambda problem: None), _LOOKED_AT)
        return next(filter(None, (asked_in(entry.body) for entry in lines)), "")
    except TraceError:
        return ""
