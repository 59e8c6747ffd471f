"""Reading a trace, one record at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError

from coag.errors import TraceError
from coag.schema import ENTRY, TRACE_VERSION, Entry, Percept, TraceRecord

_LONGEST_LINE = 1 << 26
"""Bytes; longer than any record, so that a foreign file cannot fill the memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceProblem:
    """Something is wrong with a trace, but all before it can be read."""

    path: Path
    line: int
    """Number of the line, from 1."""
    text: str
    """What is wrong, as a sentence."""


def read_trace(
    path: Path, on_problem: Callable[[TraceProblem], None] | None = None
) -> Iterator[Entry]:
    """The records of a trace in order, read one at a time.

    The last line of a run that was killed may be truncated. That is reported after all whole
    lines were given.

    Args:
        path: A run's `trace.jsonl`.
        on_problem: Is told of a truncated last line; None to have it raised.

    Raises:
        TraceError: If the file cannot be read, is no trace, is of a newer version, has a gap,
            or ends in a truncated line and `on_problem` is None.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        problem = error.strerror or type(error).__name__
        raise TraceError(path, f"cannot be read: {problem}") from error
    with file:
        for number, line in enumerate(_lines(file, path), start=1):
            if not line.endswith(b"\n") and not _is_entry(line):
                problem = TraceProblem(
                    path=path, line=number, text=f"line {number}, the last one, is truncated"
                )
                _report(problem, on_problem)
                return
            yield _checked(line, number, path)


def parse_entry(line: bytes, where: str, path: Path) -> Entry:
    """The entry that a line holds.

    Args:
        line: The line, with or without its newline.
        where: Names the line in errors, e.g. `line 7`.
        path: The trace, for errors.

    Raises:
        TraceError: If the line is no record of this version of the format.
    """
    try:
        entry = ENTRY.validate_json(line)
    except ValidationError as error:
        raise TraceError(path, _why_unreadable(line, where, error)) from error
    if entry.v > TRACE_VERSION:
        raise TraceError(path, _newer(where, entry.v))
    return entry


def cycle_of(record: TraceRecord) -> int | None:
    """The cycle a record names; None for a percept, which belongs to the one before it."""
    return None if isinstance(record, Percept) else record.cycle


def _lines(file: BinaryIO, path: Path) -> Iterator[bytes]:
    while line := file.readline(_LONGEST_LINE + 1):
        if len(line) > _LONGEST_LINE:
            raise TraceError(path, f"is no trace of coag: a line is over {_LONGEST_LINE:,} bytes")
        yield line


def _checked(line: bytes, number: int, path: Path) -> Entry:
    entry = parse_entry(line, f"line {number}", path)
    if entry.seq != number - 1:
        raise TraceError(
            path, f"line {number} has the number {entry.seq}, not {number - 1}: lines are missing"
        )
    return entry


def _report(problem: TraceProblem, on_problem: Callable[[TraceProblem], None] | None) -> None:
    if on_problem is None:
        raise TraceError(problem.path, problem.text)
    on_problem(problem)


def _is_entry(line: bytes) -> bool:
    """True if the line is JSON, so that only its newline is missing."""
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _why_unreadable(line: bytes, where: str, error: ValidationError) -> str:
    try:
        found = json.loads(line)
    except ValueError:
        return f"{where} is not JSON, so this is no trace of coag or it is damaged"
    if not isinstance(found, dict) or not {"v", "seq", "body"} <= found.keys():
        return f"{where} has no `v`, `seq` and `body`, so this is no trace of coag"
    if isinstance(found["v"], int) and found["v"] > TRACE_VERSION:
        return _newer(where, found["v"])
    first = error.errors(include_url=False)[0]
    at = ".".join(str(part) for part in first["loc"])
    return f"{where} is no valid record: {at}: {first['msg']}"


def _newer(where: str, version: int) -> str:
    return (
        f"{where} is of version {version} of the format, and this coag reads up to "
        f"{TRACE_VERSION}. Update coag."
    )
