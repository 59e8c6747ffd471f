"""Reading a trace: whole, from its end, or as it grows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from coag.errors import TraceError
from coag.schema import Entry, Intent, Percept, Phase, Receipt, TraceRecord, Written

from .files import SameFile, regular, trace_errors
from .hash_chain import LONGEST_LINE, LineCheck, ProblemKind, TraceLine, TraceProblem, read_lines

# ---- Reading a trace, one record at a time ----


_BEARABLE = (ProblemKind.TRUNCATED, ProblemKind.HASH)
"""Problems with which a trace can be read all the same."""


def read_trace(
    path: Path, on_problem: Callable[[TraceProblem], None] | None = None
) -> Iterator[Entry]:
    """The records of a trace in order, read one at a time; its numbers and hashes are checked.

    The last line of a run that was killed may be truncated. That is reported after all whole
    lines were given. So is a line whose hash does not fit, before it is given: what it holds can
    be read, and the run can be continued, but somebody changed the trace. `read_lines` gives the
    lines of any trace, with what is wrong with each.

    Args:
        path: A run's `trace.jsonl`.
        on_problem: Called with a truncated last line and of hashes that do not fit; None to have
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
        on_problem: Called with problems after which reading can continue; None to have
            them raised.

    Raises:
        TraceError: If the line cannot be read, its number does not follow, or it has such a problem
            and `on_problem` is None.
    """
    for problem in line.problems:
        if on_problem is None or problem.kind not in _BEARABLE:
            raise TraceError(problem.path, problem.text)
        on_problem(problem)
    return line.entry


def cycle_of(record: TraceRecord) -> int | None:
    """The cycle a record names; None for a percept, which belongs to the one before it."""
    return None if isinstance(record, Percept) else record.cycle


def phase_of(record: TraceRecord) -> Phase | None:
    """The phase in which a record was made; None where it does not say."""
    if isinstance(record, Intent | Receipt | Written):
        return Phase.EXECUTION
    return getattr(record, "phase", None)


# ---- A trace while it is written ----


class TraceTail:
    """Reads a trace as it grows: what is there, and each time what has come since.

    A line counts from when its newline is there, so that a half-written one is waited for, and
    one that a resumed run cuts off is never seen.

    Args:
        path: A run's `trace.jsonl`; it need not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._restart()

    def _restart(self) -> None:
        self._check = LineCheck(self._path)
        self._same = SameFile()
        self._read = 0

    def lines(self) -> Iterator[TraceLine]:
        """The whole lines that came since the last call; none if there is no file yet.

        Raises:
            TraceError: If the file cannot be read, or is not the one any more that was read: it
                was cut, rewritten or replaced. The next call then begins with its first line.
        """
        with (
            trace_errors(self._path, "cannot be read"),
            suppress(FileNotFoundError),
            open(self._path, "rb", opener=regular) as file,
        ):
            problem = self._same.problem(file, self._read)
            if problem:
                self._restart()
                raise TraceError(self._path, problem)
            file.seek(self._read)
            while line := file.readline(LONGEST_LINE + 1):
                if len(line) <= LONGEST_LINE and not line.endswith(b"\n"):
                    return
                self._read += len(line)
                yield self._check.line(line)
