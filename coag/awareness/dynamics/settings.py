"""What can be set about how a state changes by itself, with its defaults."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from coag.awareness.state import Share
from coag.schema import Value


class DecaySettings(Value):
    """How fast entities and goals fade, and how much of anything stays.

    With the defaults a thing that was mentioned once leaves after 55 steps, and one that a failure
    or a discovery names after some 790. The bounds hold whatever happens.
    """

    every: int = Field(default=10, ge=1)
    """Steps from one decay to the next."""
    decay: float = Field(default=0.5, gt=0.0, lt=1.0)
    """The exponent d of base-level learning; 0.5 is the one of ACT-R."""
    salient_decay: float = Field(default=0.3, gt=0.0, lt=1.0)
    """The exponent for what failures and discoveries name: bad and surprising things stay."""
    threshold: float = -2.0
    """Base-level activation under which a thing leaves."""
    half_life: float = Field(default=20.0, gt=0.0)
    """Steps without a mention after which a goal counts half."""
    explicit_half_life: float = Field(default=60.0, gt=0.0)
    """The same for goals that the user stated."""
    goal_threshold: Share = 0.05
    """Effective priority under which an open goal leaves."""
    closed_goal_steps: int = Field(default=20, ge=0)
    """Steps after which a closed goal leaves that is not named any more."""
    most_goals: int = Field(default=200, ge=1)
    """How many goals stay."""
    most_entities: int = Field(default=500, ge=0)
    """How many entities stay, besides those that something in the state names."""
    most_relationships: int = Field(default=1000, ge=0)
    """How many relationships stay, the latest ones."""
    most_beliefs: int = Field(default=100, ge=0)
    """How many assumptions stay, and how many unknowns: open ones first, then the latest."""
    most_attention: int = Field(default=50, ge=0)
    """How many attention items stay: the most urgent, of equals the newest."""
    most_transitions: int = Field(default=50, ge=0)
    """How many transitions stay, sticky ones among them: the latest."""


class LearningSettings(Value):
    """How far outcomes move the priorities of goals.

    A tally's mean is (successes + a) / (successes + failures + a + b).
    """

    prior_successes: float = Field(default=2.0, gt=0.0)
    """The a of the Beta prior: successes that are taken for granted."""
    prior_failures: float = Field(default=2.0, gt=0.0)
    """The b of the Beta prior: failures that are taken for granted."""
    influence: Share = 0.2
    """By how much a priority is moved at most."""
    explicit_influence: Share = 0.1
    """By how much the priority of a goal that the user stated is moved at most."""
    most_types: int = Field(default=100, ge=1)
    """How many types of goals are counted; the one that was counted longest ago goes."""


class Ahead(StrEnum):
    """What can be seen ahead."""

    RESOURCES = "resources"
    """One runs out, or falls under what a goal needs."""
    STALLS = "stalls"
    """Nothing is heard of a goal."""
    FAILURES = "failures"
    """An action fails again and again."""
    DEADLINES = "deadlines"
    """A goal falls due."""


class ProjectionSettings(Value):
    """How far ahead is looked, and what is worth a warning."""

    of: tuple[Ahead, ...] = tuple(Ahead)
    """What is looked for."""
    horizon: int = Field(default=10, ge=1)
    """Steps ahead."""
    horizon_seconds: float = Field(default=3600.0, gt=0.0)
    """Seconds ahead, for deadlines that are told as a time."""
    readings: int = Field(default=10, ge=2)
    """How many readings of a resource are kept and make its trend."""
    least_readings: int = Field(default=3, ge=2)
    """Fewer make no trend."""
    stall_steps: int = Field(default=10, ge=1)
    """Steps without a word of a goal, or of what serves it, after which it stalls."""
    failures: int = Field(default=2, ge=2)
    """How often an action fails before it is a repeated failure."""
    failure_steps: int = Field(default=20, ge=1)
    """How far back failures count."""
    least_urgency: Share = 0.4
    """Urgency of what is just within sight; 1 is for what is here."""
    most: int = Field(default=10, ge=0)
    """How many warnings at once, the most urgent."""


class ReturnSettings(Value):
    """When what left comes back."""

    least_score: Share = 0.8
    """Score from which on another text than a name brings something back."""
    most_lookups: int = Field(default=20, ge=0)
    """How many texts of one observation are looked up."""


class DynamicsSettings(Value):
    """What of all this is on; nothing is, unless it is given."""

    decay: DecaySettings | None = None
    learning: LearningSettings | None = None
    projection: ProjectionSettings | None = None
    returning: ReturnSettings = ReturnSettings()
    """Holds where there is an archive."""

    @classmethod
    def all_on(cls) -> DynamicsSettings:
        """All of it, with its defaults."""
        return cls(
            decay=DecaySettings(), learning=LearningSettings(), projection=ProjectionSettings()
        )
