"""What the rules and the domain saw in one percept, as one observation."""

from __future__ import annotations

from coag.awareness._observation import Observation, ObservedEvent
from coag.awareness.state import TransitionType

_SINGLE = frozenset({"event", "failure"})


def joined(rules: Observation, domain: Observation) -> Observation:
    """Both; where each has an event, the domain's, unless it only says that things go on."""
    together: dict[str, object] = {
        name: (*getattr(rules, name), *getattr(domain, name))
        for name in Observation.model_fields
        if name not in _SINGLE
    }
    together["event"] = _event(rules.event, domain.event)
    together["failure"] = domain.failure or rules.failure
    return rules.model_copy(update=together)


def _event(rules: ObservedEvent | None, domain: ObservedEvent | None) -> ObservedEvent | None:
    if rules is None or domain is None:
        return domain or rules
    return rules if domain.type is TransitionType.PROGRESS else domain
