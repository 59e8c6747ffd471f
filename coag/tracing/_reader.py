"""Reading a trace, one record at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from coag.errors import TraceError
from coag.schema import Entry, Percept, TraceRecord

from ._lines import ProblemKind, TraceLine, TraceProblem, read_lines

_BEARABLE = (ProblemKind.TRUNCATED, ProblemKind.HASH)
"""Problems with which a trace can be read all the same."""


def read_trace(
    path: Path, on_problem: Callable[[TraceProblem], None] | None = None
) -> Iterator[Entry]:
    """The records of a trace in order, read one at a time; its numbers and hashes are checked.

    The last line of a run that was killed may be truncated. That is reported after all whole
    lines were given. So is a line whose hash does not fit, before it is given: what it holds can
    be read, and a run can be gone on with, but somebody changed the trace. `read_lines` gives the
    lines of a trace whatever is wrong with them.

    Args:
        path: A run's `trace.jsonl`.
        on_problem: Is told of a truncated last line and of hashes that do not fit; None to have
            them raised.

    Raises:
        TraceError: If the file cannot be read, is no trace, is of a newer version, has a gap, or
            has one of those problems and `on_problem` is None.
    """
    for line in read_lines(path):
        entry = entry_of(line, on_problem)
        if entry is not None:
            yield entry


def entry_of(
    line: TraceLine, on_problem: Callable[[TraceProblem], None] | None = None
) -> Entry | None:
    """What a line holds, as `read_trace` takes it; None for a truncated one.

    Args:
        line: The line, checked.
        on_problem: Is told of what can be borne; None to have it raised.

    Raises:
        TraceError: If the line cannot be read, its number does not follow, or it has a problem
            that can be borne and `on_problem` is None.
    """
    for problem in line.problems:
        if on_problem is None or problem.kind not in _BEARABLE:
            raise TraceError(problem.path, problem.text)
        on_problem(problem)
    return line.entry


def cycle_of(record: TraceRecord) -> int | None:
    """The cycle a record names; None for a percept, which belongs to the one before it."""
    return None if isinstance(record, Percept) else record.cycle
