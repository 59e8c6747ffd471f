"""Records: units of long-term memory."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field
from typing_extensions import deprecated

from .percepts import Trust
from .values import Moment, SparseValue, Value, content_id

Scalar = str | int | float | bool
"""What metadata may hold: values that every store can filter on."""


class MemoryKind(StrEnum):
    """Which long-term memory a record belongs to (CoALA §4.1)."""

    EPISODIC = "episodic"
    """What happened: events, with their time and place."""
    SEMANTIC = "semantic"
    """What holds: facts and generalisations."""


class Provenance(Value):
    """Where a record comes from."""

    run: str
    activity: str
    cycle: int
    source: str
    """Who or what the content was learned from: the agent's name, a tool, a sender."""
    source_kind: str
    """`agent` for the agent's own conclusion, otherwise the kind of percept it is based on."""
    trust: Trust
    shown: tuple[str, ...] = ()
    """For a conclusion: the tools, senders and sensors whose untrusted text its activity had been
    shown. Taking back one source's word takes back what was concluded from it."""


class Event(Value):
    """What happened, and its place among other events (episodic memory)."""

    at: Moment | None = None
    """When it happened; None for when the record was made."""
    episode: str = ""
    """The stretch of experience it is part of, e.g. a run's activity or a conversation's session;
    records of one episode are each other's neighbours."""
    order: int | None = None
    """Place within the episode, counting by one; None for the order of arrival."""
    situation: str = ""
    action: str = ""
    outcome: str = ""
    place: str = ""
    """Where, in the domain's own words."""


class Fact(Value):
    """A fact (semantic memory), in a form that can be compared with a later statement."""

    subject: str = Field(min_length=1)
    """What it is about."""
    attribute: str = ""
    """Which of its properties; two facts on one subject and attribute are about the same."""
    value: str = ""
    """What is said of it; another value at the same time is a contradiction."""
    valid_from: Moment | None = None
    """Since when it holds; None for as long as is known."""
    valid_until: Moment | None = None
    """When it ceased to hold; None while it holds."""
    confidence: float = Field(default=1.0, ge=0.0, le=1.0)


class Mood(Value):
    """The agent's state when it remembered."""

    valence: float = Field(ge=-1.0, le=1.0)
    """From bad to good."""
    arousal: float = Field(ge=0.0, le=1.0)
    """From calm to excited."""
    dominance: float = Field(default=0.0, ge=-1.0, le=1.0)
    """From controlled to in control (PAD; Mehrabian & Russell 1974)."""


class Dynamics(Value):
    """What the dynamics of memory read and write; ranking reads the importance only."""

    strength: float = Field(default=1.0, ge=0.0, allow_inf_nan=False)
    """How well it is retained; 1 as it was encoded."""
    importance: float = Field(default=0.5, ge=0.0, le=1.0)
    accesses: int = Field(default=0, ge=0)
    """How often it was recalled and used."""
    accessed_at: Moment | None = None
    """When last."""
    mood: Mood | None = None


class ValidityInterval(Value):
    """An interval in which a fact held."""

    since: Moment
    until: Moment | None = None
    """When it ceased, where that is known; None for until another value held."""


class Lineage(Value):
    """Relations of a record to others, by their ids."""

    derived_from: tuple[str, ...] = ()
    """What it was concluded from; revoking one of these revokes it."""
    contradicts: tuple[str, ...] = ()
    """Records that hold at the same time and contradict it."""
    also_from: tuple[Provenance, ...] = ()
    """Further origins of the same text, oldest first."""
    earlier: tuple[ValidityInterval, ...] = ()
    """When its fact held before the time of the fact, oldest first: a value returned in
    the same words."""


class Record(Value):
    """One unit of long-term memory; superseded, never overwritten."""

    id: str
    kind: MemoryKind
    text: str = Field(min_length=1)
    scope: str
    """Whose memory it is; equal text in another scope is another record."""
    created_at: Moment
    provenance: Provenance
    type: str = "note"
    """The domain's own sort of record, e.g. `obstacle`; a filter can ask for it."""
    metadata: dict[str, Scalar] = Field(default_factory=dict)
    sensed: bool = False
    """Whether the agent's own code read the metadata off its perceptual state. Only such metadata,
    and those of trusted records, may decide what a hard rule forbids."""
    supersedes: str | None = None
    superseded_by: str | None = None
    event: Event | None = None
    fact: Fact | None = None
    dynamics: Dynamics = Dynamics()
    lineage: Lineage = Lineage()

    @property
    def happened_at(self) -> datetime:
        """When it happened, as far as is known."""
        at = None if self.event is None else self.event.at
        return self.created_at if at is None else at


def record_id(kind: MemoryKind, scope: str, text: str, about: Fact | None = None) -> str:
    """The id of a record: the same text in the same scope is the same record.

    Args:
        kind: Which memory it belongs to.
        scope: Whose memory it is.
        text: What it says.
        about: Its fact, where the same text is remembered of another matter already ("It is shut"
            of the door, and of the window).
    """
    matter = () if about is None else (folded(about.subject), folded(about.attribute))
    return content_id(kind, scope, " ".join(text.split()), *matter)


def is_own_id(record: Record) -> bool:
    """Whether a record has one of the ids that its contents give it."""
    own = (record.kind, record.scope, record.text)
    return record.id in (record_id(*own), record_id(*own, record.fact))


def folded(text: str) -> str:
    """The form of a subject or an attribute in which small differences of writing are gone.

    Upper and lower case are one, and so is all white space, which is cut off at the ends.
    """
    return " ".join(text.casefold().split())


_LEAST_SHOWN = 0.005
"""A part of a score that adds less is not shown."""


class ScoreParts(SparseValue):
    """Why a record was recalled: what each part adds to its score.

    The parts add up to the score, before that is clamped to 0..1.
    """

    SPARSE = frozenset({"strength", "mood", "links", "outdated"})

    dense: float = 0.0
    """Similarity of meaning: the cosine of the vectors, weighed."""
    lexical: float = 0.0
    """Share of the query's words, the rare ones counting most, weighed."""
    neighbours: float = 0.0
    """Its neighbours in its episode."""
    episode: float = 0.0
    """How well its episode as a whole answers the query."""
    source: float = 0.0
    """Its source is the one that the query names."""
    form: float = 0.0
    """It says much, or asks instead of stating."""
    recency: float = 0.0
    importance: float = 0.0
    trust: float = 0.0
    strength: float = 0.0
    """How well it is retained; see `coag.memory.dynamics`. Like those that follow, it is
    written down only where it adds something (`SPARSE`)."""
    mood: float = 0.0
    """How its mood fits the agent's."""
    links: float = 0.0
    """Links learned from use lead to it."""
    outdated: float = 0.0
    """Another record replaced it, which takes some; or it replaced one that answers better, and
    has its score."""

    def describe(self) -> str:
        """The parts in a line, the weightiest first, e.g. `lexical +0.41, dense +0.20`.

        Those that add less than 0.005 are left out.
        """
        parts = [(name, part) for name, part in self if abs(part) >= _LEAST_SHOWN]
        parts.sort(key=lambda one: -abs(one[1]))
        return ", ".join(f"{name} {part:+.2f}" for name, part in parts)

    @deprecated("ScoreParts.told is now ScoreParts.describe.")
    def told(self) -> str:
        """The old name of `describe`."""
        return self.describe()


class RecalledState(SparseValue):
    """How well a recalled record is kept, by the dynamics of the memory that was asked."""

    SPARSE = frozenset({"unconfirmed", "yields_to"})

    gist: str | None = None
    """A short form used in place of the text; the text itself is unchanged."""
    strength: float = Field(ge=0.0, le=1.0)
    """How much of it is retained."""
    confidence: float = Field(ge=0.0, le=1.0)
    """How sure it is where it comes from."""
    doubtful: bool = False
    """Whether the confidence is so low that a reader should be warned."""
    age: float = Field(ge=0.0)
    """Days since it was encoded."""
    flashbulb: bool = False
    """Whether it was encoded with strong feeling, and does not fade."""
    unasked: bool = False
    """Whether it came to mind by itself, and answers no question."""
    unconfirmed: bool = False
    """Whether only untrusted sources confirm it."""
    yields_to: str | None = None
    """Id of a later or better trusted record that says otherwise; None for none."""


class FeltRecord(Value):
    """A record on the tip of the tongue: memory knows that it has it, but not what it says."""

    id: str
    cue: str
    """A few words on what it is about; foreign text, to be quoted as such."""
    score: float = Field(ge=0.0, le=1.0)
    """How well it answered the query, 0..1."""
    trust: Trust
    """Of the record, and so of the cue."""


class RecalledRecord(SparseValue):
    """A record that a query found."""

    SPARSE = frozenset({"state"})

    record: Record
    score: float = Field(ge=0.0, le=1.0)
    """How well it answers the query, 0..1; the cosine alone where nothing else was asked for."""
    why: ScoreParts | None = None
    """The parts of the score; None if it is a cosine alone."""
    state: RecalledState | None = None
    """How it is kept; None where the memory has no dynamics, and then not written down."""


def shown_text(hit: RecalledRecord) -> str:
    """What a reader is shown of a recalled record: its gist where there is one, else its text."""
    gist = None if hit.state is None else hit.state.gist
    return hit.record.text if gist is None else gist
