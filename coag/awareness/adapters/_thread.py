"""The thread of a talk: what it was about, what it is about now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coag.awareness.state import Entity, distinct

from ._conversation_analysis import ConversationAnalysis, ConversationEntityType
from ._known import KnownNames

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
    def of(
        cls, analysis: ConversationAnalysis, earlier: tuple[Entity, ...], names: KnownNames
    ) -> Thread:
        """The thread with a message that is not in the state yet.

        Args:
            analysis: What the message says.
            earlier: All that was a topic before.
            names: Recognises topics.
        """
        topics = distinct(analysis.topics)
        return cls(topics=topics, known=names.find(topics, earlier), before=active_topics(earlier))

    @property
    def pivots(self) -> bool:
        """Whether the talk had topics, this message has some, and none of them is an old one."""
        return bool(self.topics and self.before and not self.known)

    @property
    def returns(self) -> bool:
        """Whether old topics are taken up again, and none of the last ones goes on."""
        last = {entity.name for entity in self.before}
        return bool(self.known) and all(one.name not in last for one in self.known.values())


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
