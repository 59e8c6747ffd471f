"""A trace line by line, with what is wrong with each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from coag.errors import TraceError
from coag.schema import Entry

from ._binding import info_fields, opening_hash
from ._chain import Chain, body_of
from ._parse import ParsedLine, Unreadable, is_json, parse_line
from ._regular import regular

LONGEST_LINE = 1 << 26
"""Bytes; longer than any record, so that a foreign file cannot fill the memory."""


class ProblemKind(StrEnum):
    """What can be wrong with a line."""

    TRUNCATED = "truncated"
    """The last line is not whole: the run was killed, or is just writing it."""
    UNREADABLE = "unreadable"
    """The line is no record: it is damaged, foreign, or of a newer version."""
    NUMBER = "number"
    """The line's number does not follow: lines are missing, were added or moved."""
    HASH = "hash"
    """The line's hash does not follow from its text and the line before it, or it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceProblem:
    """Something is wrong with a line of a trace."""

    path: Path
    line: int
    """Number of the line, from 1."""
    kind: ProblemKind
    text: str
    """What is wrong, as a sentence that names the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceLine:
    """One line of a trace."""

    number: int
    """From 1."""
    entry: Entry | None
    """What it holds, as this version has it; None if it cannot be read."""
    version: int | None
    """The version of the format that it was written in; None if it cannot be read."""
    problems: tuple[TraceProblem, ...] = ()
    """What is wrong with it; none for a line that is as it was written."""
    body: bytes = b""
    """The record's JSON as it stands in the line; empty for other versions than this one."""
    bound: bool = False
    """Of a first line: whether its hash follows from what `run.json` says."""


def read_lines(path: Path) -> Iterator[TraceLine]:
    """All lines of a trace, bad ones too, read one at a time.

    Numbers and hashes are measured by the line before, so that one change is told of once. Lines
    that are missing at the end are not seen here: they are found by the `Seal` of `run.json`.
    What stands behind a line of over 64 MB is not read.

    Args:
        path: A run's `trace.jsonl`.

    Raises:
        TraceError: If the file cannot be read at all.
    """
    check = LineCheck(path)
    try:
        with open(path, "rb", opener=regular) as file:
            for line in _raw_lines(file):
                yield check.line(line)
    except OSError as error:
        raise TraceError(path, f"cannot be read: {_reason(error)}") from error


def line_by_itself(path: Path, number: int, text: bytes) -> TraceLine:
    """One line, whose number and hash are not measured by the line before.

    Args:
        path: The trace, for problems.
        number: The line's, from 1.
        text: The line with its newline.
    """
    parsed = parse_line(text)
    if not isinstance(parsed, Unreadable):
        return TraceLine(number=number, entry=parsed.entry, version=parsed.version)
    sentence = f"line {number} {parsed.why}"
    kind = ProblemKind.UNREADABLE
    problem = TraceProblem(path=path, line=number, kind=kind, text=sentence)
    return TraceLine(number=number, entry=None, version=None, problems=(problem,))


class LineCheck:
    """Parses and checks the lines of one trace, from its first.

    Args:
        path: The trace, for problems.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._chain: Chain | None = None
        self._number = 0
        self._seq = 0

    def line(self, text: bytes) -> TraceLine:
        """The next line.

        Args:
            text: The line with its newline; without one it is the last, as far as it got.
        """
        self._number += 1
        chain = self._chain = self._chain or Chain(_opening_beside(self._path))
        where = f"line {self._number}"
        if not text.endswith(b"\n"):
            if len(text) > LONGEST_LINE:
                problem = f"{where} is over {LONGEST_LINE:,} bytes, so this is no trace of coag"
                return self._bad(chain, text, ProblemKind.UNREADABLE, problem)
            if not is_json(text):
                problem = f"{where}, the last one, is truncated"
                return self._bad(chain, text, ProblemKind.TRUNCATED, problem)
        parsed = parse_line(text)
        if isinstance(parsed, Unreadable):
            return self._bad(chain, text, ProblemKind.UNREADABLE, f"{where} {parsed.why}")
        return TraceLine(
            number=self._number,
            entry=parsed.entry,
            version=parsed.version,
            problems=tuple(self._problems(chain, text, parsed)),
            body=body_of(text),
            bound=chain.bound,
        )

    def _problems(self, chain: Chain, text: bytes, parsed: ParsedLine) -> Iterator[TraceProblem]:
        seq, expected = parsed.entry.seq, self._seq
        self._seq = seq + 1
        if seq != expected:
            missing = "lines are missing" if seq > expected else "lines were added or moved"
            sentence = f"line {self._number} has the number {seq}, not {expected}: {missing}"
            yield self._problem(ProblemKind.NUMBER, sentence)
        if not chain.fits(text, parsed.version):
            others = (
                "lines before it are missing, were added or moved"
                if self._number > 1
                else "what run.json says of the run's beginning was, or lines before it are missing"
            )
            sentence = (
                f"line {self._number} has a hash that does not fit: it was changed, or {others}"
            )
            yield self._problem(ProblemKind.HASH, sentence)

    def _bad(self, chain: Chain, text: bytes, kind: ProblemKind, sentence: str) -> TraceLine:
        self._seq += 1
        chain.fits(text, None)
        problem = self._problem(kind, sentence)
        return TraceLine(number=self._number, entry=None, version=None, problems=(problem,))

    def _problem(self, kind: ProblemKind, sentence: str) -> TraceProblem:
        return TraceProblem(path=self._path, line=self._number, kind=kind, text=sentence)


def _opening_beside(trace: Path) -> str | None:
    """What the `run.json` beside a trace binds it to; None where there is none that can be read."""
    fields = info_fields(trace.with_name("run.json"))
    return None if fields is None else opening_hash(fields)


def _raw_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines with their newlines; of one that is too long only its beginning, as the last."""
    while line := file.readline(LONGEST_LINE + 1):
        yield line
        if len(line) > LONGEST_LINE:
            return


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
