"""The thread of a talk: what it was about, what it is about now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coag.awareness.state import AwarenessState, Entity

from ._conversation_analysis import ConversationAnalysis, ConversationEntityType
from ._known import distinct, known_entities

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

    @classmethod
    def of(cls, analysis: ConversationAnalysis, state: AwarenessState) -> Thread:
        """The thread with a message, which is not in the state yet."""
        topics = distinct(analysis.topics)
        entities = state.world.entities
        return cls(
            topics=topics,
            known=known_entities(topics, entities, _is_topic),
            before=active_topics(entities),
        )

    @property
    def pivots(self) -> bool:
        """Whether the talk had topics, this message has some, and none of them is an old one."""
        return bool(self.topics and self.before and not self.known)

    @property
    def returns(self) -> bool:
        """Whether old topics are taken up again, and none of the last ones goes on."""
        last = {entity.name for entity in self.before}
        return bool(self.known) and all(one.name not in last for one in self.known.values())


def _is_topic(entity: Entity) -> bool:
    return entity.type == ConversationEntityType.TOPIC or LAST_TOPIC in entity.state


def count_of(entity: Entity | None, key: str) -> int:
    """A number that an entity's state keeps; 0 if it keeps none."""
    value = entity.state.get(key) if entity is not None else None
    return value if isinstance(value, int) else 0


def active_topics(entities: Sequence[Entity]) -> tuple[Entity, ...]:
    """The topics of the last message that had any."""
    topics = [
        (entity, count_of(entity, LAST_TOPIC)) for entity in entities if LAST_TOPIC in entity.state
    ]
    last = max((step for _, step in topics), default=0)
    return tuple(entity for entity, step in topics if step == last)
