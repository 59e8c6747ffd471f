"""Attention: what needs the agent's focus, and what it watches for (SAGEN §3.5)."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from coag.errors import AwarenessError
from coag.schema import Value, content_id

from ._texts import Said, Share, Step, Text, folded


class AttentionType(StrEnum):
    """Why something needs attention."""

    THREAT = "threat"
    OPPORTUNITY = "opportunity"
    ANOMALY = "anomaly"
    TRANSITION = "transition"


class AttentionItem(Value):
    """One thing to attend to."""

    id: Said
    type: AttentionType
    description: Said
    urgency: Share = 0.5
    ttl: int | None = Field(default=None, gt=0)
    """How many steps it is there for, its own among them; None until it is taken away."""
    created_step: Step = 0
    source: Text = ""
    """Who noticed it, e.g. an adapter's domain."""


def attention_id(type: AttentionType, description: str, slot: str = "") -> str:
    """The id of an item: the same thing noticed again has the same one, and all of one slot."""
    if slot:
        return content_id("slot", folded(slot))[:8]
    return content_id(type.value, folded(description))[:8]


class ScanPattern(Value):
    """Something to watch for; it outlives the items."""

    name: Said
    description: Said


class Attention(Value):
    """What needs focus now, what is ignored on purpose, and what to watch for."""

    items: tuple[AttentionItem, ...] = ()
    """In the order in which they were noticed first."""
    suppressed: tuple[Said, ...] = ()
    """Ids that are ignored; an item that comes back is ignored again."""
    scan_patterns: tuple[ScanPattern, ...] = ()

    @property
    def visible(self) -> tuple[AttentionItem, ...]:
        """The items that are not suppressed: the most urgent first, of equals the newest."""
        ignored = frozenset(self.suppressed)
        shown = [item for item in reversed(self.items) if item.id not in ignored]
        return tuple(sorted(shown, key=lambda item: (-item.urgency, -item.created_step)))

    def add(self, *items: AttentionItem) -> Attention:
        """With these items; each takes the place of the one with its id."""
        known = {item.id: item for item in self.items}
        known.update((item.id, item) for item in items)
        return self.model_copy(update={"items": tuple(known.values())})

    def expire(self, step: int) -> Attention:
        """Without the items whose time is over at this step."""
        items = tuple(
            item for item in self.items if item.ttl is None or step - item.created_step < item.ttl
        )
        return self if len(items) == len(self.items) else self.model_copy(update={"items": items})

    def suppress(self, id: str) -> Attention:
        """With this item ignored, but not deleted.

        Raises:
            AwarenessError: No item has this id.
        """
        if id in self.suppressed:
            return self
        if all(item.id != id for item in self.items):
            known = ", ".join(item.id for item in self.items) or "none"
            raise AwarenessError(f"No attention item has the id {id!r}. Known: {known}.")
        return self.model_copy(update={"suppressed": (*self.suppressed, id)})

    def unsuppress(self, id: str) -> Attention:
        """With this item no longer ignored.

        Raises:
            AwarenessError: The id is not suppressed.
        """
        if id not in self.suppressed:
            known = ", ".join(self.suppressed) or "none"
            raise AwarenessError(f"The id {id!r} is not suppressed. Suppressed: {known}.")
        kept = tuple(one for one in self.suppressed if one != id)
        return self.model_copy(update={"suppressed": kept})
