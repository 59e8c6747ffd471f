"""What the module itself keeps beside the awareness state."""

from __future__ import annotations

from pydantic import Field

from coag.awareness.state import Reading, Said
from coag.schema import Trust, Value

FAILING_KEPT = 50
"""Actions whose failures in a row are counted."""

_BY_TRUST = (Trust.UNTRUSTED, Trust.USER, Trust.DEVELOPER)


class Failing(Value):
    """An action that has failed since it last succeeded."""

    action: Said
    times: int = Field(ge=1)


class Standing(Value):
    """How the activity goes, as far as no module of the awareness state tells it."""

    goal: str | None = None
    """Id of the goal that the activity serves; closed ones too, until the next."""
    idle: int = Field(default=0, ge=0)
    """Cycles since there was progress."""
    cycles: int = Field(default=0, ge=0)
    """Cycles so far."""
    readings: tuple[Reading, ...] = ()
    """What was left of resources in the last cycles; a reading's step is a cycle."""
    failing: tuple[Failing, ...] = ()
    """The most recent last."""
    serves: str | None = None
    """Whom the agent serves, as a scope; empty while nobody is known, None where one has all."""
    trust: Trust = Trust.DEVELOPER
    """The least trust of any text that went into the state."""

    def times(self, action: str) -> int:
        """How often an action has failed in a row."""
        return next((one.times for one in self.failing if one.action == action), 0)

    def failed(self, action: str) -> Standing:
        """With one more failure of this action."""
        others = tuple(one for one in self.failing if one.action != action)
        failing = (*others, Failing(action=action, times=self.times(action) + 1))
        return self.model_copy(update={"failing": failing[-FAILING_KEPT:]})

    def succeeded(self, action: str) -> Standing:
        """With no failure of this action any more."""
        others = tuple(one for one in self.failing if one.action != action)
        return self.model_copy(update={"failing": others})

    def with_text_of(self, trust: Trust) -> Standing:
        """With text of this trust in the state."""
        least = min(self.trust, trust, key=_BY_TRUST.index)
        return self if least is self.trust else self.model_copy(update={"trust": least})
