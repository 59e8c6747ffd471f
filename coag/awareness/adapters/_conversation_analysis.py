"""What is analysed of one message of a talk (SAGEN §4.4)."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from coag.awareness.state import Heard, HeardPlain, HeardText
from coag.schema import Value

from ._analysis import Analysis, HeardNames


class ConversationEntityType(StrEnum):
    """What a talk is about."""

    PERSON = "person"
    TOPIC = "topic"
    CONCEPT = "concept"
    REFERENCE = "reference"
    EMOTION = "emotion"
    PREFERENCE = "preference"


class ConversationEdgeType(StrEnum):
    """How things in a talk hang together."""

    INTERESTED_IN = "interested_in"
    ASKED_ABOUT = "asked_about"
    MENTIONED = "mentioned"
    REFERS_TO = "refers_to"
    CONTRADICTS = "contradicts"
    BUILDS_ON = "builds_on"
    EMOTIONAL_ABOUT = "emotional_about"


class Sentiment(StrEnum):
    """How the one who speaks feels."""

    POSITIVE = "positive"
    NEUTRAL = "neutral"
    NEGATIVE = "negative"
    CONFUSED = "confused"
    ANXIOUS = "anxious"
    FRUSTRATED = "frustrated"
    ANGRY = "angry"


class MentionedEntity(Value):
    """A thing that was mentioned."""

    name: Heard
    type: ConversationEntityType = ConversationEntityType.CONCEPT
    state: dict[HeardText, HeardPlain] = Field(default_factory=dict)
    """What is said of it."""


class ConversationEdge(Value):
    """How two things that were mentioned hang together, by their names."""

    source: Heard
    type: ConversationEdgeType
    target: Heard


class ConversationAnalysis(Analysis):
    """What one message of a talk says. Every part may be left out."""

    topics: HeardNames = ()
    """What the message is about."""
    entities: tuple[MentionedEntity, ...] = ()
    """What it mentions; a topic may be here again with a type of its own."""
    relationships: tuple[ConversationEdge, ...] = ()
    sentiment: Sentiment = Sentiment.NEUTRAL
    references_previous: bool = False
    """Whether it takes up something from earlier in the talk."""
