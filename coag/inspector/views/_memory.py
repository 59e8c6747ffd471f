"""Long-term memory as a run used it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from coag.schema import RecalledRecord, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRow:
    """A record that was written in the run."""

    record: Record
    cycle: int
    at: datetime
    recalled: tuple[int, ...] = ()
    """Cycles that recalled it afterwards, the first ones of many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRow:
    """One retrieval."""

    cycle: int
    query: str
    hits: tuple[RecalledRecord, ...]
    """With the parts of their scores."""
    left_out: tuple[str, ...] = ()
    """Ids of those for which the prompt had no room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPage:
    """A page of each."""

    written: tuple[RecordRow, ...] = ()
    written_total: int = 0
    recalls: tuple[RecallRow, ...] = ()
    """Retrievals that brought something, newest first."""
    recalls_total: int = 0
    page: int = 1
    pages: int = 1
    unreadable: int = 0
    """How many of what was written on this page are no records."""
