"""The forms in which a model answers what it sees; small, so that small models can fill them.

Docstrings of fields are shown to the model. Goals and errors that are known are named by the
numbers under which the prompt lists them, since small models copy numbers better than texts.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from coag.awareness.adapters import ConversationEntityType, Sentiment
from coag.schema import Value

Name = Annotated[str, Field(max_length=60)]
Sentence = Annotated[str, Field(max_length=200)]
Numbers = Annotated[tuple[int, ...], Field(max_length=5)]


class SeenEntity(Value):
    """A thing that the message mentions."""

    name: Name
    type: ConversationEntityType


class Closings(Value):
    """What became of goals."""

    completed: Numbers
    """Numbers of open goals that the message says are reached."""
    abandoned: Numbers
    """Numbers of open goals that the message gives up."""


class ConversationAnswer(Value):
    """What one message of a talk says."""

    topics: Annotated[tuple[Name, ...], Field(max_length=4)]
    """What the message is about, one to three words each; reuse the known names."""
    references_previous: bool
    """True if the message takes up something from earlier in the talk that had been left."""
    entities: Annotated[tuple[SeenEntity, ...], Field(max_length=6)]
    """Things that the message mentions by name."""
    sentiment: Sentiment
    """How the user feels."""
    goals: Annotated[tuple[Sentence, ...], Field(max_length=3)]
    """New aims that the user states, each as a short command; a mere question is none."""
    questions: Annotated[tuple[Sentence, ...], Field(max_length=3)]
    """Questions that the message asks, word for word."""


class ConversationClosingAnswer(ConversationAnswer, Closings):
    """What one message of a talk says."""


class PartType(StrEnum):
    """What a part of software is."""

    FILE = "file"
    LIBRARY = "library"
    SERVICE = "service"
    ENDPOINT = "endpoint"
    FUNCTION = "function"
    CONFIG = "config"
    CONCEPT = "concept"


class SeenPart(Value):
    """A part of the software that the message mentions."""

    name: Name
    type: PartType


class SeenError(Value):
    """An error that shows now."""

    name: Name
    """Its type or name, as ValueError."""
    message: Sentence
    """What it says; empty if that is not told."""


class CodingAnswer(Value):
    """What one message about software says."""

    parts: Annotated[tuple[SeenPart, ...], Field(max_length=10)]
    """Parts of the software that the message mentions, by their exact names."""
    errors: Annotated[tuple[SeenError, ...], Field(max_length=3)]
    """Errors that the message says happen now."""
    fixed: Numbers
    """Numbers of unresolved errors that the message says are fixed."""
    goals: Annotated[tuple[Sentence, ...], Field(max_length=3)]
    """New aims that the user states, each as a short command; a mere question is none."""
    questions: Annotated[tuple[Sentence, ...], Field(max_length=3)]
    """Questions that the message asks, word for word."""


class CodingClosingAnswer(CodingAnswer, Closings):
    """What one message about software says."""
