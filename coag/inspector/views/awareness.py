"""Where an agent stood: goals, attention, resources, and what changed in them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Move(StrEnum):
    """What became of something since the cycle before."""

    ADDED = "added"
    CHANGED = "changed"
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """One thing of the state that is not as it was."""

    kind: str
    """`goal`, `attention`, `transition`, `resource`, `failure`, `assumption`, `unknown`,
    `thing`, `relationship` or `protocol`."""
    name: str
    move: Move
    before: str = ""
    """What is told of it then; empty where there is nothing to tell."""
    after: str = ""
    """What is told of it now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalView:
    """One goal."""

    id: str
    description: str
    status: str
    """`active`, `blocked`, `deferred`, `completed` or `abandoned`."""
    source: str
    """`explicit`, `inferred`, `emergent` or `spawned`."""
    priority: float
    parent: str = ""
    """Id of the goal that it serves; empty for none."""
    waits_for: tuple[str, ...] = ()
    """Ids of goals that must be completed first."""
    pursued: bool = False
    """Whether the activity serves it."""
    criteria: str = ""
    """How one can tell that it is reached."""
    since: int = 0
    """The first cycle that is looked at and began with it."""
    move: Move | None = None
    """What became of it since the cycle before."""

    @property
    def is_open(self) -> bool:
        """Whether it is neither completed nor abandoned."""
        return self.status not in ("completed", "abandoned")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionView:
    """One thing that needs attention."""

    type: str
    """`threat`, `opportunity`, `anomaly` or `transition`."""
    description: str
    urgency: float
    ttl: int | None
    """Steps for which it is there; None until it is taken away."""
    left: int | None
    """How many of these are left; None as above."""
    since: int
    """The cycle since which it is there without a gap."""
    source: str = ""
    suppressed: bool = False
    """Whether it is ignored on purpose."""
    move: Move | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionView:
    """One change of the situation that is still remembered."""

    type: str
    description: str
    since: int
    sticky: bool
    """Whether it is kept however old it is."""
    move: Move | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceView:
    """How much of something is left."""

    name: str
    remaining: float
    capacity: float
    before: float | None = None
    """At the cycle before; None where there was none of it."""

    @property
    def share(self) -> float:
        """What is left of what there can be, 0 to 1."""
        return self.remaining / self.capacity if self.capacity else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A further part of the state, as a table."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    of: int
    """How many rows there are; the first ones of many are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """What one module held as a cycle began."""

    module: str
    cycle: int
    trouble: str = ""
    """Why the state cannot be told; nothing else is told then."""
    domain: str = ""
    mode: str = ""
    """Who decides, e.g. `autonomous`."""
    goals: tuple[GoalView, ...] = ()
    """The first ones of many, those that are open first; in the order in which they were made."""
    goals_open: int = 0
    goals_closed: int = 0
    attention: tuple[AttentionView, ...] = ()
    """By urgency; suppressed ones last."""
    attention_of: int = 0
    suppressed: int = 0
    """How many of them are suppressed."""
    transitions: tuple[TransitionView, ...] = ()
    """Newest first."""
    transitions_of: int = 0
    resources: tuple[ResourceView, ...] = ()
    resources_of: int = 0
    changes: tuple[StateChange, ...] = ()
    """What is different since the cycle before, the first ones of many."""
    changes_of: int = 0
    before: int | None = None
    """The cycle with which it is compared; None for the first."""
    listings: tuple[Listing, ...] = ()
    """The rest: things, relationships, what is not known, mistakes, what it may do."""

    @property
    def pursued(self) -> GoalView | None:
        """The open goal that the activity serves."""
        return next((goal for goal in self.goals if goal.pursued), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of cycles in which something was the same."""

    first: int
    last: int
    """The last cycle that is looked at and began so."""
    state: str
    """A goal's status; of attention `visible` or `suppressed`."""
    weight: float = 0.0
    """A goal's priority, or the greatest urgency."""
    pursued: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A goal, or something that needs attention, over the cycles."""

    id: str
    label: str
    type: str
    """A goal's source, or the type of attention."""
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """When transitions of one type came."""

    type: str
    sticky: bool
    at: tuple[tuple[int, int], ...]
    """The first cycle that began with them, and how many they were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A number over the cycles."""

    name: str
    values: tuple[float | None, ...]
    """One for each cycle looked at; None where it is not told."""
    capacity: float | None = None
    """How much there can be; None where there is no such bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleChange:
    """What a cycle began with that the one before did not."""

    cycle: int
    added: int = 0
    changed: int = 0
    gone: int = 0
    told: tuple[StateChange, ...] = ()
    """What counts most of it."""

    @property
    def of(self) -> int:
        """How much it is together."""
        return self.added + self.changed + self.gone


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What one module held over the cycles."""

    module: str
    cycles: tuple[int, ...]
    """Those that are looked at, in order."""
    goals: tuple[Lane, ...] = ()
    """Those that are drawn, in the order in which they came."""
    goals_of: int = 0
    attention: tuple[Lane, ...] = ()
    attention_of: int = 0
    marks: tuple[Marks, ...] = ()
    series: tuple[Series, ...] = ()
    """Resources first, then counts that are not the same throughout."""
    series_of: int = 0
    changes: tuple[CycleChange, ...] = ()
    """One for each cycle looked at, but the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwarenessView:
    """Where an agent stood as one cycle began, and over all of them."""

    cycle: int
    last: int
    """The last cycle whose beginning is told."""
    stands: tuple[Stand, ...]
    """One for each module, by name."""
    courses: tuple[Course, ...]
    """The same."""
    every: int = 1
    """Of a long or a large run every how-many-eth cycle is looked at over time."""
    steps: tuple[int, ...] = ()
    """The cycles that can be shown, in order; the first ones of many."""
    steps_of: int = 0
    modules_left_out: int = 0
