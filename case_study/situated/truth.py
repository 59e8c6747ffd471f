"""What really happened in a demonstrator, whatever its agents say of it."""

from __future__ import annotations

from coag.schema import Value


class GroundTruth(Value):
    """The state of a demonstrator, judged by its goal."""

    success: bool
    """Whether the goal is reached, without a wrong step."""
    lockouts: int = 0
    """Wrong steps after which nothing can be done any more."""
    wrong_increments: int = 0
    """Increments by an agent whose turn it was not."""
    reason: str = ""
    """What went wrong; empty if nothing has."""
