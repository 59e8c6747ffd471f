"""A goal: what the agent tries to bring about (SAGEN §3.1, tables 1 and 13)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from coag.schema import Value, content_id

from ._texts import Said, Share, Step, folded

GoalId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8}$")]
"""Eight hexadecimal digits."""


class GoalStatus(StrEnum):
    """Where a goal stands in its life."""

    ACTIVE = "active"
    COMPLETED = "completed"
    ABANDONED = "abandoned"
    BLOCKED = "blocked"
    """Open, but something it depends on is not completed; the goal graph sets it by itself."""
    DEFERRED = "deferred"
    """Open, but put off; it stays so until somebody takes it up again."""


CLOSED = frozenset({GoalStatus.COMPLETED, GoalStatus.ABANDONED})
"""How a goal ends."""


class GoalSource(StrEnum):
    """Where a goal comes from."""

    EXPLICIT = "explicit"
    """Said by the user."""
    INFERRED = "inferred"
    """Taken from what the user does or asks."""
    EMERGENT = "emergent"
    """Found by looking at the state."""
    SPAWNED = "spawned"
    """Made to serve another goal."""


class GoalOutcomes(Value):
    """How often what was done for a goal helped it, and how often not."""

    successes: int = Field(default=0, ge=0)
    failures: int = Field(default=0, ge=0)


class Goal(Value):
    """One objective, with where it comes from and what it waits for."""

    id: GoalId
    description: Said
    status: GoalStatus = GoalStatus.ACTIVE
    source: GoalSource = GoalSource.EXPLICIT
    priority: Share = 0.5
    """Urgency and importance, 0 to 1."""
    parent_id: GoalId | None = None
    """The goal that it serves; None for a root goal."""
    depends_on: tuple[GoalId, ...] = ()
    """Goals that must be completed first."""
    completion_criteria: Said | None = None
    """How one can tell that it is reached."""
    created_step: Step = 0
    updated_step: Step = 0
    """When it was last named, changed, blocked or freed."""
    closed_step: Step | None = None
    """When it was completed or abandoned; None while it is open."""
    outcomes: GoalOutcomes = GoalOutcomes()

    @property
    def is_open(self) -> bool:
        """Whether it is neither completed nor abandoned."""
        return self.status is not GoalStatus.COMPLETED and self.status is not GoalStatus.ABANDONED


def goal_id(description: str, source: GoalSource, step: int, ordinal: int) -> str:
    """The id that follows from these; the same history gives the same ids on every machine.

    Args:
        description: Compared without case and spacing.
        source: Where the goal comes from.
        step: When it is made.
        ordinal: How many goals there are before it.
    """
    return content_id(folded(description), source.value, str(step), str(ordinal))[:8]
