"""The world model: what there is, how it hangs together, what is not known (SAGEN §3.3)."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from coag.schema import Value

from ._texts import Names, Plain, Said, Share, Step, Text


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
