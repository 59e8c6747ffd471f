"""The domain of a talk with somebody (SAGEN §4.4, §5.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

from .domain_adapter import (
    MOST,
    Analysis,
    DomainAdapter,
    ForeignNames,
    KnownNames,
    PerEntity,
    Place,
    as_set,
    block,
    count_in,
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


class _Thread:
    """A message's topics compared with those of the talk so far."""

    def __init__(
        self,
        analysis: ConversationAnalysis,
        earlier: tuple[Entity, ...],
        names: KnownNames,
        goals: Iterable[str],
    ) -> None:
        self.topics = distinct(analysis.topics)
        """The topics now."""
        self.known = names.find(self.topics, earlier)
        """Those of them that were topics before, with their entities."""
        before = _active_topics(earlier)
        self.before = [entity.name for entity in before]
        """The last topics."""
        # A new topic continues the talk if it belongs to an earlier one or to an open goal.
        self.pivots = bool(
            self.topics
            and before
            and not self.known
            and not _share_words(self.topics, self.before)
            and not names.find(_beside(self.topics, analysis), earlier)
            and not any(is_named(topic, goal) for goal in goals for topic in self.topics)
        )
        self.returns = bool(self.known) and not any(
            one.name in self.before for one in self.known.values()
        )
        """Whether old topics are taken up again, and none of the last ones continues."""


def _share_words(topics: Sequence[str], before: Sequence[str]) -> bool:
    """Whether a topic shares a word with the last ones: `flights` after `flights to Faro`."""
    now, then = (
        {word.removesuffix("s") for name in names for word in re.findall(r"\w{4,}", folded(name))}
        for names in (topics, before)
    )
    return not now.isdisjoint(then)


def _beside(topics: Sequence[str], analysis: ConversationAnalysis) -> list[str]:
    """What a message relates to one of its topics."""
    own = set(map(folded, topics))
    return [
        other
        for edge in analysis.relationships
        for one, other in ((edge.source, edge.target), (edge.target, edge.source))
        if folded(one) in own
    ]


def _is_topic(entity: Entity) -> bool:
    return entity.type == ConversationEntityType.TOPIC or _LAST_TOPIC in entity.state


def _active_topics(topics: Sequence[Entity]) -> tuple[Entity, ...]:
    """The topics of the last message that had any."""
    steps = [count_in(topic, _LAST_TOPIC) for topic in topics]
    last = max(steps, default=0)
    return tuple(topic for topic, step in zip(topics, steps, strict=True) if step and step == last)


# ---- The domain ----

_OFTEN = 3
"""Steps with questions about a topic from which on understanding it is a goal."""
_OPEN = 50
"""Goals, the latest ones, whose words make a new topic no new subject."""
_TTL = 5
_SHIFT, _CALLBACK = 0.5, 0.6
_MOOD = "mood"
"""The slot of moods: the latest replaces the one before."""
_MOODS = {
    Sentiment.POSITIVE: 0.3,
    Sentiment.NEGATIVE: 0.7,
    Sentiment.CONFUSED: 0.7,
    Sentiment.ANXIOUS: 0.7,
    Sentiment.FRUSTRATED: 0.8,
    Sentiment.ANGRY: 0.9,
}
"""Urgency by sentiment; 0.8 for frustration is the paper's."""


class ConversationAdapter(DomainAdapter):
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
        """See `DomainAdapter.parse_observation`."""
        analysis = ConversationAnalysis.parse(raw)
        stated = (
            goal.description
            for goal in state.goals.active_goals[-_OPEN:]
            if goal.source is not GoalSource.INFERRED
        )
        thread = _Thread(analysis, self._topics(state), self._names, stated)
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
                ((one.name, count_in(one, _LAST_TOPIC) / step) for one in active[:MOST]),
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
    entities: dict[str, ObservedEntity] = {}
    for topic in thread.topics:
        state: dict[str, Scalar] = {_LAST_TOPIC: step}
        if analysis.questions:
            state[_ASKED] = count_in(thread.known.get(topic), _ASKED) + 1
        entities[folded(topic)] = ObservedEntity(
            name=topic, type=ConversationEntityType.TOPIC.value, state=state
        )
    for entity in analysis.entities:
        topic = entities.get(folded(entity.name))
        entities[folded(entity.name)] = ObservedEntity(
            name=topic.name if topic else entity.name,
            type=entity.type.value,
            state={**(topic.state if topic else {}), **entity.state},
        )
    return tuple(entities.values())


def _implicit_goals(
    analysis: ConversationAnalysis, thread: _Thread, state: AwarenessState
) -> tuple[ObservedGoal, ...]:
    """Goals to understand what is asked about repeatedly, and no stated goal names."""
    if not analysis.questions:
        return ()
    goals = (*state.goals.goals, *analysis.observed_goals())
    stated = [goal.description for goal in goals if goal.source is not GoalSource.INFERRED]
    return tuple(
        ObservedGoal(description=f"Understand {topic}", source=GoalSource.EMERGENT)
        for topic in thread.topics
        if count_in(thread.known.get(topic), _ASKED) + 1 == _OFTEN
        and not any(is_named(topic, goal) for goal in stated)
    )


def _attention(analysis: ConversationAnalysis, thread: _Thread) -> Iterator[ObservedAttention]:
    if thread.pivots:
        yield ObservedAttention(
            type=AttentionType.TRANSITION,
            description=f"Topic shift: {as_set(thread.before)} -> {as_set(thread.topics)}",
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
    if sentiment is not Sentiment.NEUTRAL:  # a good mood ends a bad one
        good = sentiment is Sentiment.POSITIVE
        yield ObservedAttention(
            type=AttentionType.OPPORTUNITY if good else AttentionType.THREAT,
            description=f"User sentiment: {sentiment.value}",
            urgency=_MOODS[sentiment],
            ttl=1 if good else _TTL,
            slot=_MOOD,
        )


def _event(analysis: ConversationAnalysis, thread: _Thread) -> ObservedEvent | None:
    """A pivot or progress; none for an empty analysis."""
    now, before = as_set(thread.topics), as_set(thread.before)
    if thread.pivots:
        text = f"Pivoted from {before} to {now}"
        return ObservedEvent(type=TransitionType.PIVOT, description=text)
    if analysis == ConversationAnalysis():
        return None
    word = "Continuing" if thread.before else "Beginning"
    about = now if thread.topics else before
    text = f"{word}: {about}" if thread.topics or thread.before else word
    return ObservedEvent(type=TransitionType.PROGRESS, description=text)
