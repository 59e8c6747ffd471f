"""An observation: what an adapter made of raw input, before it changes anything (SAGEN §4.1)."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, ValidationError

from coag.errors import ObservationError
from coag.schema import Value

from ._problems import where_wrong
from .state import (
    Amount,
    AttentionType,
    GoalSource,
    GoalStatus,
    Heard,
    HeardPlain,
    HeardText,
    Resource,
    Share,
    TransitionType,
)


class ObservedEntity(Value):
    """A thing that was noticed."""

    name: Heard
    type: Heard
    state: dict[HeardText, HeardPlain] = Field(default_factory=dict)
    """What is known of it now; what is not named here stays as it was."""
    affordances: tuple[Heard, ...] = ()


class ObservedRelationship(Value):
    """An edge that was noticed, by the names of its ends."""

    source: Heard
    type: Heard
    target: Heard


class ObservedGoal(Value):
    """A goal that was noticed."""

    description: Heard
    source: GoalSource = GoalSource.EXPLICIT
    priority: Share = 0.5
    parent: Heard | None = None
    """The goal that it serves, by its id or description; it may be in the same observation."""
    depends_on: tuple[Heard, ...] = ()
    """Goals that must be completed first, by id or description; also of the same observation."""
    completion_criteria: Heard | None = None


class GoalChange(Value):
    """A goal that is said to stand otherwise than before."""

    goal: Heard
    """Its id or description."""
    status: GoalStatus | None = None
    """How it stands now; never `blocked`, which follows from what it depends on."""
    priority: Share | None = None
    """How much it matters now; None for as before."""
    succeeded: bool | None = None
    """Whether what was just done for it helped; None where nothing was."""


class ObservedAttention(Value):
    """Something that needs attention."""

    type: AttentionType
    description: Heard
    urgency: Share = 0.5
    ttl: int | None = Field(default=None, gt=0)
    """How many steps it is there for, this one among them; None until it is taken away."""
    slot: HeardText = ""
    """Of what it is the latest, e.g. `mood`: it takes the place of what was noticed there before.
    Empty for something that stands beside all others."""


class ObservedEvent(Value):
    """How the situation changed."""

    type: TransitionType
    description: Heard
    detail: dict[HeardText, HeardPlain] = Field(default_factory=dict)


class ObservedFailure(Value):
    """A mistake that was made."""

    action: Heard
    reason: HeardText = ""
    lesson: HeardText = ""


class Spent(Value):
    """How much of a resource was used."""

    resource: Heard
    amount: Amount


class Observation(Value):
    """All that one step brings; every part may be empty."""

    entities: tuple[ObservedEntity, ...] = ()
    relationships: tuple[ObservedRelationship, ...] = ()
    goals: tuple[ObservedGoal, ...] = ()
    goal_changes: tuple[GoalChange, ...] = ()
    attention_items: tuple[ObservedAttention, ...] = ()
    assumptions: tuple[Heard, ...] = ()
    unknowns: tuple[Heard, ...] = ()
    resolved: tuple[Heard, ...] = ()
    """Assumptions and unknowns that are settled now, as they were said."""
    event: ObservedEvent | None = None
    resources: tuple[Resource, ...] = ()
    """Resources as they stand now: new ones, and readings of known ones."""
    spent: tuple[Spent, ...] = ()
    failure: ObservedFailure | None = None

    @classmethod
    def parse(cls, given: Mapping[str, object]) -> Observation:
        """The observation that this mapping says.

        Raises:
            ObservationError: It breaks the schema; the error names the place.
        """
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            path, problem = where_wrong(error)
            raise ObservationError(path, problem) from error
