"""Reading a trace: whole, from its end, or as it grows."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError

from coag.errors import ConfigurationError, TraceError
from coag.schema import Entry, Percept, TraceRecord, Value

from .files import SameFile, regular
from .lines import LONGEST_LINE, LineCheck, ProblemKind, TraceLine, TraceProblem, read_lines

# ---- Reading a trace, one record at a time ----


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
        self._anew()

    def _anew(self) -> None:
        self._check = LineCheck(self._path)
        self._same = SameFile()
        self._read = 0

    def lines(self) -> Iterator[TraceLine]:
        """The whole lines that came since the last call; none if there is no file yet.

        Raises:
            TraceError: If the file cannot be read, or is not the one any more that was read: it
                was cut, written anew or replaced. The next call then begins with its first line.
        """
        try:
            with open(self._path, "rb", opener=regular) as file:
                problem = self._same.problem(file, self._read)
                if problem:
                    self._anew()
                    raise TraceError(self._path, problem)
                file.seek(self._read)
                while line := file.readline(LONGEST_LINE + 1):
                    if len(line) <= LONGEST_LINE and not line.endswith(b"\n"):
                        return
                    self._read += len(line)
                    yield self._check.line(line)
        except FileNotFoundError:
            return
        except OSError as error:
            problem = error.strerror or type(error).__name__
            raise TraceError(self._path, f"cannot be read: {problem}") from error


# ---- A file of values, one JSON line each, so that a long measurement can be gone on with ----


_LOG = logging.getLogger(__name__)
_SHOWN = 80
"""Bytes of a line that an error shows."""

ValueT = TypeVar("ValueT", bound=Value)


class KeptLines(Generic[ValueT]):
    """Values in the lines of a file; each is written at once, behind what others wrote meanwhile.

    A last line that was cut off does not count. It goes when the next value is written, not before:
    a file of something else is left as it is.

    Args:
        path: Where; made, with its folder, by the first value.
        kind: What stands in the lines.
        named: What one of them is called, e.g. `reading`.

    Raises:
        ConfigurationError: The file cannot be read, or holds something else.
    """

    def __init__(self, path: Path, kind: type[ValueT], *, named: str) -> None:
        self._path = path
        self._whole: int | None = None
        """Bytes up to a line that was cut off; None if there is none."""
        self.values: tuple[ValueT, ...] = tuple(self._read(kind, named))
        """What the file held when it was opened."""

    def append(self, value: ValueT) -> None:
        """Writes a value as the last line.

        Raises:
            OSError: It cannot be written.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            if self._whole is not None:
                file.truncate(self._whole)
                self._whole = None
            file.write(f"{json.dumps(value.model_dump(mode='json'))}\n".encode())

    def _read(self, kind: type[ValueT], named: str) -> list[ValueT]:
        try:
            held = self._path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ConfigurationError(
                f"{named.capitalize()}s cannot be read from {str(self._path)!r}: {error}"
            ) from error
        *lines, rest = held.split(b"\n")
        if rest and not (lines or _begins(kind, rest)):
            lines.append(rest)
        elif rest:
            self._whole = len(held) - len(rest)
            _LOG.warning("the last line of %r was cut off and is left out", str(self._path))
        return [self._parsed(kind, named, at, line) for at, line in enumerate(lines, 1)]

    def _parsed(self, kind: type[ValueT], named: str, at: int, line: bytes) -> ValueT:
        try:
            return kind.model_validate_json(line)
        except ValidationError as error:
            said = line[:_SHOWN].decode(errors="replace")
            raise ConfigurationError(
                f"Line {at} of {str(self._path)!r} is no kept {named}: {said!r}. A file with it "
                f"holds no {named}s to go on from. Give another file, or take the line out."
            ) from error


def _begins(kind: type[Value], line: bytes) -> bool:
    """Whether what there is of a line may be the beginning of such a value."""
    first = f'{{"{next(iter(kind.model_fields))}":'.encode()
    return line.startswith(first) or first.startswith(line)
