"""What belongs together in a trace."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Neighbouring lines that belong to one cycle, or of a plain run to one turn.

    It begins with the turn's start or the cycle's snapshot and ends before the next one's, so
    that what an action brought back stands in the cycle that ran it. Where neither was written,
    it begins with the first record that names a later cycle.
    """

    cycle: int
    """The cycle, of a plain run the turn; 0 for what stands before the first."""
    first: int
    """Position of its first line, from 0."""
    count: int
    """How many lines it has so far."""
