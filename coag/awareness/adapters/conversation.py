"""The domain of a talk with somebody (SAGEN §4.4, §5.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import compress
from operator import attrgetter

from pydantic import Field

from coag.awareness.fields import Foreign, ForeignScalar, ForeignText, Scalar, distinct
from coag.awareness.goals import GoalSource
from coag.awareness.injection import InjectionBlock
from coag.awareness.observation import (
    Observation,
    ObservedAttention,
    ObservedEntity,
    ObservedEvent,
    ObservedGoal,
    ObservedRelationship,
)
from coag.awareness.state import (
    AttentionType,
    AwarenessState,
    Entity,
    InteractionProtocol,
    TransitionType,
)
from coag.schema import Value, folded

from .analysis import Analysis, ForeignNames, as_set
from .domain_adapter import (
    MOST,
    DeclaredAdapter,
    KnownNames,
    PerEntity,
    Place,
    block,
    is_named,
)

# ---- The analysis of one message ----


class ConversationEntityType(StrEnum):
    """What a talk is about."""

    PERSON = "person"
    TOPIC = "topic"
    CONCEPT = "concept"
    REFERENCE = "reference"
    EMOTION = "emotion"
    PREFERENCE = "preference"


class ConversationEdgeType(StrEnum):
    """How things in a talk are related."""

    INTERESTED_IN = "interested_in"
    ASKED_ABOUT = "asked_about"
    MENTIONED = "mentioned"
    REFERS_TO = "refers_to"
    CONTRADICTS = "contradicts"
    BUILDS_ON = "builds_on"
    EMOTIONAL_ABOUT = "emotional_about"


class Sentiment(StrEnum):
    """How the speaker feels."""

    POSITIVE = "positive"
    NEUTRAL = "neutral"
    NEGATIVE = "negative"
    CONFUSED = "confused"
    ANXIOUS = "anxious"
    FRUSTRATED = "frustrated"
    ANGRY = "angry"


class MentionedEntity(Value):
    """A thing that was mentioned."""

    name: Foreign
    type: ConversationEntityType = ConversationEntityType.CONCEPT
    state: dict[ForeignText, ForeignScalar] = Field(default_factory=dict)
    """What is said of it."""


class ConversationEdge(Value):
    """How two things that were mentioned are related, by their names."""

    source: Foreign
    type: ConversationEdgeType
    target: Foreign


class ConversationAnalysis(Analysis):
    """The analysis of one message of a talk. Every part may be left out."""

    topics: ForeignNames = ()
    """What the message is about."""
    entities: tuple[MentionedEntity, ...] = ()
    """What it mentions; a topic may be here again with a type of its own."""
    relationships: tuple[ConversationEdge, ...] = ()
    sentiment: Sentiment = Sentiment.NEUTRAL
    references_previous: bool = False
    """Whether it refers to something from earlier in the talk."""


# ---- The thread of a talk: its topics before and now ----

_LAST_TOPIC, _ASKED = "topic_step", "asked"
"""Keys of an entity's state: when it was a topic last, in how many steps it was asked about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Thread:
    """A message's topics compared with those of the talk so far."""

    topics: tuple[str, ...]
    """The topics now."""
    known: dict[str, Entity]
    """Those of them that were topics before, with their entities."""
    before: tuple[Entity, ...]
    """The last topics."""
    linked: bool
    """Whether a topic belongs to an earlier one, or to an open goal, though it was none before."""

    @classmethod
    def of(
        cls,
        analysis: ConversationAnalysis,
        earlier: tuple[Entity, ...],
        names: KnownNames,
        goals: Iterable[str] = (),
    ) -> _Thread:
        """Compares an analysis with all earlier topics; goals are read only if none is known."""
        topics = distinct(analysis.topics)
        known, before = names.find(topics, earlier), _active_topics(earlier)
        linked = not known and (
            _share_words(topics, before)
            or _joined_to(topics, analysis, earlier, names)
            or any(is_named(topic, goal) for goal in goals for topic in topics)
        )
        return cls(topics=topics, known=known, before=before, linked=linked)

    @property
    def pivots(self) -> bool:
        """Whether the talk had topics, this message has some, and none continues an old one."""
        return bool(self.topics and self.before and not self.known and not self.linked)

    @property
    def returns(self) -> bool:
        """Whether old topics are taken up again, and none of the last ones continues."""
        last = {entity.name for entity in self.before}
        return bool(self.known) and all(one.name not in last for one in self.known.values())


def _share_words(topics: Sequence[str], before: Sequence[Entity]) -> bool:
    """Whether a topic shares a word with the last ones: `flights` after `flights to Faro`."""
    words = {word for topic in topics for word in _long_words(topic)}
    return any(not words.isdisjoint(_long_words(one.name)) for one in before)


def _long_words(name: str) -> list[str]:
    return [word.removesuffix("s") for word in re.findall(r"\w{4,}", folded(name))]


def _joined_to(
    topics: Sequence[str],
    analysis: ConversationAnalysis,
    earlier: tuple[Entity, ...],
    names: KnownNames,
) -> bool:
    """Whether a message relates one of its topics to an earlier one."""
    own = set(map(folded, topics))
    others = [
        b
        for edge in analysis.relationships
        for a, b in ((edge.source, edge.target), (edge.target, edge.source))
        if folded(a) in own
    ]
    return bool(names.find(others, earlier))


def _is_topic(entity: Entity) -> bool:
    return entity.type == ConversationEntityType.TOPIC or _LAST_TOPIC in entity.state


def _count(entity: Entity | None, key: str) -> int:
    """A number in an entity's state; 0 if there is none."""
    value = entity.state.get(key) if entity is not None else None
    return value if isinstance(value, int) else 0


def _active_topics(topics: Sequence[Entity]) -> tuple[Entity, ...]:
    """The topics of the last message that had any."""
    steps = [_count(topic, _LAST_TOPIC) for topic in topics]
    last = max(steps, default=0)
    return tuple(topic for topic, step in zip(topics, steps, strict=True) if step and step == last)


# ---- The domain ----

_OFTEN = 3
"""Steps with questions about a topic from which on understanding it is a goal."""
_OPEN = 50
"""Goals, the latest ones, whose words make a new topic no new subject."""
_TTL = 5
_SHIFT, _CALLBACK, _GLAD = 0.5, 0.6, 0.3
_MOOD = "mood"
"""The slot of moods: the latest replaces the one before."""
_WORRYING = {
    Sentiment.NEGATIVE: 0.7,
    Sentiment.CONFUSED: 0.7,
    Sentiment.ANXIOUS: 0.7,
    Sentiment.FRUSTRATED: 0.8,
    Sentiment.ANGRY: 0.9,
}
"""Urgency by sentiment; 0.8 for frustration is the paper's."""


class ConversationAdapter(DeclaredAdapter):
    """Follows a talk: what it is about, and when it changes, returns or turns bad.

    `parse_observation` takes a `ConversationAnalysis` as a mapping. A message is a pivot if none of
    its topics was one before, is related to one by the message, occurs in an open goal (of the
    latest 50) or shares a word with the last ones, else progress. A pivot, a callback and a mood
    need attention; a new mood replaces the last, a neutral message says nothing of it. A topic that
    is asked about in three steps, and that no stated goal names, becomes a goal.
    """

    name = "conversation"
    entity_types = tuple(ConversationEntityType)
    relationship_types = tuple(ConversationEdgeType)
    patterns = (
        ("topic shift", "The user changes the subject without resolving active goals."),
        ("emotional escalation", "The user's sentiment becomes negative."),
        ("callback opportunity", "The input relates to an earlier thread that was left."),
        ("implicit goal", "Repeated questions show an objective that nobody stated."),
    )
    protocol = InteractionProtocol(style="friendly, adaptive", output_format="natural language")

    def __init__(self) -> None:
        self._are_topics = PerEntity(_is_topic)
        self._names = KnownNames()

    def parse_observation(self, raw: Mapping[str, object], state: AwarenessState) -> Observation:
        """What a message means in this state.

        Raises:
            ObservationError: It is no `ConversationAnalysis`; the error names the place.
        """
        analysis = ConversationAnalysis.parse(raw)
        thread = _Thread.of(analysis, self._topics(state), self._names, _stated(state))
        observation = Observation(
            entities=_entities(analysis, thread, state.step + 1),
            relationships=tuple(
                ObservedRelationship(source=edge.source, type=edge.type.value, target=edge.target)
                for edge in analysis.relationships
            ),
            attention_items=tuple(_attention(analysis, thread)),
            event=_event(analysis, thread),
            **analysis.common_parts(),
        )
        return observation.plus(goals=_implicit_goals(analysis, thread, state))

    def domain_blocks(self, state: AwarenessState) -> tuple[InjectionBlock, ...]:
        """The topics of the last message that had any; then what else is known."""
        active, step = _active_topics(self._topics(state)), max(1, state.step)
        ids = set(map(id, active))
        others = [entity for entity in state.world.entities if id(entity) not in ids]
        latest = sorted(others, key=attrgetter("last_step"))[-MOST:]
        return (
            block(
                "ACTIVE TOPICS",
                Place.TOPICS,
                ((one.name, _count(one, _LAST_TOPIC) / step) for one in active[:MOST]),
                of=len(active),
                first=10,
                inline=True,
            ),
            block(
                "KNOWN",
                Place.KNOWN,
                ((f"{one.name} ({one.type})", one.last_step / step) for one in latest[::-1]),
                of=len(others),
                first=3,
                inline=True,
            ),
        )

    def _topics(self, state: AwarenessState) -> tuple[Entity, ...]:
        entities = state.world.entities
        return tuple(compress(entities, self._are_topics(entities)))


def _entities(
    analysis: ConversationAnalysis, thread: _Thread, step: int
) -> tuple[ObservedEntity, ...]:
    """The topics and what else is mentioned, each once; a specific type precedes `topic`."""
    found: dict[str, ObservedEntity] = {}
    for topic in thread.topics:
        state: dict[str, Scalar] = {_LAST_TOPIC: step}
        if analysis.questions:
            state[_ASKED] = _count(thread.known.get(topic), _ASKED) + 1
        found[folded(topic)] = ObservedEntity(
            name=topic, type=ConversationEntityType.TOPIC.value, state=state
        )
    for entity in analysis.entities:
        topic = found.get(folded(entity.name))
        found[folded(entity.name)] = ObservedEntity(
            name=topic.name if topic else entity.name,
            type=entity.type.value,
            state={**(topic.state if topic else {}), **entity.state},
        )
    return tuple(found.values())


def _stated(state: AwarenessState) -> Iterator[str]:
    """The latest active goals that were not merely inferred."""
    for goal in state.goals.active_goals[-_OPEN:]:
        if goal.source is not GoalSource.INFERRED:
            yield goal.description


def _implicit_goals(
    analysis: ConversationAnalysis, thread: _Thread, state: AwarenessState
) -> tuple[ObservedGoal, ...]:
    """Goals to understand what is asked about repeatedly, and no stated goal names."""
    if not analysis.questions:
        return ()
    often = [
        topic for topic in thread.topics if _count(thread.known.get(topic), _ASKED) + 1 == _OFTEN
    ]
    stated = [
        goal.description
        for goal in (*state.goals.goals, *analysis.observed_goals())
        if often and goal.source is not GoalSource.INFERRED
    ]
    return tuple(
        ObservedGoal(description=f"Understand {topic}", source=GoalSource.EMERGENT)
        for topic in often
        if not any(is_named(topic, goal) for goal in stated)
    )


def _attention(analysis: ConversationAnalysis, thread: _Thread) -> Iterator[ObservedAttention]:
    if thread.pivots:
        now, before = as_set(thread.topics), as_set(entity.name for entity in thread.before)
        yield ObservedAttention(
            type=AttentionType.TRANSITION,
            description=f"Topic shift: {before} -> {now}",
            urgency=_SHIFT,
            ttl=_TTL,
        )
    if analysis.references_previous or thread.returns:
        which = f": {as_set(thread.known)}" if thread.known else ""
        yield ObservedAttention(
            type=AttentionType.OPPORTUNITY,
            description=f"Callback to earlier topic{which}",
            urgency=_CALLBACK,
            ttl=_TTL,
        )
    sentiment = analysis.sentiment
    worrying = _WORRYING.get(sentiment)
    if worrying is not None or sentiment is Sentiment.POSITIVE:  # a good mood ends a bad one
        yield ObservedAttention(
            type=AttentionType.OPPORTUNITY if worrying is None else AttentionType.THREAT,
            description=f"User sentiment: {sentiment.value}",
            urgency=_GLAD if worrying is None else worrying,
            ttl=1 if worrying is None else _TTL,
            slot=_MOOD,
        )


def _event(analysis: ConversationAnalysis, thread: _Thread) -> ObservedEvent | None:
    """A pivot or progress; none for an empty analysis."""
    now, before = as_set(thread.topics), as_set(entity.name for entity in thread.before)
    if thread.pivots:
        return ObservedEvent(
            type=TransitionType.PIVOT, description=f"Pivoted from {before} to {now}"
        )
    if analysis == ConversationAnalysis():
        return None
    word = "Continuing" if thread.before else "Beginning"
    about = now if thread.topics else before
    text = f"{word}: {about}" if thread.topics or thread.before else word
    return ObservedEvent(type=TransitionType.PROGRESS, description=text)
