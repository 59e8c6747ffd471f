"""What becomes of an import: how much of it came, and what is told where it cannot go on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from coag.errors import ConfigurationError


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
