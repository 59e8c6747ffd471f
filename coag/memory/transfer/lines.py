"""Lines of a file of records, and what came of reading them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from pydantic import ValidationError

from coag.errors import ConfigurationError
from coag.memory.write_policy import unfit
from coag.schema import Moment, Record, Value, is_own_id, one_line, record_id

# ---- What becomes of an import: how much of it came, and what is told where it cannot go on ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A line that was not imported."""

    line: int
    """Its number, from 1."""
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What became of the lines of a file."""

    new: int = 0
    """Records that were not there before."""
    known: int = 0
    """Records that were there, with the same fields."""
    differing: int = 0
    """Records that were there with other fields; see `OnConflict`."""
    refused: int = 0
    """Lines that hold no record that could be kept."""
    reasons: tuple[Refused, ...] = ()
    """Why, for the first thousand of them."""
    missing: int = 0
    """Records of which the header tells and the file does not have them."""

    @property
    def lines(self) -> int:
        """How many lines were read."""
        return self.new + self.known + self.differing + self.refused


class TransferError(ConfigurationError):
    """A file cannot be imported, or not further.

    Attributes:
        line: The line at fault, from 1; 0 if it is the file as a whole.
        done: What became of the lines before it.
    """

    def __init__(
        self, file: Path, line: int, problem: str, *, done: Imported | None = None
    ) -> None:
        self.line = line
        self.done = done or Imported()
        self.problem = problem
        where = f"line {line} of {str(file)!r}" if line else repr(str(file))
        super().__init__(f"In {where}: {problem}" if line else f"{where}: {problem}")


# ---- The lines of an exported memory: what they hold, and how they are read back ----


FORMAT = "coag-memory"
"""What the header of every export says it is."""

LONGEST_LINE = 8_000_000
"""Bytes of a line; a record of the longest text that memory keeps has a hundredth of it."""

LONGEST_HEADER = 100_000

CUT_OFF = "The file ends in the middle of this line."
"""Said of a last line that is not whole."""

_COUNT_WIDTH = 20
_SHOWN = 80


class Header(Value):
    """The first line of an export."""

    format: Literal["coag-memory"] = FORMAT
    version: Literal[1] = 1
    made_at: Moment
    embedder: str | None = None
    """With what the exported store made its vectors; those are not part of the export."""
    dimension: int | None = None
    """How many numbers they had."""
    records: int | None = None
    """How many records follow; None where the file was written without looking back."""

    def line(self) -> str:
        """The header as a line, filled up with spaces so that it keeps its length."""
        text = self.model_dump_json()
        width = len(self.model_copy(update={"records": None}).model_dump_json()) + _COUNT_WIDTH
        return f"{text:<{width}}\n"


class LineError(ValueError):
    """A line that holds no record that could be kept."""


def read_header(file: Path, line: bytes) -> Header:
    """The header of an export.

    Raises:
        TransferError: If the line is none.
    """
    try:
        return Header.model_validate_json(line.decode("utf-8-sig"))
    except (ValidationError, UnicodeDecodeError) as error:
        shown = line[:_SHOWN].decode("utf-8", "replace")
        raise TransferError(
            file,
            1,
            f"it is no header of an exported memory that this version reads, but {shown!r}. The "
            f'first line tells {{"format": "{FORMAT}", "version": 1, ...}}.',
        ) from error


def numbered(source: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines that follow the header, with their numbers; empty ones are left out.

    A line that is too long comes cut, so that no file can fill the memory.
    """
    number = 1
    while line := source.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
            while (rest := source.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                pass
        if line.strip():
            yield number, line


def parse_record(line: bytes) -> Record:
    """The record that a line holds.

    Raises:
        LineError: If it holds none, one whose id is not that of its text, or one that no
            memory keeps.
    """
    if len(line) > LONGEST_LINE:
        raise LineError(f"it has more than {LONGEST_LINE:,} bytes; no record is as long.")
    try:
        record = Record.model_validate_json(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise LineError(f"it is no text in UTF-8 ({error.reason} at byte {error.start}).") from None
    except ValidationError as error:
        raise LineError(_no_record(line, error)) from None
    if not is_own_id(record):
        own = record_id(record.kind, record.scope, record.text)
        raise LineError(
            f"its id {one_line(record.id, 60)!r} is not that of its kind, scope and text, which is "
            f"{own!r}; somebody has changed one of them."
        )
    problem = unfit(record)
    if problem is not None:
        raise LineError(f"its record {record.id} cannot be kept: {problem}")
    return record


def _no_record(line: bytes, error: ValidationError) -> str:
    shown = one_line(line.decode("utf-8", "replace"), _SHOWN)
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(map(str, first["loc"]))
    at = f" ({where})" if where else ""
    value = "" if not where else f", not {one_line(repr(first['input']), _SHOWN)}"
    if not line.endswith(b"\n"):
        return f"it holds no record: {shown!r}. {CUT_OFF}"
    return (
        f"it holds no record: {first['msg'].removeprefix('Value error, ')}{at}{value}: {shown!r}."
    )
