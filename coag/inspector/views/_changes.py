"""What changed from one value or text to the next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field of a JSON value that is not what it was."""

    path: str
    """Dotted."""
    before: Any = None
    """None where it was not there."""
    after: Any = None
    """None where it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """One line of a text beside an earlier version of it."""

    sort: Literal["same", "added", "removed", "skipped"]
    text: str
    """Of skipped lines: how many."""
    old: int | None = None
    """Number of the line in the earlier text, from 1."""
    new: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureStep:
    """One version of a procedure."""

    version: int
    at: datetime | None
    cycle: int | None
    """The cycle in which it was written; None where it was there at the start."""
    author: str
    reason: str
    text: str
    diff: tuple[DiffLine, ...] = ()
    """Against the version before; empty for the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureHistory:
    """All versions of one procedure that the trace tells of, oldest first."""

    name: str
    current: int
    """The version in force at the end."""
    steps: tuple[ProcedureStep, ...] = ()
    """Empty where only the number is known: it never changed, so its text is in no snapshot."""
