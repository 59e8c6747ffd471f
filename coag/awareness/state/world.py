"""The world model, attention, the trajectory and the protocol of talk."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from coag.errors import AwarenessError
from coag.schema import Value, content_id

from .texts import Names, Plain, Said, Share, Step, Text, folded

# ---- The world model: what there is, how it hangs together, what is not known (SAGEN §3.3) ----


class Entity(Value):
    """One thing in the agent's environment."""

    name: Said
    type: Said
    """One of the domain's types; what it was first seen as."""
    state: dict[Text, Plain] = Field(default_factory=dict)
    affordances: Names = ()
    """What can be done with it."""
    aliases: Names = ()
    """Other names by which it was recognised."""
    first_step: Step = 0
    last_step: Step = 0
    """When it was last mentioned."""
    mentions: int = Field(default=1, ge=1)
    """In how many observations it was named, counted once each time it is named."""


class Relationship(Value):
    """A typed edge between two things, by their names.

    An end that is no entity (the user, the agent) stands as it was said.
    """

    source: Said
    type: Said
    target: Said
    step: Step = 0
    """When it was last seen."""


class Belief(Value):
    """Something assumed, or a question without an answer."""

    text: Said
    step: Step = 0
    """When it was first said."""
    resolved: Step | None = None
    """When it was settled; None while it is open."""


class MergeReason(StrEnum):
    """How a name was recognised as an entity's."""

    NORMAL_FORM = "normal form"
    """Equal without case, accents, punctuation, possessive and plural."""
    CONTAINED = "contained"
    """Equal without words that say nothing of their own, as in `Python programming`."""
    EMBEDDING = "embedding"
    """Near in meaning."""


class Merge(Value):
    """That a name was taken for an entity's; wrong ones can be found here."""

    name: Said
    """As it was observed."""
    entity: Said
    """The entity's own name."""
    how: MergeReason
    score: Share = 1.0
    """Cosine of the two names for `embedding`, else 1."""
    step: Step = 0


class WorldModel(Value):
    """What the agent holds of its environment, and where its knowledge ends."""

    entities: tuple[Entity, ...] = ()
    """In the order in which they were first seen."""
    relationships: tuple[Relationship, ...] = ()
    assumptions: tuple[Belief, ...] = ()
    """What is held, but not verified."""
    unknowns: tuple[Belief, ...] = ()
    """Questions that have no answer yet."""
    merges: tuple[Merge, ...] = ()
    """The latest, oldest first."""

    @property
    def open_assumptions(self) -> tuple[Belief, ...]:
        """Assumptions that are not settled."""
        return tuple(one for one in self.assumptions if one.resolved is None)

    @property
    def open_unknowns(self) -> tuple[Belief, ...]:
        """Questions that are not answered."""
        return tuple(one for one in self.unknowns if one.resolved is None)

    def of_type(self, type: str) -> tuple[Entity, ...]:
        """The entities of one type, in the order in which they were first seen."""
        return tuple(one for one in self.entities if one.type == type)

    def get(self, name: str) -> Entity | None:
        """The entity of exactly this name; None if there is none."""
        return next((one for one in self.entities if one.name == name), None)


# ---- Attention: what needs the agent's focus, and what it watches for (SAGEN §3.5) ----


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


# ---- The trajectory: how the situation came about, compressed (SAGEN §3.2) ----


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


# ---- The interaction protocol: the contract under which the agent acts (SAGEN §3.6) ----


class CollaborationMode(StrEnum):
    """Who decides."""

    AUTONOMOUS = "autonomous"
    SUPERVISED = "supervised"
    COLLABORATIVE = "collaborative"
    ADVISORY = "advisory"


class InteractionProtocol(Value):
    """How the agent talks, when it asks for help, and what it must never do."""

    style: Text = ""
    """How it talks, e.g. `friendly, adaptive`."""
    output_format: Text = ""
    escalation: Names = ()
    """When it hands over to a human, one rule each."""
    mode: CollaborationMode = CollaborationMode.COLLABORATIVE
    hard_constraints: Names = ()
    """What holds whatever else is wanted, one rule each."""
