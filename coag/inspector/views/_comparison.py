"""Two runs side by side."""

from __future__ import annotations

from dataclasses import dataclass

from ._cycles import CycleRow
from ._runs import RunCard


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCycle:
    """The same cycle in both."""

    number: int
    left: CycleRow | None
    """None where that run has no such cycle."""
    right: CycleRow | None
    differs: tuple[str, ...] = ()
    """What is different, as phases or `usage`; empty where both did the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two runs from their first divergence on."""

    left: RunCard
    right: RunCard
    divergence: int | None
    """The first cycle in which they differ; None where they never do."""
    field: str = ""
    """Where in it: phase and field."""
    left_value: str = ""
    right_value: str = ""
    rows: tuple[ComparedCycle, ...] = ()
    """The page of cycles that is shown."""
    first: int = 0
    """Position of the first row."""
    of: int = 0
    """How many cycles the longer one has."""
    page_size: int = 50
    related: str = ""
    """How they are related: `fork of`, `same request`, or empty."""
    changes: tuple[str, ...] = ()
    """Of a fork: what was changed."""
