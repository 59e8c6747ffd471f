"""The adapter for talk."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import compress
from operator import attrgetter

from pydantic import Field

from coag.awareness.injection import InjectionBlock, InjectionItem
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
    CollaborationMode,
    Entity,
    GoalSource,
    Heard,
    HeardPlain,
    HeardText,
    InteractionProtocol,
    Plain,
    ScanPattern,
    TransitionType,
    distinct,
    folded,
)
from coag.schema import Value

from .analysis import Analysis, HeardNames, as_set
from .domain_adapter import MOST, DomainAdapter, KnownNames, PerEntity, Place, is_named

# ---- What is analysed of one message of a talk (SAGEN §4.4) ----


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


# ---- The thread of a talk: what it was about, what it is about now ----


LAST_TOPIC, ASKED = "topic_step", "asked"
"""What an entity's state keeps: when it was a topic last, in how many steps it was asked about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A message's topics against those of the talk so far."""

    topics: tuple[str, ...]
    """The topics now."""
    known: dict[str, Entity]
    """Those of them that were topics before, with what they mean."""
    before: tuple[Entity, ...]
    """What the talk was about last."""
    linked: bool
    """Whether a topic belongs to an earlier one, or to what is open, though it was none before."""

    @classmethod
    def of(
        cls,
        analysis: ConversationAnalysis,
        earlier: tuple[Entity, ...],
        names: KnownNames,
        goals: Iterable[str] = (),
    ) -> Thread:
        """The thread with a message that is not in the state yet.

        Args:
            analysis: What the message says.
            earlier: All that was a topic before.
            names: Recognises topics.
            goals: What is open, in words; gone through only where no topic is known.
        """
        topics = distinct(analysis.topics)
        known, before = names.find(topics, earlier), active_topics(earlier)
        linked = not known and (
            _share_words(topics, before)
            or _joined_to(topics, analysis, earlier, names)
            or any(is_named(topic, goal) for goal in goals for topic in topics)
        )
        return cls(topics=topics, known=known, before=before, linked=linked)

    @property
    def pivots(self) -> bool:
        """Whether the talk had topics, this message has some, and none goes on with an old one."""
        return bool(self.topics and self.before and not self.known and not self.linked)

    @property
    def returns(self) -> bool:
        """Whether old topics are taken up again, and none of the last ones goes on."""
        last = {entity.name for entity in self.before}
        return bool(self.known) and all(one.name not in last for one in self.known.values())


def _share_words(topics: Sequence[str], before: Sequence[Entity]) -> bool:
    """Whether a topic has a word of the last ones in it: `flights` after `flights to Faro`."""
    said = {word for topic in topics for word in _words(topic)}
    return any(not said.isdisjoint(_words(one.name)) for one in before)


def _words(name: str) -> list[str]:
    """The longer words of a name, of whatever number."""
    return [word.removesuffix("s") for word in re.findall(r"\w{4,}", folded(name))]


def _joined_to(
    topics: Sequence[str],
    analysis: ConversationAnalysis,
    earlier: tuple[Entity, ...],
    names: KnownNames,
) -> bool:
    """Whether a message says how one of its topics hangs together with an earlier one."""
    own = set(map(folded, topics))
    others = [
        b
        for edge in analysis.relationships
        for a, b in ((edge.source, edge.target), (edge.target, edge.source))
        if folded(a) in own
    ]
    return bool(names.find(others, earlier))


def is_topic(entity: Entity) -> bool:
    """Whether it was a topic of the talk, whatever else it is."""
    return entity.type == ConversationEntityType.TOPIC or LAST_TOPIC in entity.state


def count_of(entity: Entity | None, key: str) -> int:
    """A number that an entity's state keeps; 0 if it keeps none."""
    value = entity.state.get(key) if entity is not None else None
    return value if isinstance(value, int) else 0


def active_topics(topics: Sequence[Entity]) -> tuple[Entity, ...]:
    """Of all topics those of the last message that had any."""
    steps = [count_of(topic, LAST_TOPIC) for topic in topics]
    last = max(steps, default=0)
    return tuple(topic for topic, step in zip(topics, steps, strict=True) if step and step == last)


# ---- The domain of talking with somebody (SAGEN §5.1) ----


_OFTEN = 3
"""Steps with questions about a topic from which on understanding it is a goal."""
_OPEN = 50
"""Goals, the latest ones, whose words make a new topic no new subject."""
_TTL = 5
_SHIFT, _CALLBACK, _GLAD = 0.5, 0.6, 0.3
_MOOD = "mood"
"""The slot of moods: the latest takes the place of the one before."""
_WORRYING = {
    Sentiment.NEGATIVE: 0.7,
    Sentiment.CONFUSED: 0.7,
    Sentiment.ANXIOUS: 0.7,
    Sentiment.FRUSTRATED: 0.8,
    Sentiment.ANGRY: 0.9,
}
"""Urgency by sentiment; 0.8 for frustration is the paper's."""


class ConversationAdapter(DomainAdapter):
    """Follows a talk: what it is about, when it turns, comes back or goes sour.

    `parse_observation` takes a `ConversationAnalysis` as a mapping. A message is a pivot if none of
    its topics was one before, is joined to one by the message, or stands in an open goal (of the
    latest 50) or shares a word with the last ones, else progress. A pivot, a callback and a mood
    need attention; a new mood takes the place of the last, a neutral message says nothing of it. A
    topic that is asked about in three steps, and that no stated goal names, becomes a goal.
    """

    def __init__(self) -> None:
        self._are_topics = PerEntity(is_topic)
        self._names = KnownNames()

    @property
    def domain_name(self) -> str:
        """`conversation`."""
        return "conversation"

    def define_entity_types(self) -> tuple[str, ...]:
        """Person, topic, concept, reference, emotion, preference."""
        return tuple(ConversationEntityType)

    def define_relationship_types(self) -> tuple[str, ...]:
        """Seven, social and topical."""
        return tuple(ConversationEdgeType)

    def define_scan_patterns(self) -> tuple[ScanPattern, ...]:
        """The four of section 5.1."""
        return (
            ScanPattern(
                name="topic shift",
                description="The user changes the subject without resolving active goals.",
            ),
            ScanPattern(
                name="emotional escalation",
                description="The user's sentiment becomes negative.",
            ),
            ScanPattern(
                name="callback opportunity",
                description="The input relates to an earlier thread that was left.",
            ),
            ScanPattern(
                name="implicit goal",
                description="Repeated questions show an objective that nobody stated.",
            ),
        )

    def define_protocol_defaults(self) -> InteractionProtocol:
        """Friendly, in natural language, deciding together."""
        return InteractionProtocol(
            style="friendly, adaptive",
            output_format="natural language",
            mode=CollaborationMode.COLLABORATIVE,
        )

    def parse_observation(self, raw: Mapping[str, object], state: AwarenessState) -> Observation:
        """What a message says where the talk stands so.

        Raises:
            ObservationError: It is no `ConversationAnalysis`; the error names the place.
        """
        analysis = ConversationAnalysis.parse(raw)
        thread = Thread.of(analysis, self._topics(state), self._names, _stated(state))
        return Observation(
            entities=_entities(analysis, thread, state.step + 1),
            relationships=tuple(
                ObservedRelationship(source=edge.source, type=edge.type.value, target=edge.target)
                for edge in analysis.relationships
            ),
            goals=(*analysis.observed_goals(), *_implicit_goals(analysis, thread, state)),
            goal_changes=analysis.goal_changes(),
            attention_items=_attention(analysis, thread),
            assumptions=analysis.assumptions,
            unknowns=analysis.unknowns,
            resolved=analysis.resolved,
            event=_event(analysis, thread),
        )

    def domain_blocks(self, state: AwarenessState) -> tuple[InjectionBlock, ...]:
        """The topics of the last message that had any; then what else is known."""
        active = active_topics(self._topics(state))
        ids = set(map(id, active))
        others = [entity for entity in state.world.entities if id(entity) not in ids]
        latest = sorted(others, key=attrgetter("last_step"))[-MOST:]
        return (
            InjectionBlock(
                heading="ACTIVE TOPICS",
                priority=Place.TOPICS,
                items=tuple(
                    InjectionItem(
                        text=entity.name, urgency=count_of(entity, LAST_TOPIC) / max(1, state.step)
                    )
                    for entity in active[:MOST]
                ),
                first=10,
                inline=True,
                more=max(0, len(active) - MOST),
            ),
            InjectionBlock(
                heading="KNOWN",
                priority=Place.KNOWN,
                items=tuple(
                    InjectionItem(
                        text=f"{entity.name} ({entity.type})",
                        urgency=entity.last_step / max(1, state.step),
                    )
                    for entity in reversed(latest)
                ),
                first=3,
                inline=True,
                more=len(others) - len(latest),
            ),
        )

    def _topics(self, state: AwarenessState) -> tuple[Entity, ...]:
        entities = state.world.entities
        return tuple(compress(entities, self._are_topics(entities)))


def _entities(
    analysis: ConversationAnalysis, thread: Thread, step: int
) -> tuple[ObservedEntity, ...]:
    """The topics and what else is mentioned, each once; a type of its own goes before `topic`."""
    seen: dict[str, ObservedEntity] = {}
    for topic in thread.topics:
        state: dict[str, Plain] = {LAST_TOPIC: step}
        if analysis.questions:
            state[ASKED] = count_of(thread.known.get(topic), ASKED) + 1
        seen[folded(topic)] = ObservedEntity(
            name=topic, type=ConversationEntityType.TOPIC.value, state=state
        )
    for entity in analysis.entities:
        topic = seen.get(folded(entity.name))
        seen[folded(entity.name)] = ObservedEntity(
            name=topic.name if topic else entity.name,
            type=entity.type.value,
            state={**(topic.state if topic else {}), **entity.state},
        )
    return tuple(seen.values())


def _stated(state: AwarenessState) -> Iterator[str]:
    """What is open and was not merely inferred, the latest."""
    for goal in state.goals.active_goals[-_OPEN:]:
        if goal.source is not GoalSource.INFERRED:
            yield goal.description


def _implicit_goals(
    analysis: ConversationAnalysis, thread: Thread, state: AwarenessState
) -> tuple[ObservedGoal, ...]:
    """Goals to understand what is asked about again and again, and no stated goal names."""
    if not analysis.questions:
        return ()
    often = [
        topic for topic in thread.topics if count_of(thread.known.get(topic), ASKED) + 1 == _OFTEN
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


def _attention(analysis: ConversationAnalysis, thread: Thread) -> tuple[ObservedAttention, ...]:
    items: list[ObservedAttention] = []
    now, before = as_set(thread.topics), as_set(entity.name for entity in thread.before)
    if thread.pivots:
        items.append(
            ObservedAttention(
                type=AttentionType.TRANSITION,
                description=f"Topic shift: {before} -> {now}",
                urgency=_SHIFT,
                ttl=_TTL,
            )
        )
    if analysis.references_previous or thread.returns:
        which = f": {as_set(thread.known)}" if thread.known else ""
        items.append(
            ObservedAttention(
                type=AttentionType.OPPORTUNITY,
                description=f"Callback to earlier topic{which}",
                urgency=_CALLBACK,
                ttl=_TTL,
            )
        )
    if analysis.sentiment in _WORRYING:
        items.append(
            ObservedAttention(
                type=AttentionType.THREAT,
                description=f"User sentiment: {analysis.sentiment.value}",
                urgency=_WORRYING[analysis.sentiment],
                ttl=_TTL,
                slot=_MOOD,
            )
        )
    elif analysis.sentiment is Sentiment.POSITIVE:  # what worried is over
        items.append(
            ObservedAttention(
                type=AttentionType.OPPORTUNITY,
                description=f"User sentiment: {analysis.sentiment.value}",
                urgency=_GLAD,
                ttl=1,
                slot=_MOOD,
            )
        )
    return tuple(items)


def _event(analysis: ConversationAnalysis, thread: Thread) -> ObservedEvent | None:
    """A pivot or progress; nothing where nothing was said."""
    now, before = as_set(thread.topics), as_set(entity.name for entity in thread.before)
    if thread.pivots:
        return ObservedEvent(
            type=TransitionType.PIVOT, description=f"Pivoted from {before} to {now}"
        )
    if analysis == ConversationAnalysis():
        return None
    word = "Continuing" if thread.before else "Beginning"
    about = now if thread.topics else before
    told = f"{word}: {about}" if thread.topics or thread.before else word
    return ObservedEvent(type=TransitionType.PROGRESS, description=told)
