"""The awareness state: six modules on one blackboard, as frozen values (SAGEN §3, appendix A).

`AwarenessState` holds the goal graph, the trajectory, the world model, the self model, attention
and the interaction protocol, with a step and a time. Each module is a value with views of itself
and methods that give a changed one; nothing is changed in place. A state dumped as JSON loads to
an equal value.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, Literal

from pydantic import Field, model_validator

from coag.errors import AwarenessError
from coag.schema import Moment, Value, content_id, folded

from .fields import Amount, Names, NonBlank, Scalar, Share, Step, Text, occurs_in_row
from .goals import GoalGraph

# ---- The world model: things, relationships, and what is not known (SAGEN §3.3) ----


class Entity(Value):
    """One thing in the agent's environment."""

    name: NonBlank
    type: NonBlank
    """One of the domain's types; what it was first seen as."""
    state: dict[Text, Scalar] = Field(default_factory=dict)
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
    """A typed edge between two things, by their names; an end may be no entity (the user)."""

    source: NonBlank
    type: NonBlank
    target: NonBlank
    step: Step = 0
    """When it was last seen."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Source, type and target: what makes it the same relationship."""
        return (self.source, self.type, self.target)


class Belief(Value):
    """Something assumed, or a question without an answer."""

    text: NonBlank
    step: Step = 0
    """When it was first stated."""
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
    """That a name was recognised as an entity's; wrong ones can be found here."""

    name: NonBlank
    """As it was observed."""
    entity: NonBlank
    """The entity's own name."""
    how: MergeReason
    score: Share = 1.0
    """Cosine of the two names for `embedding`, else 1."""
    step: Step = 0


class WorldModel(Value):
    """What the agent knows of its environment, and where its knowledge ends."""

    entities: tuple[Entity, ...] = ()
    """In the order in which they were first seen."""
    relationships: tuple[Relationship, ...] = ()
    assumptions: tuple[Belief, ...] = ()
    """What is assumed, but not verified."""
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


# ---- Attention: what needs focus, and what to watch for (SAGEN §3.5) ----


class AttentionType(StrEnum):
    """Why something needs attention."""

    THREAT = "threat"
    OPPORTUNITY = "opportunity"
    ANOMALY = "anomaly"
    TRANSITION = "transition"


class AttentionItem(Value):
    """One thing to attend to."""

    id: NonBlank
    type: AttentionType
    description: NonBlank
    urgency: Share = 0.5
    ttl: int | None = Field(default=None, gt=0)
    """For how many steps it lasts, its first among them; None until it is removed."""
    created_step: Step = 0
    source: Text = ""
    """Who noticed it, e.g. an adapter's domain."""


def attention_id(type: AttentionType, description: str, slot: str = "") -> str:
    """The id of an item: equal for the same thing noticed again, and for all of one slot."""
    parts = ("slot", slot) if slot else (type.value, description)
    return content_id(parts[0], folded(parts[1]))[:8]


class ScanPattern(Value):
    """Something to watch for; it outlives the items."""

    name: NonBlank
    description: NonBlank


class Attention(Value):
    """What needs focus now, what is ignored on purpose, and what to watch for."""

    items: tuple[AttentionItem, ...] = ()
    """In the order in which they were noticed first."""
    suppressed: tuple[NonBlank, ...] = ()
    """Ids that are ignored; an item that comes back is ignored again."""
    scan_patterns: tuple[ScanPattern, ...] = ()

    @property
    def visible(self) -> tuple[AttentionItem, ...]:
        """The items that are not suppressed: the most urgent first, of equals the newest."""
        ignored = frozenset(self.suppressed)
        items = [item for item in reversed(self.items) if item.id not in ignored]
        return tuple(sorted(items, key=lambda item: (-item.urgency, -item.created_step)))

    def add(self, *items: AttentionItem) -> Attention:
        """With these items; each replaces the one with its id."""
        known = {item.id: item for item in self.items}
        known.update((item.id, item) for item in items)
        return self.model_copy(update={"items": tuple(known.values())})

    def without(self, *ids: str) -> Attention:
        """Without the items of these ids; itself if it has none of them."""
        items = tuple(item for item in self.items if item.id not in ids)
        return self if len(items) == len(self.items) else self.model_copy(update={"items": items})

    def expire(self, step: int) -> Attention:
        """Without the items whose time is over at this step."""
        over = (i.id for i in self.items if i.ttl is not None and step - i.created_step >= i.ttl)
        return self.without(*over)

    def suppress(self, id: str) -> Attention:
        """With this item ignored, but not deleted; `AwarenessError` where no item has this id."""
        if id in self.suppressed:
            return self
        if all(item.id != id for item in self.items):
            known = ", ".join(item.id for item in self.items) or "none"
            raise AwarenessError(f"No attention item has the id {id!r}. Known: {known}.")
        return self.model_copy(update={"suppressed": (*self.suppressed, id)})

    def unsuppress(self, id: str) -> Attention:
        """With this item no longer ignored; `AwarenessError` where it was not."""
        if id not in self.suppressed:
            known = ", ".join(self.suppressed) or "none"
            raise AwarenessError(f"The id {id!r} is not suppressed. Suppressed: {known}.")
        others = tuple(one for one in self.suppressed if one != id)
        return self.model_copy(update={"suppressed": others})


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
    description: NonBlank
    detail: dict[Text, Scalar] = Field(default_factory=dict)


class Trajectory(Value):
    """The changes that still count, oldest first.

    Section 6.7 of the paper calls a pivot sticky, section 3.2 does not. Section 3.2 holds by
    default; give `sticky` for another choice.
    """

    transitions: tuple[Transition, ...] = ()
    window: int = Field(default=5, ge=0)
    """How many of the latest are kept, of any type."""
    sticky: tuple[TransitionType, ...] = STICKY
    """Types that are kept at any age."""

    def record(self, transition: Transition) -> Trajectory:
        """The trajectory with one more transition."""
        return self.model_copy(update={"transitions": (*self.transitions, transition)})

    def compress(self) -> Trajectory:
        """The trajectory with its latest `window` transitions and the sticky ones before them."""
        before = len(self.transitions) - self.window
        if before <= 0 or all(one.type in self.sticky for one in self.transitions[:before]):
            return self
        sticky = (one for one in self.transitions[:before] if one.type in self.sticky)
        return self.model_copy(update={"transitions": (*sticky, *self.transitions[before:])})


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
    """What always holds, one rule each."""


# ---- The self model: what the agent can, may and has (SAGEN §3.4) ----


class Resource(Value):
    """Something bounded that actions consume: tokens, calls, seconds, charge."""

    name: NonBlank
    capacity: Amount
    """How much there is at most."""
    remaining: Amount
    depletable: bool = True
    """Whether spending reduces it; a room or a licence is available again afterwards."""

    @model_validator(mode="after")
    def _no_more_than_fits(self) -> Resource:
        if self.remaining > self.capacity:
            raise ValueError(
                f"resource {self.name!r} has {self.remaining:g} remaining of {self.capacity:g}: "
                "give a capacity that holds it"
            )
        return self


class Reading(Value):
    """How much of a resource there was at a step."""

    resource: NonBlank
    step: Step
    remaining: Amount


class Need(Value):
    """What an action takes of a resource."""

    action: NonBlank
    """The action's name; `*` matches any characters."""
    resource: NonBlank
    amount: Amount


class FailureNote(Value):
    """A mistake that was made, and its lesson."""

    step: Step
    action: NonBlank
    reason: Text = ""
    lesson: Text = ""


class TallyOf(StrEnum):
    """By what goals are counted together."""

    SOURCE = "source"
    """Where they come from."""
    TYPE = "type"
    """What they are about."""


class Tally(Value):
    """How goals that have something in common went."""

    of: TallyOf
    name: NonBlank
    """The source or the type that they share."""
    successes: int = Field(default=0, ge=0)
    failures: int = Field(default=0, ge=0)


class CanI(Value):
    """The verdict of the check before an action."""

    action: NonBlank
    capable: bool
    """Whether the agent is able to."""
    authorised: bool
    """Whether it is allowed to."""
    resourced: bool
    """Whether there is enough of what that takes."""
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
    """What it is not able to do; holds for every action that has these words in a row."""
    resources: tuple[Resource, ...] = ()
    needs: tuple[Need, ...] = ()
    """What actions take; one without an entry takes some of everything that can run out."""
    allowed: Names = ()
    """Actions that it may do, `*` for any characters; none declared: all."""
    forbidden: Names = ()
    """What it must not do, even if allowed; holds for every action that has these words."""
    failures: tuple[FailureNote, ...] = ()
    """Oldest first."""
    readings: tuple[Reading, ...] = ()
    """Resources at the latest steps, oldest first; empty without projection."""
    tallies: tuple[Tally, ...] = ()
    """How goals went so far; empty without learning."""

    def can_i(self, action: str) -> CanI:
        """Checks an action before it is done: ability, permission, resources.

        An entry that permits must match the action's whole name; one that refuses only has to
        occur in it. Case, punctuation and spacing do not count.
        """
        prefix = f"{action!r} is none of"
        no_ability = [
            f"The limitation {one!r} holds for {action!r}."
            for one in self.limitations
            if _occurs_in(one, action)
        ]
        if not _permits(self.capabilities, action):
            no_ability.append(f"{prefix} the capabilities: {', '.join(self.capabilities)}.")
        no_leave = [f"{one!r} is forbidden." for one in self.forbidden if _occurs_in(one, action)]
        if not _permits(self.allowed, action):
            no_leave.append(f"{prefix} what is allowed: {', '.join(self.allowed)}.")
        lacking = self._lacking(action)
        return CanI(
            action=action,
            capable=not no_ability,
            authorised=not no_leave,
            resourced=not lacking,
            reasons=(*no_ability, *no_leave, *lacking),
        )

    def read(self, resource: Resource) -> SelfModel:
        """With a resource as it is now; it replaces the one of its name."""
        known = {folded(one.name): one for one in self.resources}
        known[folded(resource.name)] = resource
        return self.model_copy(update={"resources": tuple(known.values())})

    def spend(self, resource: str, amount: float) -> SelfModel:
        """With this much less of a resource, never below 0; what is not depletable is unchanged.

        Raises:
            AwarenessError: There is no such resource, or the amount is negative or no number.
        """
        if not 0.0 <= amount < float("inf"):
            raise AwarenessError(f"An amount to spend is a number of at least 0, not {amount!r}.")
        spent = {folded(one.name): one for one in reversed(self.resources)}.get(folded(resource))
        if spent is None:
            known = ", ".join(one.name for one in self.resources) or "none"
            raise AwarenessError(
                f"There is no resource {resource!r}. Known: {known}. Declare it with its capacity."
            )
        if not spent.depletable:
            return self
        remaining = max(0.0, spent.remaining - amount)
        return self.read(spent.model_copy(update={"remaining": remaining}))

    def note(self, failure: FailureNote, keep: int = 100) -> SelfModel:
        """With one more mistake, and the latest `keep` of them."""
        failures = (*self.failures, failure)
        return self.model_copy(update={"failures": failures[max(0, len(failures) - keep) :]})

    def _lacking(self, action: str) -> list[str]:
        """A sentence for each resource of which there is not enough."""
        needs = [need for need in self.needs if _matches(need.action, action)]
        if not needs:
            declared = {folded(need.resource) for need in self.needs}
            return [
                f"{one.name} has run out."
                for one in self.resources
                if one.depletable and one.remaining <= 0 and folded(one.name) not in declared
            ]
        remaining = {folded(one.name): one.remaining for one in self.resources}
        return [
            f"{action!r} takes {need.amount:g} {need.resource}, "
            f"{remaining.get(folded(need.resource), 0.0):g} left."
            for need in needs
            if remaining.get(folded(need.resource), -1.0) < need.amount
        ]


_CAMEL = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_INVISIBLE = frozenset("\u00ad\u200b\u200c\u200d\u2060\ufeff")


def _permits(entries: Names, action: str) -> bool:
    """Whether an entry is the action; none declared: all are."""
    return not entries or any(_matches(one, action) for one in entries)


def _matches(pattern: str, action: str) -> bool:
    """Whether a pattern is the action's whole name; `*` matches any characters."""
    parts = (re.escape(part) for part in folded(pattern).split("*"))
    return re.fullmatch(".*".join(parts), folded(action), re.DOTALL) is not None


def _occurs_in(entry: str, action: str) -> bool:
    """Whether an entry matches the action, or its words occur there in a row."""
    words = occurs_in_row(_action_words(entry), _action_words(action))
    return words or _matches(entry, action)


def _action_words(text: str) -> list[str]:
    """The words of an action's name, `delete_file` and `deleteFile` like `delete file`."""
    normal = unicodedata.normalize("NFKC", text)
    plain = "".join(one for one in normal if one not in _INVISIBLE)
    return re.findall(r"[^\W_]+", _CAMEL.sub(" ", plain).casefold())


# ---- The whole state (SAGEN §3.7) ----

STATE_VERSION: Final = 1
"""Of the schema below; another one is migrated or refused by `load_state`."""


class AwarenessState(Value):
    """The agent's situation at one step. Dumped as JSON and loaded it is equal."""

    version: Literal[1] = STATE_VERSION
    domain: NonBlank
    """Of the adapter that made it."""
    goals: GoalGraph = GoalGraph()
    trajectory: Trajectory = Trajectory()
    world: WorldModel = WorldModel()
    self_model: SelfModel = SelfModel()
    attention: Attention = Attention()
    protocol: InteractionProtocol = InteractionProtocol()
    step: Step = 0
    """How often it was updated."""
    at: Moment
    """When it was made or last updated."""

    def tick(self, now: datetime) -> AwarenessState:
        """One step later, at this time."""
        aware = now.replace(tzinfo=UTC) if now.tzinfo is None else now
        return self.model_copy(update={"step": self.step + 1, "at": aware})
