"""The self model: what the agent can, may and has (SAGEN §3.4)."""

from __future__ import annotations

from pydantic import model_validator

from coag.schema import Value

from ._texts import Amount, Names, Said, Step, Text


class Resource(Value):
    """Something bounded that acting takes: tokens, calls, seconds, charge."""

    name: Said
    capacity: Amount
    """How much there is at most."""
    remaining: Amount
    """How much is left."""
    depletable: bool = True
    """Whether spending lessens it; a room or a licence is there again afterwards."""

    @model_validator(mode="after")
    def _no_more_than_fits(self) -> Resource:
        if self.remaining > self.capacity:
            raise ValueError(
                f"resource {self.name!r} has {self.remaining:g} remaining of {self.capacity:g}: "
                "give a capacity that holds it"
            )
        return self


class Need(Value):
    """What an action takes of a resource."""

    action: Said
    """The action's name; `*` stands for any characters."""
    resource: Said
    amount: Amount


class FailureNote(Value):
    """A mistake that was made, and what to learn from it."""

    step: Step
    action: Said
    reason: Text = ""
    lesson: Text = ""


class CanI(Value):
    """The verdict of the check before an action."""

    action: Said
    capable: bool
    """Whether the agent is able to."""
    authorised: bool
    """Whether it is allowed to."""
    resourced: bool
    """Whether it has what that takes."""
    reasons: tuple[str, ...] = ()
    """A sentence for each `no`."""

    @property
    def yes(self) -> bool:
        """Whether all three hold."""
        return self.capable and self.authorised and self.resourced


class SelfModel(Value):
    """What the agent knows of itself. What is not declared is not restricted."""

    capabilities: Names = ()
    """Actions that it is able to do, `*` for any characters; none declared: all."""
    limitations: Names = ()
    """Actions that it is not able to do."""
    resources: tuple[Resource, ...] = ()
    needs: tuple[Need, ...] = ()
    """What actions take; one without an entry takes some of everything that can run out."""
    allowed: Names = ()
    """Actions that it may do, `*` for any characters; none declared: all."""
    forbidden: Names = ()
    """Actions that it must not do, whatever is allowed."""
    failures: tuple[FailureNote, ...] = ()
    """Oldest first."""
