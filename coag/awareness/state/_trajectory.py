"""The trajectory: how the situation came about, compressed (SAGEN §3.2)."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from coag.schema import Value

from ._texts import Plain, Said, Step, Text


class TransitionType(StrEnum):
    """What kind of change a transition is."""

    PROGRESS = "progress"
    REVERSAL = "reversal"
    PIVOT = "pivot"
    DISCOVERY = "discovery"
    EXTERNAL_EVENT = "external_event"
    FAILURE = "failure"
    BRANCH = "branch"


STICKY = (TransitionType.FAILURE, TransitionType.REVERSAL, TransitionType.DISCOVERY)
"""What compression keeps, as the paper's section 3.2 has it."""


class Transition(Value):
    """One change of the situation."""

    step: Step
    type: TransitionType
    description: Said
    detail: dict[Text, Plain] = Field(default_factory=dict)


class Trajectory(Value):
    """The changes that still count, oldest first.

    Section 6.7 of the paper calls a pivot sticky, section 3.2 does not. Here section 3.2 holds;
    who wants it otherwise gives `sticky`.
    """

    transitions: tuple[Transition, ...] = ()
    window: int = Field(default=5, ge=0)
    """How many of the latest are kept whatever they are."""
    sticky: tuple[TransitionType, ...] = STICKY
    """Types that are kept however old they are."""

    def record(self, transition: Transition) -> Trajectory:
        """The trajectory with one more transition."""
        return self.model_copy(update={"transitions": (*self.transitions, transition)})

    def compress(self) -> Trajectory:
        """The trajectory with its latest `window` transitions and the sticky ones before them."""
        before = len(self.transitions) - self.window
        if before <= 0:
            return self
        kept = tuple(one for one in self.transitions[:before] if one.type in self.sticky)
        if len(kept) == before:
            return self
        return self.model_copy(update={"transitions": kept + self.transitions[before:]})
