"""One record of a trace, whole."""

from __future__ import annotations

from dataclasses import dataclass

from coag.schema import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordView:
    """One record as it stands in the trace."""

    run: str
    """Key of the run."""
    number: int
    """From 0; one less than its line."""
    kind: str
    """What it is, such as `outcome`; empty where it cannot be read."""
    cycle: int | None
    """Its cycle; None for what stands before the first one."""
    phase: Phase | None
    """Its phase, where it has one."""
    of: int
    """How many records are known by now."""
    text: str
    """Its JSON on many lines, with all escaped that steers a terminal; else why it is not shown."""
