"""The check before an action, as a constraint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coag.awareness.state import CanI, Names, SelfModel
from coag.schema import Candidate, Verdict


@dataclass(frozen=True, slots=True)
class CanIRule:
    """Forbids what the self model says the agent cannot do, may not do, or has no means for."""

    name: str
    """How logs call it."""
    self_model: SelfModel
    """As it stood when the cycle began."""
    own_actions: Names
    """Actions of the agent's own: only what is forbidden, or a limitation, holds for them."""

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
        """Judges an action by its name."""
        del state, projection
        answer = self.can_i(candidate.action)
        return Verdict.allow() if answer.yes else Verdict.forbid(" ".join(answer.reasons))

    def can_i(self, action: str) -> CanI:
        """The verdict of the self model, or of its prohibitions alone for an own action."""
        if SelfModel(capabilities=self.own_actions).can_i(action).capable:
            known = self.self_model
            rules = SelfModel(limitations=known.limitations, forbidden=known.forbidden)
            return rules.can_i(action)
        return self.self_model.can_i(action)
