"""What the agent keeps of earlier steps to see ahead: readings of resources, outcomes of goals."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from coag.schema import Value

from ._texts import Amount, Said, Step


class Reading(Value):
    """How much of a resource there was at a step."""

    resource: Said
    step: Step
    remaining: Amount


class TallyOf(StrEnum):
    """By what goals are counted together."""

    SOURCE = "source"
    """Where they come from."""
    TYPE = "type"
    """What they are about, in the words of whoever counts."""


class Tally(Value):
    """How goals that have something in common went."""

    of: TallyOf
    name: Said
    """The source or the type that they share."""
    successes: int = Field(default=0, ge=0)
    failures: int = Field(default=0, ge=0)
