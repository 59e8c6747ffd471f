"""Where a turn stops: the bounds of one turn, and what a goal may cost over its turns."""

from __future__ import annotations

from pydantic import Field

from coag.context import GoalCost
from coag.schema import Value


class Bounds(Value):
    """Limits of one turn. Reaching one ends the turn with the best answer and the reason."""

    cycles: int = Field(default=20, ge=1)
    """Cycles a turn."""
    impasses: int = Field(default=3, ge=1)
    """Cycles in a row in which no candidate survives and the same calls are rejected again."""
    fresh_impasses: int = Field(default=10, ge=1)
    """Cycles in a row in which no candidate survives, whatever is proposed."""
    actions: int | None = Field(default=None, ge=1)
    """External actions a turn; None for no limit of their own."""


class Budget(Value):
    """What one goal may cost, over as many turns as it takes; None is without limit.

    When the soft share of a limit is reached, one last cycle answers from what is known, without
    tools. Where the limit itself is reached, the turn ends with the best that can be said.
    """

    tokens: int | None = Field(default=None, ge=1)
    """Prompt and completion tokens."""
    calls: int | None = Field(default=None, ge=1)
    """Model calls."""
    seconds: float | None = Field(default=None, gt=0)
    """Seconds spent in cycles, models and tools together."""
    cost: float | None = Field(default=None, gt=0)
    """Money, in the currency of the agent's prices."""
    soft: float = Field(default=0.8, gt=0, le=1)
    """The share of each limit from which on only an answer is given."""

    def reached(self, spent: GoalCost) -> bool:
        """Whether a limit is used up."""
        return self._share(spent) >= 1

    def softly_reached(self, spent: GoalCost) -> bool:
        """Whether the soft share of a limit is used up."""
        return self._share(spent) >= self.soft

    def _share(self, spent: GoalCost) -> float:
        """The share of the limit that is nearest to its end."""
        usage = spent.usage
        shares = (
            (usage.tokens, self.tokens),
            (usage.calls, self.calls),
            (spent.seconds, self.seconds),
            (usage.cost, self.cost),
        )
        return max((used / limit for used, limit in shares if limit is not None), default=0.0)
