"""Candidates and how they are judged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from ._value import Value


class UnsettledAction(Value):
    """An external action of which it is not known whether it had its effect."""

    intent_id: str
    action: str
    arguments: dict[str, Any]
    cycle: int
    """The cycle in which it began."""
    memory_scope: str = ""
    """For whom it began, where the domain tells people apart."""


Reconciliation = Literal["happened", "did_not_happen", "unknown"]
"""What could be found out about such an action."""


class Candidate(Value):
    """A proposed action with its arguments, reason and expected effect (CoALA §4.6)."""

    id: str
    action: str
    raw_arguments: str = "{}"
    """The arguments as the model wrote them: a JSON object in a string, not yet checked."""
    arguments: dict[str, Any] | None = None
    """The arguments parsed and valid for the action's schema; None before Evaluation."""
    reason: str = ""
    expected_effect: str = ""
    batch: str | None = None
    """What the tool calls of one answer share: they are no alternatives (`proposal="native"`)."""
    call_id: str = ""
    """The model's own id of its tool call; empty where it called none, or gave no id of its own."""
    draft_score: float | None = Field(default=None, ge=0.0, le=1.0)
    """The model's own score where one call gave candidates and scores (`depth="compact"`)."""
    unsettled: tuple[UnsettledAction, ...] = ()
    """For whoever judges: the external actions whose outcome is not known. While there is one, the
    perceptual state may not be what it says. Empty in the trace."""


class Verdict(Value):
    """What one constraint says about one candidate."""

    allowed: bool
    reason: str = ""
    constraint: str = ""
    """Name of the constraint; filled in by whoever asked it."""

    @classmethod
    def allow(cls, reason: str = "") -> Verdict:
        """The candidate may be executed as far as this constraint is concerned."""
        return cls(allowed=True, reason=reason)

    @classmethod
    def forbid(cls, reason: str) -> Verdict:
        """The candidate must not be executed; `reason` is shown to the agent and logged."""
        return cls(allowed=False, reason=reason)


class Evaluation(Value):
    """Everything that was found out about one candidate before one is selected."""

    candidate_id: str
    arguments: dict[str, Any] | None = None
    """The parsed arguments; None if they could not be parsed or fail the schema."""
    verdicts: tuple[Verdict, ...]
    """One per check and constraint in force, in order; the first that forbids ends the list."""
    projection: dict[str, Any] | None = None
    """The perceptual state that the domain's forward model predicts, as JSON."""
    gain: float | None = Field(default=None, ge=-1.0, le=1.0)
    """By how much the domain's heuristic value of the predicted state exceeds that of the state
    now, limited to -1..1; None where the domain has no such value."""
    score: float | None = Field(default=None, ge=0.0, le=1.0)
    """The model's judgement of a surviving candidate, 1 is best; None if it gave none."""
    reason: str = ""

    def rank(self, unscored: float = 0.5) -> float:
        """What ranking goes by: the score and the gain together.

        Args:
            unscored: What stands for a score that was not given.
        """
        return (unscored if self.score is None else self.score) + (self.gain or 0.0)

    @property
    def survived(self) -> bool:
        """True if nothing forbids the candidate."""
        return all(verdict.allowed for verdict in self.verdicts)

    @property
    def died_of(self) -> Verdict | None:
        """The verdict that ended it, or None for a survivor."""
        return next((verdict for verdict in self.verdicts if not verdict.allowed), None)


def numbered(evaluations: Iterable[Evaluation]) -> tuple[Evaluation, ...]:
    """The survivors in the order of their numbers in prompts: by predicted gain, the best first.

    Small models favour what stands first in a list, whatever is said of it; so what the domain
    foresees decides what does. Without gains it is the order of the proposal.
    """
    survivors = (judged for judged in evaluations if judged.survived)
    return tuple(sorted(survivors, key=lambda judged: -(judged.gain or 0.0)))
